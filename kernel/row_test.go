// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"testing"
)

// ids draws n ids of a vocabulary, some of them foreign to the rows first … first+V−1.
func (b bench) ids(n, first, V int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(first - 2 + b.IntN(V+4))
	}
	return x
}

func TestEmbed(t *testing.T) { each(t, testEmbed) }

func testEmbed(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 100 {
		N, V, D, first := b.size(65), 1+b.size(33), b.size(65), 2+b.IntN(50)
		ids, table := b.ids(N, first, V), b.normal(V*D)
		y := b.out(N * D)
		Embed(y, table, ids, D, first)
		want := make([]float32, N*D)
		for n, id := range ids {
			for d := range D {
				if v := int(id) - first; v >= 0 && v < V {
					want[n*D+d] = table[v*D+d]
				}
			}
		}
		same(t, "y", y, want)

		dy, dt := b.normal(N*D), b.normal(V*D)
		fold := append([]float32(nil), dt...)
		for n, id := range ids {
			for d := range D {
				if v := int(id) - first; v >= 0 && v < V {
					fold[v*D+d] += dy[n*D+d]
				}
			}
		}
		if D == 0 {
			continue
		}
		at, half := b.cut(D), N/2
		for i := range len(at) - 1 { // columns and tokens in parts
			l.EmbedGrad(dt, dy[:half*D], ids[:half], D, first, at[i], at[i+1])
			l.EmbedGrad(dt, dy[half*D:], ids[half:], D, first, at[i], at[i+1])
		}
		same(t, "dt", dt, fold)
	}
}

// rmsTwin is RMSNorm and its gradient in float64, with the sizes of what dx and
// dw add up.
func rmsTwin(x, w, dy []float64, eps float64) (y, dx, dw, dxSize, dwSize []float64) {
	D := len(w)
	y, dx, dw = make([]float64, len(x)), make([]float64, len(x)), make([]float64, D)
	dxSize, dwSize = make([]float64, len(x)), make([]float64, D)
	for n := 0; n < len(x); n += D {
		ss, c, cSize := 0.0, 0.0, 0.0
		for d := range D {
			ss += x[n+d] * x[n+d] / float64(D)
			c += w[d] * dy[n+d] * x[n+d] / float64(D)
			cSize += math.Abs(w[d] * dy[n+d] * x[n+d] / float64(D))
		}
		r := 1 / math.Sqrt(ss+eps)
		for d := range D {
			y[n+d] = w[d] * x[n+d] * r
			dx[n+d] = r * (w[d]*dy[n+d] - x[n+d]*r*r*c)
			dxSize[n+d] = r * (math.Abs(w[d]*dy[n+d]) + math.Abs(x[n+d]*r*r*cSize))
			dw[d] += dy[n+d] * x[n+d] * r
			dwSize[d] += math.Abs(dy[n+d] * x[n+d] * r)
		}
	}
	return y, dx, dw, dxSize, dwSize
}

// TestRMSNormTwin: the sum of squares has only positive terms, so its relative
// error is at most (D+1)·2⁻²⁴, half of which reaches the root; it grows like a
// random walk, and the budget is about twice what 30000 shapes showed.
func TestRMSNormTwin(t *testing.T) { each(t, testRMSNormTwin) }

func testRMSNormTwin(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 200 {
		N, D, e := b.size(17), b.size(300), float32(1e-5)
		x, w, dy := b.normal(N*D), b.normal(D), b.normal(N*D)
		if b.IntN(4) == 0 { // so small that eps decides
			l.Scale(x, x, 1e-4)
		}
		if D == 0 {
			l.RMSNorm(x, x, w, e)
			continue
		}
		y, dx, dw, dxSize, dwSize := rmsTwin(wide(x), wide(w), wide(dy), float64(e))
		tol := (float64(D)/8 + 8) * eps

		got := b.out(N * D)
		l.RMSNorm(got, x, w, e)
		near(t, "y "+shape(N, D), got, y, nil, tol)
		inPlace := append([]float32(nil), x...)
		l.RMSNorm(inPlace, inPlace, w, e)
		same(t, "y in place", inPlace, got)

		r := b.out(N)
		l.RMSNormInv(r, x, D, e)
		dxs := b.out(N * D)
		l.RMSNormGradX(dxs, dy, x, w, r)
		near(t, "dx "+shape(N, D), dxs, dx, dxSize, 2*tol)
		at, dws := b.cut(D), b.zeros(D)
		for i := range len(at) - 1 {
			l.RMSNormGradW(dws, dy[:N/2*D], x[:N/2*D], r[:N/2], at[i], at[i+1])
			l.RMSNormGradW(dws, dy[N/2*D:], x[N/2*D:], r[N/2:], at[i], at[i+1])
		}
		near(t, "dw "+shape(N, D), dws, dw, dwSize, tol+float64(N)*eps)
		once := make([]float32, D)
		l.RMSNormGradW(once, dy, x, r, 0, D)
		same(t, "dw in parts", dws, once)
	}
}

