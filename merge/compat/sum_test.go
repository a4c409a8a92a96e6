// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"math"
	"testing"

	"pleach/half"
)

// TestSums has the bits of sums and norms of torch.rand(n) with seed 42, in float32 and
// in bfloat16, by torch 2.15 with one thread.
func TestSums(t *testing.T) {
	for _, c := range []struct {
		n                            int
		sum, norm, halfSum, halfNorm uint32
	}{
		{1000003, 0x48f3f441, 0x44103f19, 0x48f40000, 0x44100000},
	} {
		g := NewTwister(42)
		x := make([]float32, c.n)
		for i := range x {
			x[i] = g.Float32()
		}
		check := func(what string, got float32, want uint32) {
			if math.Float32bits(got) != want {
				t.Errorf("%s of %d: got %x, want %x", what, c.n, math.Float32bits(got), want)
			}
		}
		check("sum", sum(x, half.F32, nil), c.sum)
		check("norm", norm(x, half.F32), c.norm)
		for i, v := range x {
			x[i] = round(v, half.BF16)
		}
		check("bf16 sum", round(sum(x, half.BF16, make([]float32, c.n/2)), half.BF16), c.halfSum)
		check("bf16 norm", round(norm(x, half.BF16), half.BF16), c.halfNorm)
	}
}
