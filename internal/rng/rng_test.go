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
		{"normal", normal, 0, 1, 3},
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
	key, purpose := a.Parts()
	if a.Block(5<<32+3) != Philox(key, [4]uint32{3, 5, purpose[0], purpose[1]}) {
		t.Error("a block is not what its parts say")
	}
	if a.Uint64(3) != uint64(a.Word(6))<<32|uint64(a.Word(7)) || a.Block(2)[1] != a.Word(9) {
		t.Error("words, pairs and blocks disagree")
	}
}

// normal is one number of Stream.Normals.
func normal(s Stream, i uint64) float64 {
	var x [1]float32
	s.Normals(x[:], i, 1)
	return float64(x[0])
}

// TestNormal compares every kind of word with the quantile of its tail, and a call
// with its parts.
func TestNormal(t *testing.T) {
	q := quantiles()
	check := func(w uint32) {
		want := math.Sqrt2 * math.Erfcinv(math.Ldexp(float64(w|1), -32))
		if w&1 == 1 {
			want = -want
		}
		if got := float64(q.normal(w)); math.Abs(got-want) > 1.2e-4*math.Abs(want)+1e-9 {
			t.Errorf("word %#x: got %v, want %v", w, got, want)
		}
	}
	for b := range 32 {
		for _, w := range []uint32{1 << b, 1<<b - 1, 1<<b + 1, 3 << b, ^uint32(0) >> b} {
			check(w)
			check(w ^ 1)
		}
	}
	for i := range uint64(10_000) {
		check(New(5, "words").Word(i))
	}
	whole, parts := make([]float32, 23), make([]float32, 23)
	s := New(6, "parts")
	s.Normals(whole, 5, 0.5)
	s.Normals(parts[:6], 5, 0.5)
	s.Normals(parts[6:], 11, 0.5)
	if !slices.Equal(whole, parts) {
		t.Errorf("in two calls: got %v, want %v", parts, whole)
	}
}

// TestNormalTails: how many of a million lie beyond 1, 2, 3 and 4.
func TestNormalTails(t *testing.T) {
	const n = 1_000_000
	x := make([]float32, n)
	New(7, "tails").Normals(x, 0, 1)
	for k := 1; k <= 4; k++ {
		beyond := 0
		for _, v := range x {
			if math.Abs(float64(v)) > float64(k) {
				beyond++
			}
		}
		p := math.Erfc(float64(k) / math.Sqrt2)
		if z := (float64(beyond) - n*p) / math.Sqrt(n*p*(1-p)); math.Abs(z) > 4.5 {
			t.Errorf("beyond %d: got %d of a million, want %.0f", k, beyond, n*p)
		}
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

func BenchmarkNormals(b *testing.B) {
	x := make([]float32, 4096)
	b.SetBytes(int64(len(x)))
	for b.Loop() {
		New(1, "speed").Normals(x, 0, 1)
	}
}
