// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"testing"
)

// product is one of the three forms with its sizes.
type product struct {
	form          string
	m, n, k       int
	ldc, lda, ldb int
	acc           bool
}

// at are the indices of a[i,p] and b[p,j] in their slices.
func (g product) at(i, j, p int) (x, y int) {
	switch g.form {
	case "NT":
		return i*g.lda + p, j*g.ldb + p
	case "NN":
		return i*g.lda + p, p*g.ldb + j
	}
	return p*g.lda + i, p*g.ldb + j
}

func (g product) run(l Level, c, a, b, scratch []float32) {
	switch g.form {
	case "NT":
		l.GemmNT(c, a, b, g.m, g.n, g.k, g.ldc, g.lda, g.ldb, g.acc, scratch)
	case "NN":
		l.GemmNN(c, a, b, g.m, g.n, g.k, g.ldc, g.lda, g.ldb, g.acc, scratch)
	case "TN":
		l.GemmTN(c, a, b, g.m, g.n, g.k, g.ldc, g.lda, g.ldb, g.acc, scratch)
	}
}

// sizes are those of a and b.
func (g product) sizes() (a, b int) {
	switch g.form {
	case "NT":
		return span(g.m, g.k, g.lda), span(g.n, g.k, g.ldb)
	case "NN":
		return span(g.m, g.k, g.lda), span(g.k, g.n, g.ldb)
	}
	return span(g.k, g.m, g.lda), span(g.k, g.n, g.ldb)
}

// span is the length of a slice that ends with its last row.
func span(rows, cols, ld int) int {
	if rows == 0 {
		return 0
	}
	return (rows-1)*ld + cols
}

// randomProduct draws sizes; leading dimensions are often odd.
func (b bench) product(form string) product {
	g := product{form: form, m: b.size(65), n: b.size(300), k: b.size(300), acc: b.IntN(2) == 0}
	ca, cb := g.k, g.n
	if form == "NT" {
		cb = g.k
	}
	if form == "TN" {
		ca = g.m
	}
	g.ldc, g.lda, g.ldb = g.n+b.IntN(4), ca+b.IntN(4), cb+b.IntN(4)
	return g
}

// TestGemmTwin compares the three forms with float64 within the bound of a left
// fold, (k+1)·2⁻²⁴·Σ|a·b|, and with a plain left fold in float32, bit for bit.
func TestGemmTwin(t *testing.T) { each(t, testGemmTwin) }

func testGemmTwin(t *testing.T, l Level) {
	b := newBench(t, l)
	scratch := b.out(l.GemmScratch())
	for _, form := range []string{"NT", "NN", "TN"} {
		for range 60 {
			g := b.product(form)
			na, nb := g.sizes()
			a, bb := b.normal(na), b.normal(nb)
			c := b.out(span(g.m, g.n, g.ldc))
			if g.acc {
				for i := range g.m {
					copy(c[i*g.ldc:][:g.n], b.normal(g.n))
				}
			}
			old := append([]float32(nil), c...)
			g.run(l, c, a, bb, scratch)
			for i := range g.m {
				for j := range g.n {
					var f float32
					var want, size float64
					if g.acc {
						f = old[i*g.ldc+j]
						want, size = float64(f), math.Abs(float64(f))
					}
					for p := range g.k {
						x, y := g.at(i, j, p)
						f += float32(a[x] * bb[y])
						z := float64(a[x]) * float64(bb[y])
						want, size = want+z, size+math.Abs(z)
					}
					got := c[i*g.ldc+j]
					if math.Float32bits(got) != math.Float32bits(f) {
						t.Fatalf("%+v: c[%d,%d]: got %x, want the left fold %x", g, i, j, got, f)
					}
					if d := math.Abs(float64(got) - want); d > float64(g.k+1)*eps*size {
						t.Fatalf("%+v: c[%d,%d]: got %v, want %v", g, i, j, got, want)
					}
				}
				if i+1 < g.m {
					untouched(t, "between rows of c", c[i*g.ldc+g.n:(i+1)*g.ldc])
				}
			}
		}
	}
}

