// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package rng

import (
	"math"
	"slices"
	"testing"
)

// TestPhilox compares with the known answers of Random123 (kat_vectors,
// philox4x32 10).
func TestPhilox(t *testing.T) {
	const m = 0xffffffff
	for _, tt := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{m, m, m, m}, [2]uint32{m, m}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := Philox(tt.key, tt.ctr); got != tt.want {
			t.Errorf("Philox(%x, %x) = %x, want %x", tt.key, tt.ctr, got, tt.want)
		}
	}
}

// TestMoments: mean and variance of 200,000 draws within 4.5 standard errors.
func TestMoments(t *testing.T) {
	const n = 200_000
	for _, tt := range []struct {
		name           string
		draw           func(Stream, uint64) float64
		mean, variance float64
		kurtosis       float64 // fourth central moment over the variance squared
	}{
		{"uniform", Stream.Float64, 0.5, 1.0 / 12, 1.8},
		{"normal", Stream.Normal, 0, 1, 3},
	} {
		s := New(1, "moments")
		sum, sq := 0.0, 0.0
		for i := range uint64(n) {
			x := tt.draw(s, i) - tt.mean
			sum += x
			sq += x * x
		}
		if z := sum / math.Sqrt(n*tt.variance); math.Abs(z) > 4.5 {
			t.Errorf("%s: mean is off by %.1f standard errors", tt.name, z)
		}
		if z := (sq/n/tt.variance - 1) / math.Sqrt((tt.kurtosis-1)/n); math.Abs(z) > 4.5 {
			t.Errorf("%s: variance is off by %.1f standard errors", tt.name, z)
		}
	}
}

// TestPurpose: streams differ by seed and by purpose, and words agree whichever
// way they are asked for.
func TestPurpose(t *testing.T) {
	a, b, c := New(1, "x"), New(1, "y"), New(2, "x")
	if a.Word(0) == b.Word(0) || a.Word(0) == c.Word(0) {
		t.Error("streams of different purpose or seed start alike")
	}
	if a.Uint64(3) != uint64(a.Word(6))<<32|uint64(a.Word(7)) || a.Block(2)[1] != a.Word(9) {
		t.Error("words, pairs and blocks disagree")
	}
}

func TestPerm(t *testing.T) {
	for _, n := range []int{0, 1, 2, 17, 1000} {
		p := New(3, "perm").Perm(n)
		q := slices.Sorted(slices.Values(p))
		for i := range q {
			if q[i] != i {
				t.Fatalf("Perm(%d) is no permutation: %v", n, p)
			}
		}
	}
	if slices.Equal(New(3, "perm").Perm(50), New(4, "perm").Perm(50)) {
		t.Error("permutations do not depend on the seed")
	}
}
