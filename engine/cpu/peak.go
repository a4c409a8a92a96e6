// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"time"

	"pleach/half"
	"pleach/kernel"
)

// peakTime is how long a sample of the peak lasts.
const peakTime = 8 * time.Millisecond

// Peak measures for 8 ms how many FLOP/s all workers together reach at most in
// products of operands of type t, f32 or bf16: multiplications and additions of
// the level's widest vectors that touch no memory, in pairs where the level
// multiplies bf16 in pairs. Portable Go cannot promise that; there it is the
// innermost loop of products, over float32 in the first-level cache.
func (e *Engine) Peak(t half.DType) float64 {
	rates := make([]float64, e.threads)
	e.pool.do(&job{phase: phase{tiles: e.threads, run: func(_, tile int) { rates[tile] = rate(peakWork(e.level, t)) }}})
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum
}

// rate is the FLOP/s of work that returns its FLOPs.
func rate(work func() int) float64 {
	work()
	flops, began := 0, time.Now()
	for time.Since(began) < peakTime {
		flops += work()
	}
	return float64(flops) / time.Since(began).Seconds()
}

// peakWork is some tens of microseconds of a level's best.
func peakWork(l kernel.Level, t half.DType) func() int {
	const rounds = 5000
	switch {
	case l == kernel.Portable:
		return portableWork(l)
	case t == half.BF16:
		return func() int { return l.PeakFLOPs16(rounds) }
	}
	return func() int { return l.PeakFLOPs(rounds) }
}

// portableWork is a product that lies in the first-level cache.
func portableWork(l kernel.Level) func() int {
	const m, n, k = 64, 64, 64
	a, c, b := make([]float32, m*k), make([]float32, m*n), make([]float32, l.PanelLen(n, k))
	return func() int {
		l.MultiplyN(c, a, b, m, n, k, n, k, false)
		return 2 * m * n * k
	}
}
