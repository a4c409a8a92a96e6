// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "math"

// Heads is the shape of fused rows: H query heads, then G key heads, then G
// value heads, of K elements each. G divides H; query head h reads key and value
// head h·G/H.
type Heads struct{ H, G, K int }

// Width is the number of elements of a fused row, (H+2G)K.
func (a Heads) Width() int { return (a.H + 2*a.G) * a.K }

// RoPETable fills cos and sin, [P,len(inv)] each, for the positions 0 … P−1.
//
//	cos[p,i] = cos(p·inv[i]),  sin[p,i] = sin(p·inv[i])
//
// inv has K/2 inverse frequencies in radians per position, scaling already
// applied. Angles are float64 and the results are rounded once.
func RoPETable(cos, sin []float32, inv []float64) {
	for p := range rows(len(cos), len(inv)) {
		for i, f := range inv {
			s, c := math.Sincos(float64(p) * f)
			cos[p*len(inv)+i], sin[p*len(inv)+i] = float32(c), float32(s)
		}
	}
}

// RoPE turns the query and key heads of fused rows by their position, and copies
// the value heads.
//
//	y[i]     = x[i]·cos − x[i+K/2]·sin
//	y[i+K/2] = x[i+K/2]·cos + x[i]·sin      with cos[p,i], sin[p,i]
//
// for each of the H+G heads of row n and 0 ≤ i < K/2, p = positions[n]. inverse
// turns back, which is the gradient. x and y are [N,(H+2G)K] with N =
// len(positions), cos and sin are [P,K/2] with P > all positions. y may be x
// itself, but must not overlap it otherwise. A row needs only itself.
//
// Su et al., "RoFormer", 2021, arXiv:2104.09864, section 3.2.2.
//
// Differs: the paper turns neighbours 2i, 2i+1; Hugging Face's Llama weights are
// permuted for pairs i, i+K/2, and so are ours.
func (l Level) RoPE(y, x []float32, positions []int32, cos, sin []float32, a Heads, inverse bool) {
	half, W := a.K/2, a.Width()
	for n, p := range positions {
		xs, ys := x[n*W:][:W], y[n*W:][:W]
		cs, ss := cos[int(p)*half:][:half], sin[int(p)*half:][:half]
		if l != Portable {
			turnHeads(l, ys, xs, cs, ss, a.H+a.G, a.K, inverse)
			copy(ys[(a.H+a.G)*a.K:], xs[(a.H+a.G)*a.K:])
			continue
		}
		for j := 0; j < (a.H+a.G)*a.K; j += a.K {
			turn(ys[j:][:half], ys[j+half:][:half], xs[j:][:half], xs[j+half:][:half], cs, ss, inverse)
		}
		copy(ys[(a.H+a.G)*a.K:], xs[(a.H+a.G)*a.K:])
	}
}

// turn is one head of RoPE: halves u, v of x to halves y, z.
func turn(y, z, u, v, cos, sin []float32, inverse bool) {
	n := len(cos)
	y, z, u, v, sin = y[:n], z[:n], u[:n], v[:n], sin[:n]
	if inverse {
		for i, c := range cos {
			s, a, b := sin[i], u[i], v[i]
			y[i] = float32(a*c) + float32(b*s)
			z[i] = float32(b*c) - float32(a*s)
		}
		return
	}
	for i, c := range cos {
		s, a, b := sin[i], u[i], v[i]
		y[i] = float32(a*c) - float32(b*s)
		z[i] = float32(b*c) + float32(a*s)
	}
}

// turnHeads is RoPE of the heads of a row in assembly, where the second product
// of each sum is fused.
func turnHeads(l Level, y, x, cos, sin []float32, heads, K int, inverse bool) {
	half, sign := len(cos), float32(1)
	if inverse {
		sign = -1
	}
	y, x = y[:heads*K], x[:heads*K]
	w := whole(half)
	if w > 0 && heads > 0 {
		atTurn(l, &y[0], &y[half], &x[0], &x[half], &cos[0], &sin[0], w, heads, 4*(K-w), sign)
	}
	if w < half {
		turnEnds(l, y, x, cos[w:], sin[w:], heads, K, sign)
	}
}

// turnEnds turns the ends of halves, fewer than 16 elements each, those of as
// many heads at a time as fit a vector.
func turnEnds(l Level, y, x, cos, sin []float32, heads, K int, sign float32) {
	var u, v, c, s [lanes]float32
	n, half := len(cos), K/2
	fit := lanes / n
	for i := range fit {
		copy(c[i*n:], cos)
		copy(s[i*n:], sin)
	}
	for first := 0; first < heads; first += fit {
		last := min(first+fit, heads)
		for h, at := first, 0; h < last; h, at = h+1, at+n {
			end := x[h*K : h*K+2*half]
			copy(u[at:at+n], end[half-n:half])
			copy(v[at:at+n], end[2*half-n:])
		}
		atTurn(l, &u[0], &v[0], &u[0], &v[0], &c[0], &s[0], lanes, 1, 0, sign)
		for h, at := first, 0; h < last; h, at = h+1, at+n {
			end := y[h*K : h*K+2*half]
			copy(end[half-n:half], u[at:at+n])
			copy(end[2*half-n:], v[at:at+n])
		}
	}
}