// TestGemmSpecial: Inf and NaN reach exactly the elements whose sums meet them,
// and denormal products are kept.
func TestGemmSpecial(t *testing.T) { each(t, testGemmSpecial) }

func testGemmSpecial(t *testing.T, l Level) {
	const m, n, k = 7, 9, 13
	for _, form := range []string{"NT", "NN", "TN"} {
		b := newBench(t, l)
		g := product{form: form, m: m, n: n, k: k, ldc: n, lda: k, ldb: n}
		if form == "NT" {
			g.ldb = k
		}
		if form == "TN" {
			g.lda = m
		}
		a, bb, c := b.zeros(m*k), b.zeros(n*k), b.out(m*n)
		x, y := g.at(2, 3, 5)
		a[x], bb[y] = 0x1p-100, 0x1p-49
		x, y = g.at(4, 6, 7)
		a[x], bb[y] = float32(math.Inf(1)), 1
		g.run(l, c, a, bb, make([]float32, l.GemmScratch()))
		for i := range m {
			for j := range n {
				got, want := c[i*n+j], float32(0)
				switch {
				case i == 4 && j == 6:
					want = float32(math.Inf(1))
				case i == 4: // Inf·0
					want = float32(math.NaN())
				case i == 2 && j == 3:
					want = 0x1p-149
				}
				same(t, form+" "+shape(i, j), []float32{got}, []float32{want})
			}
		}
	}
}

// TestGemmTiles cuts products along m, n and, with acc, k.
func TestGemmTiles(t *testing.T) { each(t, testGemmTiles) }

func testGemmTiles(t *testing.T, l Level) {
	b := newBench(t, l)
	scratch := make([]float32, l.GemmScratch())
	for _, form := range []string{"NT", "NN", "TN"} {
		for range 20 {
			g := b.product(form)
			if g.m*g.n*g.k == 0 {
				continue
			}
			g.acc = false
			na, nb := g.sizes()
			a, bb := b.normal(na), b.normal(nb)
			whole, parts := make([]float32, g.m*g.ldc), make([]float32, g.m*g.ldc)
			g.run(l, whole, a, bb, scratch)
			ms, ns, ks := b.cut(g.m), b.cut(g.n), b.cut(g.k)
			for i := range len(ms) - 1 {
				for j := range len(ns) - 1 {
					for p := range len(ks) - 1 {
						h := g
						h.m, h.n, h.k = ms[i+1]-ms[i], ns[j+1]-ns[j], ks[p+1]-ks[p]
						h.acc = p > 0
						x, y := g.at(ms[i], ns[j], ks[p])
						h.run(l, parts[ms[i]*g.ldc+ns[j]:], a[x:], bb[y:], scratch)
					}
				}
			}
			same(t, form, parts, whole)
		}
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, l := range Levels() {
		b.Run(l.String(), func(b *testing.B) { benchGemm(b, l) })
	}
}

func benchGemm(b *testing.B, l Level) {
	for _, s := range [][3]int{{256, 256, 256}, {64, 512, 512}, {1, 512, 512}, {64, 64, 64}, {64, 1024, 1024}} {
		for _, form := range []string{"NT", "NN", "TN"} {
			g := product{form, s[0], s[1], s[2], s[1], s[2], s[1], true}
			if form == "NT" {
				g.ldb = g.k
			}
			if form == "TN" {
				g.lda = g.m
			}
			na, nb := g.sizes()
			x, y := make([]float32, na), make([]float32, nb)
			c, scratch := make([]float32, g.m*g.n), make([]float32, l.GemmScratch())
			b.Run(form+"/"+shape(s[:]...), func(b *testing.B) {
				for b.Loop() {
					g.run(l, c, x, y, scratch)
				}
				report(b, 2*g.m*g.n*g.k)
			})
		}
	}
}