func TestRMSNormGradInPlace(t *testing.T) { each(t, testRMSNormGradInPlace) }

func testRMSNormGradInPlace(t *testing.T, l Level) {
	b := newBench(t, l)
	const N, D = 5, 67
	x, w, dy, r := b.normal(N*D), b.normal(D), b.normal(N*D), make([]float32, N)
	l.RMSNormInv(r, x, D, 1e-5)
	want := make([]float32, N*D)
	l.RMSNormGradX(want, dy, x, w, r)
	a := append([]float32(nil), x...)
	l.RMSNormGradX(a, dy, a, w, r)
	same(t, "dx on x", a, want)
	a = append([]float32(nil), dy...)
	l.RMSNormGradX(a, a, x, w, r)
	same(t, "dx on dy", a, want)
}

func TestRMSNormSpecial(t *testing.T) { each(t, testRMSNormSpecial) }

func testRMSNormSpecial(t *testing.T, l Level) {
	y, w, nan := make([]float32, 2), []float32{1, 1}, float32(math.NaN())
	l.RMSNorm(y, []float32{0, float32(math.Copysign(0, -1))}, w, 1e-5)
	same(t, "zeros", y, []float32{0, float32(math.Copysign(0, -1))})
	l.RMSNorm(y, []float32{1, nan}, w, 1e-5)
	same(t, "NaN", y, []float32{nan, nan})
	l.RMSNorm(y, []float32{1, float32(math.Inf(1))}, w, 1e-5)
	same(t, "Inf", y, []float32{0, nan})
	l.RMSNorm(y, []float32{0x1p-149, 0}, w, 0x1p-126) // the square underflows
	same(t, "denormal", y, []float32{0x1p-149 * 0x1p63, 0})
}

// TestRoPETwin: two products and a sum, of which each is at most the length of
// the pair.
func TestRoPETwin(t *testing.T) { each(t, testRoPETwin) }

func testRoPETwin(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 100 {
		G, K, P := 1+b.IntN(3), 2*b.size(33), 1+b.IntN(70)
		a := Heads{G * (1 + b.IntN(3)), G, K}
		N, W := b.size(33), a.Width()
		inv := make([]float64, K/2)
		for i := range inv {
			inv[i] = math.Pow(10000, -2*float64(i)/float64(K))
		}
		cos, sin := b.out(P*K/2), b.out(P*K/2)
		RoPETable(cos, sin, inv)
		pos := make([]int32, N)
		for n := range pos {
			pos[n] = int32(b.IntN(P))
		}
		x, y := b.normal(N*W), b.out(N*W)
		want, size := wide(x), wide(x)
		for n := range N {
			for j := range (a.H + a.G) * K / 2 {
				p, i := n*W+j/(K/2)*K+j%(K/2), j%(K/2)
				s, c := math.Sincos(float64(pos[n]) * inv[i])
				u, v := want[p], want[p+K/2]
				want[p], want[p+K/2] = u*c-v*s, v*c+u*s
				size[p] = math.Hypot(u, v)
				size[p+K/2] = size[p]
			}
		}
		for i := range size {
			size[i] = math.Abs(size[i])
		}
		l.RoPE(y, x, pos, cos, sin, a, false)
		near(t, "y", y, want, size, 4*eps)
		z := append([]float32(nil), x...)
		l.RoPE(z, z, pos, cos, sin, a, false)
		same(t, "y in place", z, y)
		l.RoPE(z, z, pos, cos, sin, a, true)
		near(t, "turned back", z, wide(x), size, 8*eps)
	}
}

func TestSwiGLUTwin(t *testing.T) { each(t, testSwiGLUTwin) }

func testSwiGLUTwin(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 100 {
		N, F := b.size(17), b.size(129)
		x, dy := b.normal(2*N*F), b.normal(N*F)
		l.Scale(x, x, 4)
		y, dx := b.out(N*F), b.out(2*N*F)
		want, dwant, size := make([]float64, N*F), make([]float64, 2*N*F), make([]float64, 2*N*F)
		for n := range N {
			for f := range F {
				i := 2*n*F + f
				a, u, g := float64(x[i]), float64(x[i+F]), float64(dy[n*F+f])
				s := 1 / (1 + math.Exp(-a))
				want[n*F+f] = a * s * u
				dwant[i], dwant[i+F] = g*u*s*(1+a*(1-s)), g*a*s
				size[i], size[i+F] = math.Abs(g*u*s*(1+math.Abs(a*(1-s)))), math.Abs(g*a*s)
			}
		}
		l.SwiGLU(y, x, F)
		ulp := map[bool]float64{true: 1, false: 2}[l == Portable] // float64 or float32
		near(t, "y", y, want, nil, 2.5*ulp*eps)
		l.SwiGLUGrad(dx, dy, x, F)
		near(t, "dx", dx, dwant, size, 1.5*ulp*ulp*eps)
		l.SwiGLUGrad(x, dy, x, F)
		same(t, "dx in place", x, dx)
	}
}
