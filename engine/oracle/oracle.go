// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"math"

	"pleach/program"
)

// Rank is one member of a world with the memory that outlives a run: inputs,
// weights and states by name.
type Rank struct {
	World *World
	At    program.Place
	Mem   map[string][]float64
}

// Frame holds the temporaries of one micro-batch.
type Frame interface {
	At(v *program.Value) []float64
	done(op int) // op has run: its dying operands are free
}

// Heap is a Frame that gives every value memory of its own.
type Heap map[*program.Value][]float64

// At is the memory of v.
func (h Heap) At(v *program.Value) []float64 {
	if h[v] == nil {
		h[v] = make([]float64, v.Len())
	}
	return h[v]
}

func (Heap) done(int) {}

// Arena is memory laid out by a plan. Free memory is NaN, so a read after free
// or before write shows in the result.
type Arena struct {
	Plan *program.Plan
	mem  []float64
}

// NewArena allocates the arena of a plan of a program whose temporaries are all
// float64.
func NewArena(plan *program.Plan) *Arena {
	a := &Arena{plan, make([]float64, plan.Bytes/8)}
	poison(a.mem)
	return a
}

// Slot is the frame of the micro-batch that owns slot i.
func (a *Arena) Slot(i int) Frame { return slot{a, i} }

type slot struct {
	*Arena
	i int
}

func (s slot) At(v *program.Value) []float64 {
	if _, ok := s.Plan.Spots[v]; !ok {
		panic(fmt.Sprintf("oracle: %s has no place", v.Name))
	}
	return s.mem[s.Plan.Offset(v, s.i)/8:][:v.Len():v.Len()]
}

func (s slot) done(op int) {
	for _, v := range s.Plan.Frees[op] {
		poison(s.At(v))
	}
}

func poison(x []float64) {
	for i := range x {
		x[i] = math.NaN()
	}
}

// Run runs a half of p with temporaries in f.
func (r *Rank) Run(p *program.Program, half program.Half, f Frame) {
	lo, hi := half.Range(p)
	for i := lo; i < hi; i++ {
		op := p.Ops[i]
		run := ops[op.Kind]
		if run == nil {
			panic(fmt.Sprintf("oracle: no %v", op.Kind))
		}
		c := &call{r, op, r.slices(op.In, f), r.slices(op.Out, f)}
		run(c)
		c.round()
		f.done(i)
	}
}

func (r *Rank) slices(vs []*program.Value, f Frame) [][]float64 {
	x := make([][]float64, len(vs))
	for i, v := range vs {
		x[i] = r.slice(v, f)
	}
	return x
}

func (r *Rank) slice(v *program.Value, f Frame) []float64 {
	if v.Role == program.Temp {
		return f.At(v)
	}
	x, ok := r.Mem[v.Name]
	if !ok || len(x) != v.Len() {
		panic(fmt.Sprintf("oracle: rank %v: %v has %d elements", r.At, v, len(x)))
	}
	return x
}

// call is one op on its operands.
type call struct {
	*Rank
	op  *program.Op
	in  [][]float64
	out [][]float64
}

// dim is dimension j of operand i.
func (c *call) dim(i, j int) int { return c.op.In[i].Dim(j) }

// offset is the first row of the rank's piece of a value that is split over the
// op's axis, in pieces of n rows.
func (c *call) offset(n int) int {
	if c.op.Attr.Axis == 0 {
		return 0
	}
	return c.At.On(c.op.Attr.Axis) * n
}

// shardOffset is the flat index at which the rank's data shard, operand 0,
// begins in the whole.
func (c *call) shardOffset() int {
	if !c.op.Attr.Sharded {
		return 0
	}
	return c.At.Data * len(c.in[0])
}

// ops is a line for each kind; a test fails where one is missing.
var ops = [program.Kinds]func(*call){
	program.OpEmbed:           embed,
	program.OpEmbedGrad:       embedGrad,
	program.OpLinear:          linear,
	program.OpLinearGradX:     linearGradX,
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
	program.OpCast:            func(c *call) { copy(c.out[0], c.in[0]) },
	program.OpHeadStats:       headStats,
	program.OpHeadLoss:        headLoss,
	program.OpHeadGrad:        headGrad,
	program.OpHeadTop:         headTop,
	program.OpTopMerge:        topMerge,
	program.OpZero:            func(c *call) { clear(c.out[0]) },
	program.OpShard:           shard,
	program.OpSumSquares:      sumSquares,
	program.OpClip:            clip,
	program.OpAdamW:           adamW,
	program.OpAllReduce:       allReduce,
	program.OpAllGather:       allGather,
	program.OpReduceScatter:   reduceScatter,
	program.OpSend:            send,
	program.OpRecv:            recv,
}
