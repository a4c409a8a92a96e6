// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"unsafe"
)

// The kernels of this file combine the weights of models. A product is rounded
// before it is added, so they have the same bits on every level, Portable included.

// Sub is y[i] = a[i] − b[i]. y may be a or b itself; all have the length of y.
func (l Level) Sub(y, a, b []float32) {
	if l != Portable {
		eachSub(l, y, a, b)
		return
	}
	a, b = a[:len(y)], b[:len(y)]
	for i, v := range a {
		y[i] = v - b[i]
	}
}

// AddScaled is y[i] = y[i] + c·x[i]. y may be x itself; x has the length of y.
func (l Level) AddScaled(y, x []float32, c float32) {
	if l != Portable {
		eachAddScaled(l, y, x, c)
		return
	}
	x = x[:len(y)]
	for i, v := range x {
		y[i] += float32(c * v)
	}
}

// Divide is y[i] = x[i]/c. y may be x itself; x has the length of y.
func (l Level) Divide(y, x []float32, c float32) {
	if l != Portable {
		eachDivide(l, y, x, c)
		return
	}
	x = x[:len(y)]
	for i, v := range x {
		y[i] = v / c
	}
}

// KeepKeys is y[i] = x[i] where lo ≤ b < end for the bits b of |x[i]|, which are in the
// order of the numbers, with Inf, and then NaN, behind all others; else 0. y may be x
// itself; x has the length of y. lo and end are at most 2³¹.
func (l Level) KeepKeys(y, x []float32, lo, end uint32) {
	if l != Portable {
		eachKeepKeys(l, y, x, lo-1, end)
		return
	}
	x = x[:len(y)]
	for i, v := range x {
		b := math.Float32bits(v)
		keep := uint32(1-less(b&magnitude, lo)) & uint32(less(b&magnitude, end))
		y[i] = math.Float32frombits(b & -keep)
	}
}

// KeepBits is y[i] = x[i] where bit i mod 64 of bits[i/64] is set, else 0. y may be
// x itself; x has the length of y.
func (l Level) KeepBits(y, x []float32, bits []uint64) {
	x, bits = x[:len(y)], bits[:(len(y)+63)/64]
	if l == Portable {
		for i, v := range x {
			if bits[i/64]>>(i%64)&1 == 0 {
				v = 0
			}
			y[i] = v
		}
		return
	}
	used := 0 // bits of the first word
	for len(y) >= lanes {
		n := min(whole(len(y)), piece)
		atKeepBits(l, &y[0], &x[0], n, &bits[0])
		y, x, bits, used = y[n:], x[n:], bits[n/64:], n%64
	}
	if len(y) == 0 {
		return
	}
	var t [2][lanes]float32
	copy(t[1][:], x)
	rest := bits[0] >> used
	atKeepBits(l, &t[0][0], &t[1][0], lanes, &rest)
	copy(y, t[0][:])
}

// Bucket puts the magnitudes of x into 256 buckets, 32 for every power of two: the lowest
// 8 bits of w[i] become
//
//	min(max(b − lowest, 0)·2⁻¹⁸, 255), rounded down, for the bits b of |x[i]|
//
// x has the length of w. lowest is less than 2³¹.
func (l Level) Bucket(w []uint32, x []float32, lowest uint32) {
	if l != Portable {
		eachBucket(l, unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(w))), len(w)), x, lowest)
		return
	}
	x = x[:len(w)]
	for i, v := range x {
		b := max(math.Float32bits(v)&magnitude, lowest) - lowest
		w[i] = w[i]&^255 | min(b>>18, 255)
	}
}

// Votes are sums over weighted parts of several models, of which a majority of each
// element is made: slices of one length.
type Votes struct {
	Sum           []float32 // Σ w·x
	Plus, Minus   []float32 // Σ of w·x above 0, and below
	WPlus, WMinus []float32 // Σ of w where w·x is above 0, and below
}

// Vote adds a model to votes. All slices have the length of x.
//
//	v = w·x[i];  Sum[i] += v
//	Plus[i] += v and WPlus[i] += w where v > 0, and both += 0 elsewhere
//	Minus[i] += v and WMinus[i] += w where v < 0, likewise
func (l Level) Vote(y Votes, x []float32, w float32) {
	if l != Portable {
		eachVote(l, y.Sum[:len(x)], y.Plus, y.Minus, y.WPlus, y.WMinus, x, w)
		return
	}
	for i, v := range x {
		v = float32(w * v)
		y.Sum[i] += v
		var plus, wplus, minus, wminus float32
		switch {
		case v > 0:
			plus, wplus = v, w
		case v < 0:
			minus, wminus = v, w
		}
		y.Plus[i] += plus
		y.WPlus[i] += wplus
		y.Minus[i] += minus
		y.WMinus[i] += wminus
	}
}

// Elect is what the majority of each element says: the sum of those whose sign is
// that of Sum, where 0 counts as positive, divided by the sum of their weights,
// where that is 0 by 1, or not at all.
//
//	y[i] = Plus[i]/WPlus[i] if Sum[i] ≥ 0, else Minus[i]/WMinus[i]
//
// NaN belongs to neither part: where Sum is NaN, so is y.
//
// y has the length of the votes, and may be one of them. Without dividing, the sums of
// weights may be nil.
func (l Level) Elect(y []float32, v Votes, divide bool) {
	if l != Portable {
		if divide {
			eachElectMean(l, y, v.Sum, v.Plus, v.Minus, v.WPlus, v.WMinus)
		} else {
			eachElect(l, y, v.Sum, v.Plus, v.Minus)
		}
		return
	}
	for i := range y {
		x, w := v.Plus, v.WPlus
		if !(v.Sum[i] >= 0) {
			x, w = v.Minus, v.WMinus
		}
		switch {
		case v.Sum[i] != v.Sum[i]:
			y[i] = v.Sum[i]
		case divide && w[i] != 0:
			y[i] = x[i] / w[i]
		default:
			y[i] = x[i]
		}
	}
}
