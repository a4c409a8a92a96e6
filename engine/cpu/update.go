// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"math"
	"unsafe"

	"pleach/internal/rng"
	"pleach/kernel"
	"pleach/program"
)

// squareBlock is the number of elements that are squared and summed in one
// fold; the sums of blocks are then folded in order. It is a constant, so the
// norm does not depend on threads.
const squareBlock = 4096

// block is a range of elements in one leaf and one run, and the sum of their
// squares.
type block struct {
	lo, hi, leaf int
	weight, sum  float64
}

// blocks cuts every run into leaves, and those into blocks.
func blocks(a program.Attr) []block {
	cut := make([]block, 0, count(a))
	for _, r := range a.Runs {
		for lo := r.Lo; lo < r.Hi; {
			hi := min(lo+squareBlock, r.Hi, (lo/a.Leaf+1)*a.Leaf)
			cut = append(cut, block{lo, hi, lo / a.Leaf, r.Weight, 0})
			lo = hi
		}
	}
	return cut
}

// count is the number of blocks, of which a large model has millions.
func count(a program.Attr) (n int) {
	for _, r := range a.Runs {
		for lo := r.Lo; lo < r.Hi; {
			end := min(r.Hi, (lo/a.Leaf+1)*a.Leaf)
			n += (end - lo + squareBlock - 1) / squareBlock
			lo = end
		}
	}
	return n
}

// lasting is the memory that a lowered op keeps beside its operands, in bytes.
func lasting(op *program.Op) int {
	if op.Kind != program.OpSumSquares {
		return 0
	}
	return count(op.Attr) * int(unsafe.Sizeof(block{}))
}

func sumSquares(l *lowering) []phase {
	x, slots, cut := l.num(0), l.wide(1)[l.op.Attr.Row*l.dim(1, 1):], blocks(l.op.Attr)
	l.x.e.memory.Scratch += lasting(l.op)
	return []phase{
		overWith(len(cut), 4, func(worker, lo, hi int) {
			for i := range cut[lo:hi] {
				c, d := &cut[lo+i], l.desk(worker)
				c.sum = l.level.SumSquares(0, d.read(x, c.lo, c.hi-c.lo), c.weight)
			}
		}),
		one(func() {
			for _, c := range cut {
				slots[c.leaf] += c.sum
			}
		}),
	}
}

func clip(l *lowering) []phase {
	slots, weights, tally, apply := l.wide(0), l.wide(1), l.wide(2), l.wide(3)
	report := view[float64](l.x.bytes(l.op.Out[0], l.slot))
	limit := l.op.Attr.C
	return []phase{one(func() {
		clear(report)
		report[program.ReportWeightNorm] = math.Sqrt(sum(weights))
		count := tally[1]
		if count == 0 {
			return
		}
		norm, scale := math.Sqrt(sum(slots))/count, 1/count
		if limit > 0 {
			scale *= min(1, limit/(norm+1e-6))
		}
		report[program.ReportScale], report[program.ReportNorm] = scale, norm
		report[program.ReportLoss], report[program.ReportCount] = tally[0]/count, count
		if apply[0] != 0 && !math.IsNaN(norm) && !math.IsInf(norm, 0) {
			report[program.ReportApply] = 1
		}
	})}
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// adamWNeeds is scratch for what is of bf16, and for random numbers.
func adamWNeeds(_ *schedule, st *step) {
	op := st.first()
	for _, v := range op.In[:3] {
		if halved(v) {
			st.scratch += flatHalf
		}
	}
	if op.Attr.Stochastic {
		st.scratch += flatHalf / 2
	}
}

// adamW casts the new weights and clears the gradient sum too if that is part of the
// step, whether the update is applied or not.
func adamW(l *lowering) []phase {
	u := &updating{
		l: l, p: l.num(0), m: l.num(1), v: l.num(2), g: l.in(3), report: l.wide(4), lr: l.wide(5), t: l.wide(6),
		adam: l.op.Attr.Adam, clears: l.st.op(program.OpZero) != nil,
	}
	if op := l.st.op(program.OpCast); op != nil {
		u.publish = l.numbers(op.Out[0])
	}
	if l.op.Attr.Stochastic {
		for i, v := range l.op.In[:3] {
			u.random[i] = rng.New(l.op.Attr.Seed, "round "+v.Name)
		}
		u.stochastic = true
	}
	return []phase{overWith(len(u.g), flat, u.tile)}
}

// updating is AdamW of one parameter.
type updating struct {
	l             *lowering
	p, m, v       kernel.Numbers
	g             []float32
	report, lr, t []float64
	adam          program.Adam
	publish       kernel.Numbers // gets the new weights, if there is one
	clears        bool
	stochastic    bool
	random        [3]rng.Stream // for weights and moments
}

// tile updates elements lo … hi−1, in pieces that stay in the first-level cache.
func (u *updating) tile(worker, lo, hi int) {
	a, applies := u.adam, u.report[program.ReportApply] != 0
	var step kernel.AdamWStep
	if applies {
		step = kernel.NewAdamWStep(a.Beta1, a.Beta2, a.Eps, a.Decay, u.lr[0], int64(u.t[0]))
	}
	for ; lo < hi; lo += flatHalf {
		n := min(flatHalf, hi-lo)
		d := u.l.desk(worker)
		if applies {
			p, m, v := d.read(u.p, lo, n), d.read(u.m, lo, n), d.read(u.v, lo, n)
			d.level.AdamW(p, m, v, u.g[lo:][:n], float32(u.report[program.ReportScale]), step)
			for i, x := range [3]kernel.Numbers{u.p, u.m, u.v} {
				u.store(&d, x, [3][]float32{p, m, v}[i], lo, i)
			}
		}
		if u.publish.Half() {
			u.publish.Store(d.level, u.p.F32[lo:][:n], lo)
		}
		if u.clears {
			clear(u.g[lo:][:n])
		}
	}
}

// store rounds new numbers into their place.
func (u *updating) store(d *desk, x kernel.Numbers, y []float32, lo, i int) {
	if !x.Half() || !u.stochastic {
		x.Store(d.level, y, lo)
		return
	}
	r := halves(d.rest)[:len(y)]
	d.level.RandomBits(r, u.random[i], uint32(u.t[0]), uint64(lo))
	d.level.NarrowRandom(x.BF16[lo:][:len(y)], y, r)
}
