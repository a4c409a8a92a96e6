// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math/rand/v2"
	"testing"
	"time"

	"pleach/kernel"
)

// BenchmarkTask merges two models on one worker, in memory, and reports the time of an
// element of the output.
func BenchmarkTask(b *testing.B) {
	const rows, row = 1024, 4096
	r := rand.New(rand.NewPCG(1, 1))
	in := tensorsOf(r, 2, rows*row)
	out := make([]float32, rows*row)
	for _, m := range taskArithmetic() {
		b.Run(m.Name, func(b *testing.B) {
			v := Values{"weight": 0.5, "density": 0.5}
			models, x := []Values{v, v}, in
			if m.Name == "arcee_fusion" {
				models, x = models[:1], in[1:]
			}
			p := changed([]int{rows, row}, Values{"select_topk": 0.5}, models...)
			p.Level = kernel.Best()
			for b.Loop() {
				j, err := m.New(p)
				if err == nil {
					err = Solve(j, x, out, 1)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed()/time.Nanosecond)/float64(b.N)/(rows*row), "ns/element")
		})
	}
}
