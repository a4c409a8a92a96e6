// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"math"
	"testing"
)

// TestTwister has the numbers of torch.manual_seed and torch.rand, and the 10000th
// word that the C++ standard gives for seed 5489.
func TestTwister(t *testing.T) {
	g := NewTwister(42)
	for i, want := range []uint32{1608637542, 3421126067, 4083286876, 787846414, 3143890026} {
		if got := g.Uint32(); got != want {
			t.Errorf("word %d of seed 42: got %d, want %d", i, got, want)
		}
	}
	g = NewTwister(5489)
	for range 9999 {
		g.Uint32()
	}
	if got := g.Uint32(); got != 4123659995 {
		t.Errorf("word 10000 of seed 5489: got %d, want 4123659995", got)
	}
	for _, c := range []struct {
		seed uint32
		want []float64
	}{
		{42, []float64{.8823, .9150, .3829, .9593, .3904, .6009, .2566, .7936, .9408, .1332}},
		{0, []float64{.4963, .7682, .0885, .1320, .3074, .6341}},
	} {
		g := NewTwister(c.seed)
		for i, want := range c.want {
			if got := float64(g.Float32()); math.Abs(got-want) > 5e-5 {
				t.Errorf("number %d of seed %d: got %v, want %v", i, c.seed, got, want)
			}
		}
	}
}
