// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// The exponential function.
//
//	x = n·ln 2 + r, |r| ≤ ½ ln 2;  e^x = 2ⁿ·p(r)
//	p(r) = 1 + r·(1 + r·(c0 + r·(c1 + r·(c2 + r·(c3 + r·c4)))))
//
// p is minimax in relative error among the polynomials with float32
// coefficients, fitted by Lawson's reweighted least squares. ln 2 is in two
// parts, of which the first has 15 bits: n times it is exact.
//
// Adding magic to x·log₂e rounds it to an integer, which is then in the low bits
// of the sum together with the bias of exponents: moved up by 23 bits it is 2ⁿ.
const (
	magic = 3<<22 + 127
	ln2hi = 0.693145751953125
	ln2lo = 1.42860677e-6
	// lowest is the smallest x of which e^x ≥ 2^−126, the smallest number that is
	// not denormal. e^x counts as 0 at and below it.
	lowest = 0xc2aeac4f
)

var poly = []uint32{0x3f800000, 0x3f800000, 0x3efffffe, 0x3e2aaa49, 0x3d2aac7a, 0x3c091d10, 0x3ab511e3}

// exp is e^x for x below 88.7, 0 for x ≤ lowest; NaN stays NaN.
func exp(k *kern, x *val) *val {
	p, n, scale := power(k, x, 1, magic)
	if k.exponents() { // the same bits, as the result is not denormal
		scale = n
	}
	return k.keep(p, scale, x, k.bits(lowest)) // far below, p and scale mean nothing
}

// logistic is t = ½·e^−x and 1 + e^−x, which may be +Inf while t may not. −x
// beyond 89 is 89, below −80 is −80.
func logistic(k *kern, x *val) (t, den *val) {
	x = k.max(k.number(-89), k.min(k.number(80), x))
	p, _, scale := power(k, x, -1, magic-1)
	t = k.mul(p, scale)
	return t, k.fma(t, k.number(2), k.number(1))
}

// power is e^(sign·x) as p(r), n, and 2ⁿ or, if bias is magic−1, half of it.
func power(k *kern, x *val, sign, bias float64) (p, n, scale *val) {
	m := k.fma(x, k.number(sign*math.Log2E), k.number(bias))
	n = k.sub(m, k.number(bias))
	scale = k.shift(m)
	// For sign −1 this is −r, and every other coefficient changes its sign.
	reduce := k.fnma
	if sign < 0 {
		reduce = k.fma
	}
	r := reduce(n, k.number(ln2lo), reduce(n, k.number(ln2hi), x))
	c := func(i int) *val {
		v := float64(math.Float32frombits(poly[i]))
		if i%2 == 1 {
			v *= sign
		}
		return k.number(v)
	}
	p = k.fma(r, c(6), c(5))
	for i := 4; i >= 0; i-- {
		p = k.fma(p, r, c(i))
	}
	return p, n, scale
}
