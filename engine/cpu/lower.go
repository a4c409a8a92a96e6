// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"pleach/half"
	"pleach/kernel"
	"pleach/program"
)

// lowering is a step on its way to phases. The functions of the table below read
// shapes and addresses once, so that a run only calls kernels.
type lowering struct {
	x     *executable
	st    *step
	op    *program.Op // its first
	slot  int
	level kernel.Level
}

// lower makes the phases of a step by the kind of its first op. What is missing needs other ranks.
var lower = [program.Kinds]func(*lowering) []phase{
	program.OpEmbed:           embed,
	program.OpEmbedGrad:       embedGrad,
	program.OpLinear:          linear,
	program.OpLinearGradX:     linear,
	program.OpLinearGradW:     linearGradW,
	program.OpBias:            bias,
	program.OpBiasGrad:        biasGrad,
	program.OpRMSNorm:         rmsNorm,
	program.OpRMSNormGrad:     rmsNormGrad,
	program.OpRoPE:            rope,
	program.OpAttention:       attention,
	program.OpAttentionGrad:   attentionGrad,
	program.OpCachedAttention: cachedAttention,
	program.OpSwiGLU:          swiGLU,
	program.OpSwiGLUGrad:      swiGLUGrad,
	program.OpAdd:             add,
	program.OpScale:           scale,
	program.OpCast:            cast,
	program.OpHeadStats:       headStats,
	program.OpHeadLoss:        headLoss,
	program.OpHeadGrad:        headGrad,
	program.OpHeadTop:         headTop,
	program.OpTopMerge:        topMerge,
	program.OpZero:            zero,
	program.OpShard:           shard,
	program.OpSumSquares:      sumSquares,
	program.OpClip:            clip,
	program.OpAdamW:           adamW,
	program.OpAllReduce:       func(*lowering) []phase { return nil }, // in place, over one rank
	program.OpAllGather:       shard,
	program.OpReduceScatter:   shard,
}

// needs finds the buffers and scratch of steps that begin with a kind.
var needs = [program.Kinds]func(*schedule, *step){
	program.OpLinear:      productNeeds,
	program.OpLinearGradX: productNeeds,
	program.OpLinearGradW: gradWNeeds,
	program.OpRMSNormGrad: rmsNormGradNeeds,
	program.OpAttention: func(s *schedule, st *step) {
		st.scratch = s.level.AttentionScratch(shapeOf(st.first()), queries)
	},
	program.OpAttentionGrad: func(s *schedule, st *step) {
		st.scratch = s.level.AttentionGradScratch(shapeOf(st.first()), st.first().Attr.Heads.T)
	},
	program.OpCachedAttention: func(s *schedule, st *step) {
		st.scratch = s.level.AttentionCachedScratch(shapeOf(st.first()))
	},
	program.OpHeadStats: headStatsNeeds,
	program.OpHeadTop:   headTopNeeds,
	program.OpHeadGrad:  headGradNeeds,
}

// f32 is the elements of v.
func (l *lowering) f32(v *program.Value) []float32 { return view[float32](l.x.bytes(v, l.slot)) }

// own is the step's own buffer i.
func (l *lowering) own(i int) []float32 { return l.f32(l.st.own[i]) }

// in is operand i as float32, out is output i.
func (l *lowering) in(i int) []float32  { return l.f32(l.op.In[i]) }
func (l *lowering) out(i int) []float32 { return l.f32(l.op.Out[i]) }

// ints is operand i as int32, wide as float64.
func (l *lowering) ints(i int) []int32   { return view[int32](l.x.bytes(l.op.In[i], l.slot)) }
func (l *lowering) wide(i int) []float64 { return view[float64](l.x.bytes(l.op.In[i], l.slot)) }

// dim is dimension j of operand i.
func (l *lowering) dim(i, j int) int { return l.op.In[i].Dim(j) }

// scratch is the working memory of a worker. It is read when a tile runs, since
// a program compiled later may have made it larger.
func (l *lowering) scratch() func(worker int) []float32 {
	e := l.x.e
	return func(worker int) []float32 { return e.scratch[worker] }
}

