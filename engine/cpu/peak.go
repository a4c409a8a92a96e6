// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"time"
)

// Peak measures what the engine's products reach at best, in FLOP/s: all workers
// multiply matrices that stay in their caches, for about 30 ms. It is the peak of
// the kernels, not of the processor.
func (e *Engine) Peak() float64 {
	const n, runs = 96, 4
	k := e.level
	type matrices struct{ a, b, c, scratch []float32 }
	work := make([]matrices, e.threads)
	for i := range work {
		work[i] = matrices{
			make([]float32, n*n), make([]float32, n*n), make([]float32, n*n), make([]float32, k.GemmScratch()),
		}
	}
	j := &job{phase: phase{tiles: runs * e.threads, run: func(worker, _ int) {
		m := &work[worker]
		k.GemmNN(m.c, m.a, m.b, n, n, n, n, n, n, false, m.scratch)
	}}}
	best, flops := 0.0, float64(j.tiles)*2*n*n*n
	for start := time.Now(); time.Since(start) < 30*time.Millisecond; {
		t := time.Now()
		e.pool.do(j)
		best = max(best, flops/time.Since(t).Seconds())
	}
	return best
}
