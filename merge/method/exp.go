// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "math"

// The functions of package math are written in assembly for some processors and have
// other bits there. These have the same on all.

// ln 2 in two parts, the first with zeros at the end so that products with small
// integers are exact.
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// sqrtHalf is the bits of √½.
const sqrtHalf = 0x3FE6A09E667F3BCD

// exp is eˣ of x ≤ 0 within two units in the last place, and 0 where it is below
// 2⁻¹⁰²⁰. That of a NaN is a NaN.
//
//	x = k·ln 2 + r with |r| ≤ ½·ln 2;  eˣ = 2ᵏ·Σ rⁱ/i!, i < 14
func exp(x float64) float64 {
	if !(x > -707) {
		if x != x {
			return x
		}
		return 0
	}
	k := int(float64(x*(1/math.Ln2)) - 0.5)
	r := x - float64(float64(k)*ln2Hi) - float64(float64(k)*ln2Lo)
	z := float64(r * r)
	y := 1.0/479001600 + float64(r*(1.0/6227020800))
	y = float64(y*z) + (1.0/3628800 + float64(r*(1.0/39916800)))
	y = float64(y*z) + (1.0/40320 + float64(r*(1.0/362880)))
	y = float64(y*z) + (1.0/720 + float64(r*(1.0/5040)))
	y = float64(y*z) + (1.0/24 + float64(r*(1.0/120)))
	y = float64(y*z) + (1.0/2 + float64(r*(1.0/6)))
	y = float64(y*z) + r + 1
	return y * math.Float64frombits(uint64(k+1023)<<52)
}

// log is ln x of a normal x > 0 within a few units in the last place, or of 2⁻⁵³ near 1.
// That of a NaN is a NaN.
//
//	x = 2ᵏ·m with √½ ≤ m < √2;  ln x = k·ln 2 + Σ 2·s²ⁱ⁺¹/(2i+1), i < 12, s = (m−1)/(m+1)
func log(x float64) float64 {
	if x != x {
		return x
	}
	b := math.Float64bits(x)
	k := int64(b-sqrtHalf) >> 52
	m := math.Float64frombits(b - uint64(k)<<52)
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	u := float64(z * z)
	y := 2.0/21 + float64(z*(2.0/23))
	y = float64(y*u) + (2.0/17 + float64(z*(2.0/19)))
	y = float64(y*u) + (2.0/13 + float64(z*(2.0/15)))
	y = float64(y*u) + (2.0/9 + float64(z*(2.0/11)))
	y = float64(y*u) + (2.0/5 + float64(z*(2.0/7)))
	y = float64(y*u) + (2 + float64(z*(2.0/3)))
	return float64(float64(k)*ln2Hi) + (float64(s*y) + float64(float64(k)*ln2Lo))
}
