// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"testing"
	"time"
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

// addProduct is s + x·y as the level rounds it: fused, or the product first.
func (l Level) addProduct(s, x, y float32) float32 {
	if l == Portable {
		return s + float32(x*y)
	}
	return fma32(x, y, s)
}

// fma32 is x·y + z rounded once: the product is exact in float64, and a sum that
// is not is made odd, so that rounding it again is rounding once.
func fma32(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	b := s - p
	if e := (p - (s - b)) + (c - b); e != 0 && !math.IsInf(s, 0) && math.Float64bits(s)&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
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
						f = l.addProduct(f, a[x], bb[y])
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

// TestMultiply packs a whole operand and multiplies tiles of the result, cut at
// panels as several workers do it, and gets the bits of one product.
func TestMultiply(t *testing.T) { each(t, testMultiply) }

func testMultiply(t *testing.T, l Level) {
	b := newBench(t, l)
	scratch := b.out(l.GemmScratch())
	for _, form := range []string{"NT", "NN", "TN"} {
		for range 12 {
			g := b.product(form)
			if g.m*g.n*g.k == 0 {
				continue
			}
			na, nb := g.sizes()
			x, y := b.normal(na), b.normal(nb)
			whole := b.normal(span(g.m, g.n, g.ldc))
			parts := append([]float32(nil), whole...)
			g.run(l, whole, x, y, scratch)
			panels := b.out(l.PanelLen(g.n, g.k))
			width := (1 + b.IntN(3)) * l.PanelWidth()
			for j := 0; j < g.n; j += width {
				n := min(width, g.n-j)
				if form == "NT" {
					l.PackNT(panels[l.PanelLen(j, g.k):], y[j*g.ldb:], n, g.k, g.ldb)
				} else {
					l.PackNN(panels[l.PanelLen(j, g.k):], y[j:], n, g.k, g.ldb)
				}
			}
			ms := b.cut(g.m)
			for i := range len(ms) - 1 {
				for j := 0; j < g.n; j += width {
					m, n := ms[i+1]-ms[i], min(width, g.n-j)
					c, p := parts[ms[i]*g.ldc+j:], panels[l.PanelLen(j, g.k):]
					if form == "TN" {
						l.MultiplyT(c, x[ms[i]:], p, m, n, g.k, g.ldc, g.lda, g.acc)
					} else {
						l.MultiplyN(c, x[ms[i]*g.lda:], p, m, n, g.k, g.ldc, g.lda, g.acc)
					}
				}
			}
			same(t, form, parts, whole)
		}
	}
}

// TestGemmLong: dimensions beyond every block, one at a time.
func TestGemmLong(t *testing.T) { each(t, testGemmLong) }

func testGemmLong(t *testing.T, l Level) {
	const long = 65_537
	b := newBench(t, l)
	scratch := make([]float32, l.GemmScratch())
	for _, s := range [][3]int{{long, 3, 2}, {2, long, 3}, {3, 2, long}} {
		m, n, k := s[0], s[1], s[2]
		x, y := b.normal(m*k), b.normal(k*n)
		want := make([]float32, m*n)
		for i := range m {
			for j := range n {
				for p := range k {
					want[i*n+j] = l.addProduct(want[i*n+j], x[i*k+p], y[p*n+j])
				}
			}
		}
		got := b.out(m * n)
		l.GemmNN(got, x, y, m, n, k, n, k, n, false, scratch)
		same(t, "NN "+shape(m, n, k), got, want)
		turned := make([]float32, n*k)
		transpose(turned, y, k, n, k, n)
		l.GemmNT(got, x, turned, m, n, k, n, k, k, false, scratch)
		same(t, "NT "+shape(m, n, k), got, want)
		turned = make([]float32, m*k)
		transpose(turned, x, m, k, m, k)
		l.GemmTN(got, turned, y, m, n, k, n, m, n, false, scratch)
		same(t, "TN "+shape(m, n, k), got, want)
	}
}

// BenchmarkGemm multiplies as an engine does: B packed once for all, then tiles of
// rows. Beside each figure is its share of the peak measured right before.
func BenchmarkGemm(b *testing.B) {
	for _, l := range Levels() {
		for _, s := range [][3]int{{2048, 512, 512}, {2048, 1376, 512}, {2048, 512, 1376}, {512, 512, 512}, {1024, 1024, 1024}} {
			for _, form := range []string{"NT", "NN", "TN"} {
				b.Run(l.String()+"/"+form+"/"+shape(s[:]...), func(b *testing.B) { benchProduct(b, l, form, s) })
			}
		}
		b.Run(l.String()+"/NT/[1 1024 1024]", func(b *testing.B) {
			x, w, y := make([]float32, 1024), make([]float32, 1<<20), make([]float32, 1024)
			scratch := make([]float32, l.GemmScratch())
			for b.Loop() {
				l.GemmNT(y, x, w, 1, 1024, 1024, 1024, 1024, 1024, false, scratch)
			}
			b.ReportMetric(4*float64(b.N)*float64(len(w))/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
}

func benchProduct(b *testing.B, l Level, form string, s [3]int) {
	N, O, I := s[0], s[1], s[2] // tokens, outputs, inputs of a linear layer
	x, w, y := make([]float32, N*I), make([]float32, O*I), make([]float32, N*O)
	panels := make([]float32, max(l.PanelLen(O, I), l.PanelLen(I, O), l.PanelLen(I, N)))
	run := map[string]func(){
		"NT": func() {
			l.PackNT(panels, w, O, I, I)
			for i := 0; i < N; i += 256 {
				l.MultiplyN(y[i*O:], x[i*I:], panels, min(256, N-i), O, I, O, I, false)
			}
		},
		"NN": func() {
			l.PackNN(panels, w, I, O, I)
			for i := 0; i < N; i += 256 {
				l.MultiplyN(x[i*I:], y[i*O:], panels, min(256, N-i), I, O, I, O, false)
			}
		},
		"TN": func() {
			l.PackNN(panels, x, I, N, I)
			for i := 0; i < O; i += blockM {
				l.MultiplyT(w[i*I:], y[i:], panels, min(blockM, O-i), I, N, I, O, true)
			}
		},
	}[form]
	top := 0.0
	for range 3 {
		begin := time.Now()
		top = max(top, float64(l.PeakFLOPs(200_000))/time.Since(begin).Seconds())
	}
	for b.Loop() {
		run()
	}
	reached := 2 * float64(N) * float64(O) * float64(I) * float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(reached/1e9, "GF/s")
	if top > 0 {
		b.ReportMetric(100*reached/top, "%peak")
	}
}
