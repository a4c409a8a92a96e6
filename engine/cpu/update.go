// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"math"
	"unsafe"

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
	x, slots, cut := l.in(0), l.wide(1)[l.op.Attr.Row*l.dim(1, 1):], blocks(l.op.Attr)
	l.x.e.memory.Scratch += lasting(l.op)
	return []phase{
		over(len(cut), 4, func(lo, hi int) {
			for i := range cut[lo:hi] {
				c := &cut[lo+i]
				c.sum = l.level.SumSquares(0, x[c.lo:c.hi], c.weight)
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

// adamW clears the gradient sum too if that is part of the step, whether the
// update is applied or not.
func adamW(l *lowering) []phase {
	p, m, v, g := l.in(0), l.in(1), l.in(2), l.in(3)
	report, lr, t, a := l.wide(4), l.wide(5), l.wide(6), l.op.Attr.Adam
	level, clears := l.level, l.st.op(program.OpZero) != nil
	return []phase{over(len(p), flat, func(lo, hi int) {
		if report[program.ReportApply] != 0 {
			step := kernel.NewAdamWStep(a.Beta1, a.Beta2, a.Eps, a.Decay, lr[0], int64(t[0]))
			level.AdamW(p[lo:hi], m[lo:hi], v[lo:hi], g[lo:hi], float32(report[program.ReportScale]), step)
		}
		if clears {
			clear(g[lo:hi])
		}
	})}
}
