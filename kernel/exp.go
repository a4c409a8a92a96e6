// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "math"

// Exp32 is e^x, rounded to float32.
//
//	x = n·ln 2 + r, |r| ≤ ½ ln 2;  e^x = 2ⁿ · (1 + r + r²·q(r))
//
// The error is below 0.6 units in the last place, denormal results included.
// Exp32(NaN) is NaN, Exp32(+Inf) is +Inf, Exp32(−Inf) is 0. Every host gets the
// same bits: math.Exp is assembly on some and may be fused on others.
func Exp32(x float32) float32 { return float32(exp64(x)) }

// exp64 is e^x in float64 with a relative error of 3.1e-9. Outside [−708, 708],
// far beyond what float32 can hold, it is 0, +Inf or NaN.
//
// In float64 n·ln 2 needs no splitting, 2ⁿ cannot leave the range, and the one
// rounding to float32 makes denormal numbers and Inf where they are due.
func exp64(x float32) float64 {
	if !(x >= -708 && x <= 708) {
		return expFar(x)
	}
	const (
		magic = 3 << 51 // adding it rounds to an integer, kept in the low bits
		q0    = 0x1.fffffb97a4a99p-2
		q1    = 0x1.5554910417d58p-3
		q2    = 0x1.5558f2f6fea37p-5
		q3    = 0x1.123a1f5092679p-7
		q4    = 0x1.6a23cecbc79bcp-10
	)
	s := float64(float64(x)*math.Log2E) + magic
	r := float64(x) - float64((s-magic)*math.Ln2)
	rr := float64(r * r)
	// q by Estrin's scheme: minimax in relative error of e^r, fitted by Lawson's
	// reweighted least squares on 800 Chebyshev nodes.
	q := q0 + float64(q1*r) + float64(rr*(q2+float64(q3*r)+float64(q4*rr)))
	return float64((1 + r + float64(rr*q)) * math.Float64frombits((math.Float64bits(s)+1023)<<52))
}

// expFar is exp64 outside its range.
func expFar(x float32) float64 {
	switch {
	case x < 0:
		return 0
	case x > 0:
		return math.Inf(1)
	}
	return float64(x) // NaN
}

// sigmoid is 1/(1+e^−x) in float64.
func sigmoid(x float32) float64 { return 1 / (1 + exp64(-x)) }

// SiLU is x/(1+e^−x), Hendrycks & Gimpel, "Gaussian Error Linear Units", 2016,
// arXiv:1606.08415, section 4, rounded to float32 once. SiLU(−Inf) is NaN, as in
// PyTorch.
func SiLU(x float32) float32 { return float32(float64(x) * sigmoid(x)) }

// logOf is the natural logarithm of a positive finite x, the same bits on every
// host, with a relative error below 1e-15. Other values go to math.Log.
//
//	x = m·2ᵉ, √½ ≤ m < √2;  log x = e·ln 2 + 2·artanh s,  s = (m−1)/(m+1)
func logOf(x float64) float64 {
	if !(x >= 0x1p-1022 && x <= math.MaxFloat64) {
		return math.Log(x)
	}
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := (m - 1) / (m + 1)
	ss := float64(s * s)
	p := float64(ss * (1.0 / 25)) // |s| ≤ 0.172: the next term is below 1e-21
	p = float64(ss * (1.0/23 + p))
	p = float64(ss * (1.0/21 + p))
	p = float64(ss * (1.0/19 + p))
	p = float64(ss * (1.0/17 + p))
	p = float64(ss * (1.0/15 + p))
	p = float64(ss * (1.0/13 + p))
	p = float64(ss * (1.0/11 + p))
	p = float64(ss * (1.0/9 + p))
	p = float64(ss * (1.0/7 + p))
	p = float64(ss * (1.0/5 + p))
	p = float64(ss * (1.0/3 + p))
	return float64(float64(e)*math.Ln2) + (2*s + float64(2*s*p))
}
