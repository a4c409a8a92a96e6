// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "math"

// What is computed here from all elements has the same bits on every level, Portable
// included: products are exact in float64, and sums have one order for rows of any
// length.

// Dot64 is Σ x[i]·y[i] in float64. A product of two is exact; element i is added to
// lane i mod 16 of 16 sums, whatever the length, and then lane i and lane i+8 become
// one, i+4, i+2, i+1. y has the length of x.
func (l Level) Dot64(x, y []float32) float64 {
	var s [lanes]float64
	y = y[:len(x)]
	for l != Portable && len(x) >= lanes {
		n := min(whole(len(x)), piece)
		atDot64(l, &s[0], &x[0], &y[0], n)
		x, y = x[n:], y[n:]
	}
	for i, v := range x {
		s[i%lanes] += float64(v) * float64(y[i])
	}
	return fold16(&s)
}

// SumAbs64 is Σ |x[i]| in float64, in the order of Dot64.
func (l Level) SumAbs64(x []float32) float64 {
	var s [lanes]float64
	for l != Portable && len(x) >= lanes {
		n := min(whole(len(x)), piece)
		atSumAbs64(l, &s[0], &x[0], n)
		x = x[n:]
	}
	for i, v := range x {
		s[i%lanes] += math.Abs(float64(v))
	}
	return fold16(&s)
}

// SumAbs64Bits is SumAbs64 of x, and of what KeepBits keeps of x.
func (l Level) SumAbs64Bits(x []float32, bits []uint64) (all, kept float64) {
	var s [2 * lanes]float64
	bits = bits[:(len(x)+63)/64]
	at := 0
	for l != Portable && len(x)-at >= lanes {
		n := min(whole(len(x)-at), piece)
		atSumAbs64Bits(l, &s[0], &x[at], n, &bits[at/64])
		at += n
	}
	for i, v := range x[at:] {
		i += at
		a := math.Abs(float64(v))
		s[i%lanes] += a
		if bits[i/64]>>(i%64)&1 == 1 {
			s[lanes+i%lanes] += a
		}
	}
	return fold16((*[lanes]float64)(s[:lanes])), fold16((*[lanes]float64)(s[lanes:]))
}

// fold16 adds up 16 sums, in s[0] in the end.
func fold16(s *[lanes]float64) float64 {
	for n := lanes / 2; n > 0; n /= 2 {
		for i := range n {
			s[i] += s[i+n]
		}
	}
	return s[0]
}

const (
	magnitude = 1<<31 - 1  // the bits of a float32 but its sign
	infinity  = 0x7f800000 // those of Inf; NaN has larger ones
)

// Largest is max |x[i]|, and NaN if any x[i] is NaN or infinite; 0 for none.
func (l Level) Largest(x []float32) float32 {
	var t [lanes]uint32
	for l != Portable && len(x) >= lanes {
		n := min(whole(len(x)), piece)
		atLargest(l, &t[0], &x[0], n)
		x = x[n:]
	}
	var most uint32
	for _, b := range t {
		most = max(most, b)
	}
	for _, v := range x {
		most = max(most, math.Float32bits(v)&magnitude)
	}
	if most >= infinity {
		return float32(math.NaN())
	}
	return math.Float32frombits(most)
}

// Collect looks at the bits b of every |x[i]|, which are in the order of the numbers:
// with Inf, and then NaN, behind all others. Those with lo < b < hi become dst[:n], in
// order; above counts b > hi, most b = hi, and least b = lo. dst has at least the
// length of x; what is in dst[n:len(x)] means nothing afterwards.
func (l Level) Collect(dst []uint32, x []float32, lo, hi uint32) (n, above, least, most int) {
	dst = dst[:len(x)]
	for l != Portable && len(x) >= lanes {
		m := min(whole(len(x)), piece)
		var c [3*lanes + 1]uint32
		atCollect(l, &dst[n], &x[0], m, &c[0], lo, hi)
		for i := range lanes {
			above += int(c[i])
			most += int(c[lanes+i])
			least += int(c[2*lanes+i])
		}
		n += int(c[3*lanes])
		x = x[m:]
	}
	for _, v := range x {
		b := math.Float32bits(v) & magnitude
		dst[n] = b
		over, under, beyond, short := less(lo, b), less(b, hi), less(hi, b), less(b, lo)
		n += over & under
		above += beyond
		most += 1 - under - beyond
		least += 1 - over - short
	}
	return n, above, least, most
}

// CountBelow is the number of x[i] for which the bits of |x[i]| are less than c ≤ 2³¹.
func (l Level) CountBelow(x []float32, c uint32) (n int) {
	for l != Portable && len(x) >= lanes {
		m := min(whole(len(x)), piece)
		var t [lanes]uint32
		atCountBelow(l, &t[0], &x[0], m, c)
		for _, v := range t {
			n += int(v)
		}
		x = x[m:]
	}
	for _, v := range x {
		n += less(math.Float32bits(v)&magnitude, c)
	}
	return n
}

// less is 1 if a < b, else 0, without a branch.
func less(a, b uint32) int { return int((uint64(a) - uint64(b)) >> 63) }
