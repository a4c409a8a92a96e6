// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"fmt"
	"testing"
	"time"

	"pleach/engine/cpu"
	"pleach/model"
	"pleach/program"
)

// benched are models of the sizes that a laptop trains.
var benched = []model.Spec{
	{L: 2, D: 64, H: 2, G: 1, K: 32, F: 192, V: 2048, MaxT: 256, Eps: 1e-5, Rope: program.Rope{Theta: 10_000}, Tied: true},
	{L: 4, D: 128, H: 4, G: 2, K: 32, F: 384, V: 2048, MaxT: 256, Eps: 1e-5, Rope: program.Rope{Theta: 10_000}, Tied: true},
	{L: 4, D: 256, H: 4, G: 2, K: 64, F: 768, V: 4096, MaxT: 256, Eps: 1e-5, Rope: program.Rope{Theta: 10_000}, Tied: true},
}

// newBench is a trainer whose weights stay what they are: a step costs what the
// first one did. They are small, far from denormal numbers, which are slow.
func newBench(b *testing.B, e *cpu.Engine, s model.Spec, batch model.Batch) *trainer {
	tr := newPrograms(b, e, s, laidOut{}, batch)
	tr.rate = 0
	start(b, tr.floats, s, 0.02)
	return tr
}

// BenchmarkStep is a step of one micro-batch of 1024 tokens: accumulate and
// update.
func BenchmarkStep(b *testing.B) {
	batch := model.Batch{B: 4, T: 256}
	for _, s := range benched {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("D%d_L%d_V%d/threads=%d", s.D, s.L, s.V, threads), func(b *testing.B) {
				e := cpu.New(cpu.Options{Threads: threads})
				defer e.Close()
				tr := newBench(b, e, s, batch)
				n := 0
				for b.Loop() {
					n++
					tr.step(n, 0, batch.B)
				}
				seconds := b.Elapsed().Seconds()
				flops := tr.accumulate.Program().Cost().FLOPs
				b.ReportMetric(float64(b.N*batch.N())/seconds, "tokens/s")
				b.ReportMetric(float64(b.N)*float64(flops)/seconds/1e9, "GFLOP/s")
			})
		}
	}
}

// BenchmarkKinds reports which share of a step's time each kind of op takes.
func BenchmarkKinds(b *testing.B) {
	for _, s := range benched {
		b.Run(fmt.Sprintf("D%d_L%d_V%d", s.D, s.L, s.V), func(b *testing.B) {
			e := cpu.New(cpu.Options{Threads: 2})
			defer e.Close()
			tr := newBench(b, e, s, model.Batch{B: 4, T: 256})
			tr.step(1, 0, 4)
			var times [program.Kinds]time.Duration
			for b.Loop() {
				cpu.Times(tr.accumulate, &times)
				cpu.Times(tr.update, &times)
			}
			for k, d := range times {
				if share := 100 * d.Seconds() / b.Elapsed().Seconds(); share >= 0.5 {
					b.ReportMetric(share, program.Kind(k).String()+"-%")
				}
			}
		})
	}
}
