// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"slices"
	"testing"

	"pleach/half"
)

// run16 is run for operands of bf16.
func (g product) run16(l Level, c []float32, a, b []uint16, scratch []float32) {
	switch g.form {
	case "NT":
		l.GemmNT16(c, a, b, g.m, g.n, g.k, g.ldc, g.lda, g.ldb, g.acc, scratch)
	case "NN":
		l.GemmNN16(c, a, b, g.m, g.n, g.k, g.ldc, g.lda, g.ldb, g.acc, scratch)
	case "TN":
		l.GemmTN16(c, a, b, g.m, g.n, g.k, g.ldc, g.lda, g.ldb, g.acc, scratch)
	}
}

// halves is n normal numbers of bf16, that end or begin at a page which must not be
// touched.
func (b bench) halves(n int) []uint16 {
	x := asBF16(b.normal((n + 1) / 2))
	x = x[len(x)-n:]
	half.F32ToBF16(x, b.normal(n))
	return x
}

// pairTwin is one step of VDPBF16PS: the second product first, each added with one
// rounding; denormal numbers are zeros.
func pairTwin(c float32, a0, a1, b0, b1 uint16) float32 {
	return flushedFMA(a0, b0, flushedFMA(a1, b1, c))
}

// flushedFMA is x·y + c. The product has 16 bits: the sum in float64 is exact, or
// far from the middle of two float32, so rounding it twice is rounding it once. A
// result is flushed if it is denormal after it was rounded to 24 bits, hence the
// middle between 2⁻¹²⁶ and the number of 24 bits below it.
func flushedFMA(x, y uint16, c float32) float32 {
	s := float64(flushed(half.FromBF16(x)))*float64(flushed(half.FromBF16(y))) + float64(flushed(c))
	if math.Abs(s) < 0x1p-126-0x1p-151 {
		return float32(math.Copysign(0, s))
	}
	return float32(s)
}

func flushed(x float32) float32 {
	if math.Float32bits(x)&0x7f800000 == 0 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// fold16 is element i,j of a product as the level adds, from c.
func (g product) fold16(l Level, c float32, a, b []uint16, i, j int) float32 {
	for p := 0; p < g.k && l.tiled(); p += 32 {
		c = g.tile16(c, a, b, i, j, p)
	}
	for p := 0; p < g.k && !l.tiled(); p++ {
		x, y := g.at(i, j, p)
		if !l.paired() {
			c = l.addProduct(c, half.FromBF16(a[x]), half.FromBF16(b[y]))
			continue
		}
		var a1, b1 uint16
		if p++; p < g.k {
			x, y := g.at(i, j, p)
			a1, b1 = a[x], b[y]
		}
		c = pairTwin(c, a[x], a1, b[y], b1)
	}
	return c
}

// TestGemm16Twin compares the three forms with their definition, bit for bit, on
// normal numbers and on any bits.
func TestGemm16Twin(t *testing.T) { each16(t, testGemm16Twin) }

func testGemm16Twin(t *testing.T, l Level) {
	b := newBench(t, l)
	scratch := b.out(l.GemmScratch16())
	for _, form := range []string{"NT", "NN", "TN"} {
		for n := range 60 {
			g := b.product(form)
			if n%2 == 0 { // mostly even in practice
				g.k, g.lda, g.ldb, g.ldc = 2*g.k, 2*g.lda, 2*g.ldb, 2*g.ldc
			}
			na, nb := g.sizes()
			a, bb := b.halves(na), b.halves(nb)
			if n%5 == 0 {
				for i := range a {
					a[i] = uint16(b.Uint32())
				}
			}
			c := b.out(span(g.m, g.n, g.ldc))
			if g.acc {
				for i := range g.m {
					copy(c[i*g.ldc:][:g.n], b.normal(g.n))
				}
			}
			old := slices.Clone(c)
			g.run16(l, c, a, bb, scratch)
			for i := range g.m {
				for j := range g.n {
					var first float32
					if g.acc {
						first = old[i*g.ldc+j]
					}
					same(t, g.form, c[i*g.ldc+j:][:1], []float32{g.fold16(l, first, a, bb, i, j)})
					if t.Failed() {
						t.Fatalf("%+v at %d, %d", g, i, j)
					}
				}
				if i+1 < g.m {
					untouched(t, "between rows of c", c[i*g.ldc+g.n:(i+1)*g.ldc])
				}
			}
		}
	}
}

// TestGemm16Error: the sums are those of float64 within the bound of a left fold;
// products of bf16 are exact.
func TestGemm16Error(t *testing.T) { each16(t, testGemm16Error) }

func testGemm16Error(t *testing.T, l Level) {
	const m, n, k = 9, 50, 700
	b := newBench(t, l)
	g := product{form: "NT", m: m, n: n, k: k, ldc: n, lda: k, ldb: k}
	a, bb, c := b.halves(m*k), b.halves(n*k), make([]float32, m*n)
	g.run16(l, c, a, bb, make([]float32, l.GemmScratch16()))
	for i := range m {
		for j := range n {
			var want, size float64
			for p := range k {
				z := float64(half.FromBF16(a[i*k+p])) * float64(half.FromBF16(bb[j*k+p]))
				want, size = want+z, size+math.Abs(z)
			}
			if d := math.Abs(float64(c[i*n+j]) - want); d > float64(k+1)*eps*size {
				t.Errorf("c[%d,%d]: got %v, want %v", i, j, c[i*n+j], want)
			}
		}
	}
}

// TestGemm16Tiles: cutting m, n and, where it may be cut, k changes no bit, and a product
// of few rows has the bits of many.
func TestGemm16Tiles(t *testing.T) { each16(t, testGemm16Tiles) }

func testGemm16Tiles(t *testing.T, l Level) {
	b := newBench(t, l)
	scratch := make([]float32, l.GemmScratch16())
	for _, form := range []string{"NT", "NN", "TN"} {
		for range 20 {
			g := b.product(form)
			if g.m*g.n*g.k == 0 {
				continue
			}
			g.acc = false
			na, nb := g.sizes()
			a, bb := b.halves(na), b.halves(nb)
			whole := make([]float32, span(g.m, g.n, g.ldc))
			g.run16(l, whole, a, bb, scratch)
			parts := make([]float32, len(whole))
			mi, nj, kp := b.IntN(g.m+1), b.IntN(g.n+1), b.IntN(g.k+1)/l.Together16()*l.Together16()
			for _, i := range [][2]int{{0, mi}, {mi, g.m}} {
				for _, j := range [][2]int{{0, nj}, {nj, g.n}} {
					for _, p := range [][2]int{{0, kp}, {kp, g.k}} {
						cut := g
						cut.m, cut.n, cut.k, cut.acc = i[1]-i[0], j[1]-j[0], p[1]-p[0], p[0] > 0
						if cut.m*cut.n == 0 || p[0] == p[1] && p[0] > 0 {
							continue
						}
						x, y := g.at(i[0], j[0], p[0])
						cut.run16(l, parts[i[0]*g.ldc+j[0]:], a[min(x, na):], bb[min(y, nb):], scratch)
					}
				}
			}
			for i := range g.m {
				same(t, form, parts[i*g.ldc:][:g.n], whole[i*g.ldc:][:g.n])
			}
		}
	}
}

// TestLevelsOrder: a processor has what plain Go needs, and the best comes last.
func TestLevelsOrder(t *testing.T) {
	has := Levels()
	if has[0] != Portable || Best() != has[len(has)-1] {
		t.Errorf("got %v, want %v first and the best, %v, last", has, Portable, Best())
	}
}
