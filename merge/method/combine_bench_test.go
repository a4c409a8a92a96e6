// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pleach/kernel"
)

// BenchmarkCombine is the time of a tensor in memory, on one thread and the best level;
// bytes are those of the inputs.
func BenchmarkCombine(b *testing.B) {
	shape := []int{512, 2048}
	for i, c := range variants(shape, .3, rand.New(rand.NewPCG(1, 0))) {
		c.Level = kernel.Best()
		out := make([]float32, c.Len())
		b.Run(fmt.Sprintf("%s-%d", c.method, i), func(b *testing.B) {
			b.SetBytes(int64(4 * len(c.in) * len(out)))
			for b.Loop() {
				j, err := c.job()
				if err != nil {
					b.Fatal(err)
				}
				if err := Solve(j, c.in, out, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
