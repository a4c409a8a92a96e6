// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"

	"pleach/internal/rng"
)

// The kernels of this file combine the weights of models. A product is rounded
// before it is added, and a sum has a fixed order, so they have the same bits on
// every level, Portable included.

// Sub is y[i] = a[i] − b[i]. y may be a or b itself; all have the length of y.
func (l Level) Sub(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i, v := range a {
		y[i] = v - b[i]
	}
}

// AddScaled is y[i] = y[i] + c·x[i]. y may be x itself; x has the length of y.
func (l Level) AddScaled(y, x []float32, c float32) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] += float32(c * v)
	}
}

// Divide is y[i] = x[i]/c. y may be x itself; x has the length of y.
func (l Level) Divide(y, x []float32, c float32) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = v / c
	}
}

// KeepAbove is y[i] = x[i] where |x[i]| > t, else 0. y may be x itself; x has the
// length of y.
func (l Level) KeepAbove(y, x []float32, t float32) {
	x = x[:len(y)]
	for i, v := range x {
		if !(max(v, -v) > t) {
			v = 0
		}
		y[i] = v
	}
}

// KeepWithin is y[i] = x[i] where lo < |x[i]| ≤ hi, else 0. y may be x itself; x
// has the length of y.
func (l Level) KeepWithin(y, x []float32, lo, hi float32) {
	x = x[:len(y)]
	for i, v := range x {
		if a := max(v, -v); !(lo < a && a <= hi) {
			v = 0
		}
		y[i] = v
	}
}

// KeepBits is y[i] = x[i] where bit i mod 64 of bits[i/64] is set, else 0. y may be
// x itself; x has the length of y.
func (l Level) KeepBits(y, x []float32, bits []uint64) {
	x = x[:len(y)]
	for i, v := range x {
		if bits[i/64]>>(i%64)&1 == 0 {
			v = 0
		}
		y[i] = v
	}
}

// RandomBelow sets bit i of bits, for 0 ≤ i < n, where the upper 24 bits of word
// lo+i of a stream are below the threshold: with the probability threshold·2⁻²⁴.
// Other bits of its last word become 0. lo is a multiple of 64.
func (l Level) RandomBelow(bits []uint64, s rng.Stream, lo uint64, n int, threshold uint32) {
	clear(bits[:(n+63)/64])
	for i := 0; i < n; i += 4 {
		b := s.Block((lo + uint64(i)) / 4)
		for j := range min(4, n-i) {
			if b[j]>>8 < threshold {
				bits[(i+j)/64] |= 1 << ((i + j) % 64)
			}
		}
	}
}

// RandomWords fills w with words lo, lo+1, … of a stream.
func (l Level) RandomWords(w []uint32, s rng.Stream, lo uint64) {
	for i := range w {
		w[i] = s.Word(lo + uint64(i))
	}
}

// Votes are sums over weighted parts of several models, of which a majority of each
// element is made: slices of one length.
type Votes struct {
	Sum           []float32 // Σ w·x
	Plus, Minus   []float32 // Σ of w·x above 0, and below
	WPlus, WMinus []float32 // Σ of w where w·x is above 0, and below
}

// Vote adds a model to votes:
//
//	v = w·x[i];  Sum[i] += v
//	v > 0: Plus[i] += v, WPlus[i] += w;  v < 0: Minus[i] += v, WMinus[i] += w
func (l Level) Vote(y Votes, x []float32, w float32) {
	for i, v := range x {
		v = w * v
		y.Sum[i] += v
		switch {
		case v > 0:
			y.Plus[i] += v
			y.WPlus[i] += w
		case v < 0:
			y.Minus[i] += v
			y.WMinus[i] += w
		}
	}
}

// Elect is what the majority of each element says: the sum of those whose sign is
// that of Sum, where 0 counts as positive, divided by the sum of their weights,
// where that is 0 by 1, or not at all.
//
//	y[i] = Plus[i]/WPlus[i] if Sum[i] ≥ 0, else Minus[i]/WMinus[i]
//
// y may be one of the votes.
func (l Level) Elect(y []float32, v Votes, divide bool) {
	for i, s := range v.Sum {
		x, w := v.Plus[i], v.WPlus[i]
		if !(s >= 0) {
			x, w = v.Minus[i], v.WMinus[i]
		}
		if divide && w != 0 {
			x /= w
		}
		y[i] = x
	}
}

// Dot64 is Σ x[i]·y[i] in float64. A product of two is exact; element i is added to
// lane i mod 16 of 16 sums, and then lane i and lane i+8 become one, i+4, i+2, i+1.
func (l Level) Dot64(x, y []float32) float64 {
	var lanes [16]float64
	y = y[:len(x)]
	for i, v := range x {
		lanes[i%16] += float64(v) * float64(y[i])
	}
	return fold16(&lanes)
}

// SumAbs64 is Σ |x[i]| in float64, in the order of Dot64.
func (l Level) SumAbs64(x []float32) float64 {
	var lanes [16]float64
	for i, v := range x {
		lanes[i%16] += math.Abs(float64(v))
	}
	return fold16(&lanes)
}

func fold16(lanes *[16]float64) float64 {
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			lanes[i] += lanes[i+n]
		}
	}
	return lanes[0]
}

// Largest is max |x[i]|, and NaN if any x[i] is NaN or infinite; 0 for none.
func (l Level) Largest(x []float32) float32 {
	var most, bad float32
	for _, v := range x {
		most = max(most, v, -v)
		bad += v * 0
	}
	return most + bad
}