// outputs are the addresses of the program's outputs.
func (l *lowering) outputs() [][]byte {
	var out [][]byte
	for _, v := range l.x.p.Outputs {
		out = append(out, l.x.bytes(v, l.slot))
	}
	return out
}

// over cuts n items into tiles of at most size, and runs f on each: [lo,hi).
func over(n, size int, f func(lo, hi int)) phase {
	return phase{tiles: (n + size - 1) / size, run: func(_, tile int) {
		f(tile*size, min(tile*size+size, n))
	}}
}

// overWith is over, for work that wants to know its worker.
func overWith(n, size int, f func(worker, lo, hi int)) phase {
	return phase{tiles: (n + size - 1) / size, run: func(worker, tile int) {
		f(worker, tile*size, min(tile*size+size, n))
	}}
}

// one is work for one worker.
func one(f func()) phase { return phase{tiles: 1, run: func(int, int) { f() }} }

// share is a tile size that gives every worker several of n items, but not less
// than least, so that a call is worth making.
func (l *lowering) share(n, least int) int {
	return max(least, (n+4*l.x.e.threads-1)/(4*l.x.e.threads))
}

// few reports whether so many tiles are too few for workers to end together.
func (l *lowering) few(tiles int) bool { return l.x.e.threads > 1 && tiles < 12*l.x.e.threads }

// across is how many tiles of a size n items take.
func across(size, n int) int { return (n + size - 1) / size }

// flat is the size of a tile of elements in elementwise work: 64 KiB.
const flat = 16 << 10

// shapeOf is the heads of an op as kernels know them.
func shapeOf(op *program.Op) kernel.Heads {
	h := op.Attr.Heads
	return kernel.Heads{H: h.H, G: h.G, K: h.K}
}

func add(l *lowering) []phase {
	x, z, y := l.in(0), l.in(1), l.out(0)
	if l.op.In[0].Type == half.F64 {
		a, b, c := l.wide(0), l.wide(1), view[float64](l.x.bytes(l.op.Out[0], l.slot))
		return []phase{one(func() {
			for i := range c {
				c[i] = a[i] + b[i]
			}
		})}
	}
	return []phase{over(len(y), flat, func(lo, hi int) { l.level.Add(y[lo:hi], x[lo:hi], z[lo:hi]) })}
}

func scale(l *lowering) []phase {
	x, y, c := l.in(0), l.out(0), float32(l.op.Attr.C)
	return []phase{over(len(y), flat, func(lo, hi int) { l.level.Scale(y[lo:hi], x[lo:hi], c) })}
}

func cast(l *lowering) []phase {
	from, to := l.op.In[0].Type, l.op.Out[0].Type
	x, y := l.x.bytes(l.op.In[0], l.slot), l.x.bytes(l.op.Out[0], l.slot)
	switch {
	case from == to:
		return copied(y, x)
	case from == half.F32:
		return converted(view[float64](y), view[float32](x))
	}
	return converted(view[float32](y), view[float64](x))
}

// copied is y = x, of one size.
func copied(y, x []byte) []phase {
	return []phase{over(len(y), 4*flat, func(lo, hi int) { copy(y[lo:hi], x[lo:hi]) })}
}

// converted is y[i] = x[i], rounded.
func converted[A, B float32 | float64](y []A, x []B) []phase {
	return []phase{over(len(y), flat, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = A(x[i])
		}
	})}
}

func zero(l *lowering) []phase {
	y := l.x.bytes(l.op.Out[0], l.slot)
	return []phase{over(len(y), 16*flat, func(lo, hi int) { clear(y[lo:hi]) })}
}

// shard copies what one rank has of x: all of it, with zeros behind.
func shard(l *lowering) []phase {
	x, y := l.x.bytes(l.op.In[0], l.slot), l.x.bytes(l.op.Out[0], l.slot)
	return []phase{one(func() { clear(y[copy(y, x):]) })}
}
