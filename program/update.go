// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

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
// schedule needs no new program. Stochastic asks the engine to round the new p
// by its counter-based generator, keyed by seed, step, name and global element
// index, in the same pass.
// Loshchilov & Hutter, 2019, arXiv:1711.05101, algorithm 2.
func (b *Builder) AdamW(p, m, v, g, report, lr, t *Value, c Adam, stochastic bool) {
	b.want(p.Len() == g.Len() && m.Len() == g.Len() && v.Len() == g.Len(), "adamw: got %v, %v, %v, %v", p, m, v, g)
	op := b.op(OpAdamW, Attr{Adam: c, Stochastic: stochastic}, p, m, v, g, report, lr, t)
	b.into(op, p)
	b.into(op, m)
	b.into(op, v)
}
