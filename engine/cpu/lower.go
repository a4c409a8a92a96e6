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
	program.OpBias:        rowNeeds,
	program.OpRMSNorm:     rowNeeds,
	program.OpRMSNormGrad: rmsNormGradNeeds,
	program.OpRoPE:        rowNeeds,
	program.OpSwiGLU:      rowNeeds,
	program.OpSwiGLUGrad:  rowNeeds,
	program.OpAdd:         flatNeeds,
	program.OpScale:       flatNeeds,
	program.OpSumSquares: func(_ *schedule, st *step) {
		if halved(st.first().In[0]) {
			st.scratch = squareBlock
		}
	},
	program.OpAdamW: adamWNeeds,
	program.OpAttention: func(s *schedule, st *step) {
		st.scratch = s.level.AttentionScratch(shapeOf(st.first()), queries, halved(st.first().In[0]))
	},
	program.OpAttentionGrad: func(s *schedule, st *step) {
		h := st.first().Attr.Heads
		st.scratch = s.level.AttentionGradScratch(shapeOf(st.first()), h.T, halved(st.first().In[0]))
		st.scratch = max(st.scratch, h.H*h.K) // to turn back a row
	},
	program.OpCachedAttention: func(s *schedule, st *step) {
		st.scratch = s.level.AttentionCachedScratch(shapeOf(st.first()), halved(st.first().In[0]))
	},
	program.OpHeadStats: headStatsNeeds,
	program.OpHeadTop:   headTopNeeds,
	program.OpHeadGrad:  headGradNeeds,
}

// halved reports whether v is of bf16.
func halved(v *program.Value) bool { return v.Type == half.BF16 }

// f32 is the elements of v.
func (l *lowering) f32(v *program.Value) []float32 { return view[float32](l.x.bytes(v, l.slot)) }

// numbers is the elements of v, of float32 or bf16.
func (l *lowering) numbers(v *program.Value) kernel.Numbers {
	if halved(v) {
		return kernel.Numbers{BF16: view[uint16](l.x.bytes(v, l.slot))}
	}
	return kernel.Numbers{F32: l.f32(v)}
}

// num is operand i, numOut is output i.
func (l *lowering) num(i int) kernel.Numbers    { return l.numbers(l.op.In[i]) }
func (l *lowering) numOut(i int) kernel.Numbers { return l.numbers(l.op.Out[i]) }

// own is the step's own buffer i.
func (l *lowering) own(i int) []float32 { return l.f32(l.st.own[i]) }

// ownHalf is the step's own buffer i, for numbers of bf16.
func (l *lowering) ownHalf(i int) []uint16 { return view[uint16](l.x.bytes(l.st.own[i], l.slot)) }

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

// desk is a worker's scratch, handed out piece by piece: numbers of bf16 are
// widened there to be worked on, and results rounded from there into their place.
type desk struct {
	level kernel.Level
	rest  []float32
}

func (l *lowering) desk(worker int) desk { return desk{l.level, l.x.e.scratch[worker]} }

func (d *desk) take(n int) (x []float32) {
	x, d.rest = d.rest[:n:n], d.rest[n:]
	return x
}

// takeFor is take for n numbers that are not worked on in their place, nil for others.
func (d *desk) takeFor(x kernel.Numbers, n int) []float32 {
	if !x.Half() {
		return nil
	}
	return d.take(n)
}

// read is n numbers from i on.
func (d *desk) read(x kernel.Numbers, i, n int) []float32 {
	return x.Load(d.level, d.takeFor(x, n), i, n)
}

// room is where to make n numbers from i on; x.Store puts them in their place.
func (d *desk) room(x kernel.Numbers, i, n int) []float32 { return x.Room(d.takeFor(x, n), i, n) }

// flatNeeds is the scratch of elementwise work.
func flatNeeds(_ *schedule, st *step) {
	op := st.first()
	if halved(op.Out[0]) {
		st.scratch = (len(op.In) + 1) * flatHalf
	}
}

// flatHalf is the size of a tile of elements of bf16, of which float32 copies stay in
// the first-level cache.
const flatHalf = 2048

// elements cuts n elements of a type into tiles of elementwise work.
func (l *lowering) elements(n int, halved bool, f func(worker, lo, hi int)) []phase {
	if halved {
		return []phase{overWith(n, flatHalf, f)}
	}
	return []phase{overWith(n, flat, f)}
}

func add(l *lowering) []phase {
	if l.op.In[0].Type == half.F64 {
		a, b, c := l.wide(0), l.wide(1), view[float64](l.x.bytes(l.op.Out[0], l.slot))
		return []phase{one(func() {
			for i := range c {
				c[i] = a[i] + b[i]
			}
		})}
	}
	x, z, y := l.num(0), l.num(1), l.numOut(0)
	return l.elements(y.Len(), y.Half(), func(worker, lo, hi int) {
		d := l.desk(worker)
		out := d.room(y, lo, hi-lo)
		d.level.Add(out, d.read(x, lo, hi-lo), d.read(z, lo, hi-lo))
		y.Store(d.level, out, lo)
	})
}

func scale(l *lowering) []phase {
	x, y, c := l.num(0), l.numOut(0), float32(l.op.Attr.C)
	return l.elements(y.Len(), y.Half(), func(worker, lo, hi int) {
		d := l.desk(worker)
		out := d.room(y, lo, hi-lo)
		d.level.Scale(out, d.read(x, lo, hi-lo), c)
		y.Store(d.level, out, lo)
	})
}

func cast(l *lowering) []phase {
	in, out := l.op.In[0], l.op.Out[0]
	x, y, k := l.x.bytes(in, l.slot), l.x.bytes(out, l.slot), l.level
	switch from, to := in.Type, out.Type; {
	case from == to:
		return copied(y, x)
	case from == half.F32 && to == half.BF16:
		a, b := view[float32](x), view[uint16](y)
		return []phase{over(len(b), flat, func(lo, hi int) { k.Narrow(b[lo:hi], a[lo:hi]) })}
	case from == half.BF16 && to == half.F32:
		a, b := view[uint16](x), view[float32](y)
		return []phase{over(len(b), flat, func(lo, hi int) { k.Widen(b[lo:hi], a[lo:hi]) })}
	case from == half.BF16:
		return converted(view[float64](y), view[uint16](x), func(b uint16) float64 { return float64(half.FromBF16(b)) })
	case to == half.BF16:
		return converted(view[uint16](y), view[float64](x), func(v float64) uint16 { return half.ToBF16(float32(v)) })
	case from == half.F32:
		return converted(view[float64](y), view[float32](x), func(v float32) float64 { return float64(v) })
	}
	return converted(view[float32](y), view[float64](x), func(v float64) float32 { return float32(v) })
}

// copied is y = x, of one size.
func copied(y, x []byte) []phase {
	return []phase{over(len(y), 4*flat, func(lo, hi int) { copy(y[lo:hi], x[lo:hi]) })}
}

// converted is y[i] = f(x[i]).
func converted[A, B any](y []A, x []B, f func(B) A) []phase {
	return []phase{over(len(y), flat, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = f(x[i])
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
