// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import "pleach/half"

// Zeros is a fresh value of zeros that a step is judged by.
func (b *Builder) Zeros(shape ...int) *Value {
	return b.out(b.op(OpZero, Attr{}), "zero", TallyType, Same, shape...)
}

// Clear sets x to zero.
func (b *Builder) Clear(x *Value) { b.into(b.op(OpZero, Attr{}), x) }

// SumSquares adds weight(i)·x[i]² to slots [rows,C], at [row, ⌊i/leaf⌋], in the
// order of the flat index i. Runs give the weights: 1/copies, so that a sum over
// all ranks counts each element once. With sharded, x is a flat shard and i
// counts from its offset.
//
// C leaves of equal length make a padded parameter. A leaf lies in one shard
// and a row in one pipeline stage, so summing the slots over the data and pipe
// axes adds zeros to each slot, and the norm has the same bits for every data
// degree that divides C and every pipeline.
func (b *Builder) SumSquares(slots, x *Value, row, leaf int, sharded bool, runs []Run) {
	b.want(row < slots.Dim(0) && leaf > 0, "sum of squares: row %d, leaves of %d in %v", row, leaf, slots)
	a := Attr{Runs: runs, Row: row, Leaf: leaf, Sharded: sharded}
	b.into(b.op(OpSumSquares, a, x, slots), slots)
}

// What stands where in the report of an update.
const (
	ReportScale      = iota // factor of the gradient sums: clipping and the division by the count
	ReportNorm              // of the mean gradient, before clipping
	ReportLoss              // mean over unmasked tokens, nats
	ReportCount             // unmasked tokens of the step
	ReportApply             // 1, or 0 where the step changes no weight and no moment
	ReportWeightNorm        // before the update
	ReportLen
)

// Clip turns slots of squares and the tally into the report [ReportLen] that
// AdamW reads.
//
//	norm = √(Σ slots) / count,  scale = min(1, limit/(norm + 1e-6)) / count
//
// as PyTorch's clip_grad_norm_; no limit (0) never clips. The step is applied
// if the input apply [1] is not zero, the norm is finite and the count is not
// zero; where the count is zero, all but the weight norm is.
func (b *Builder) Clip(slots, weights, tally, apply *Value, limit float64) *Value {
	op := b.op(OpClip, Attr{C: limit}, slots, weights, tally, apply)
	return b.out(op, "report", TallyType, Same, ReportLen)
}

// AdamW updates p, m and v in place from the summed gradient g, if
// report[ReportApply] is not zero.
//
//	ĝ = report[ReportScale]·g;  m ← β₁m + (1−β₁)ĝ;  v ← β₂v + (1−β₂)ĝ²
//	p ← p − lr·( m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + eps) + decay·p )
//
// lr and t, the number of applied steps with this one, are inputs [1]: a
// schedule needs no new program. Each of p, m and v is f32 or bf16, whatever the
// others are; the step is computed in float32, with the new m and v as they are
// before they are rounded. How bf16 is rounded is what r says. sharded says that
// p, m, v and g are the data rank's flat shard.
// Loshchilov & Hutter, 2019, arXiv:1711.05101, algorithm 2.
func (b *Builder) AdamW(p, m, v, g, report, lr, t *Value, c Adam, r Rounding, sharded bool) {
	b.want(p.Len() == g.Len() && m.Len() == g.Len() && v.Len() == g.Len(), "adamw: got %v, %v, %v, %v", p, m, v, g)
	b.want(g.Type != half.BF16, "adamw: %v: want a sum in f32 at least", g)
	op := b.op(OpAdamW, Attr{Adam: c, Rounding: r, Sharded: sharded}, p, m, v, g, report, lr, t)
	b.into(op, p)
	b.into(op, m)
	b.into(op, v)
}

// Rounding says how AdamW rounds what it writes to bf16: the zero value to
// nearest even, and stochastically so that the mean of what may be written is
// the float32 number,
//
//	new value = upper half of (bits of the float32 number + r)
//
// as unsigned 32 bits, where r is a random number of 16 bits. A finite number
// beyond the largest one of bf16 becomes that one; infinities and NaN stay. The r of element i, counted in the flat parameter
// as the tensor rank holds it, at update t, for the state of a name, is number i
// of the stream rng.New(Seed, "round "+name): the half i mod 2, low half first,
// of word ⌊i/2⌋ mod 4 of its block t·2³² + ⌊i/8⌋. The names of the moments are
// their own, so they draw other numbers than the parameter; see [Op.RoundedAs].
//
// A number is a function of seed, name, t and i and of nothing else: threads,
// micro-batches, ZeRO and a resumed run draw the same ones, and ranks that hold
// copies keep them equal.
type Rounding struct {
	Stochastic bool
	Seed       uint64
}

// RoundedAs is the name under which output i of AdamW draws random numbers: that
// of the state, or of the parameter that a shard was cut from.
func (op *Op) RoundedAs(i int) string {
	v := op.Out[i]
	if v.Role == Temp && v.def != nil && v.def.Kind == OpShard {
		v = v.def.In[0]
	}
	return v.Name
}
