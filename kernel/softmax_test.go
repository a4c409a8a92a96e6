// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"slices"
	"testing"
)

// ulpOfExp is what e^x in assembly may be off by, in units in the last place.
const ulpOfExp = 0.9

// TestExpVector: every 4093rd float32, and the range with results evenly.
func TestExpVector(t *testing.T) { each(t, testExpVector) }

func testExpVector(t *testing.T, l Level) {
	if l == Portable {
		t.Skip("Exp32 has its own test")
	}
	var x []float32
	for u := uint64(0); u < 1<<32; u += 4093 {
		x = append(x, math.Float32frombits(uint32(u)))
	}
	for i := range 400_000 {
		x = append(x, -88+float32(i)*(176.0/400_000))
	}
	y := make([]float32, len(x))
	eachExp(l, y, x, 0)
	worst, at := 0.0, float32(0)
	for i, x := range x {
		switch {
		case x != x:
			if y[i] == y[i] {
				t.Fatalf("exp(NaN): got %v", y[i])
			}
		case x <= expLowest:
			equal(t, "exp far below", y[i], 0)
		case x <= 88:
			if u := ulps(y[i], math.Exp(float64(x))); !(u <= worst) {
				worst, at = u, x
			}
		}
	}
	t.Logf("worst error %.3f ulp at %x", worst, at)
	if !(worst <= ulpOfExp) {
		t.Errorf("exp(%x): off by %v ulp, want ≤ %v", at, worst, ulpOfExp)
	}
}

func TestSiLUVector(t *testing.T) { each(t, testSiLUVector) }

func testSiLUVector(t *testing.T, l Level) {
	const n = 200_001
	x := make([]float32, 2*n)
	for i := range n {
		x[i], x[n+i] = -110+float32(i)*(220.0/n), 1
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	copy(x, []float32{inf, -inf, nan, math.MaxFloat32, 0})
	y, worst := make([]float32, n), 0.0
	l.SwiGLU(y, x, n)
	same(t, "SiLU of Inf, −Inf, NaN, the largest, 0", y[:5], []float32{inf, nan, nan, math.MaxFloat32, 0})
	for i, v := range x[5:n] {
		want := float64(v) / (1 + math.Exp(-float64(v)))
		if math.Abs(want) < 0x1p-120 && math.Abs(float64(y[5+i])) < 0x1p-120 {
			continue // e^−x is beyond float32
		}
		worst = max(worst, ulps(y[5+i], want))
	}
	t.Logf("worst error %.3f ulp", worst)
	if !(worst <= 2.5) {
		t.Errorf("SiLU: off by %v ulp, want ≤ 2.5", worst)
	}
}

// probability is e^x, 0 where that is too small to count.
func probability(x float64) float64 {
	if x <= float64(expLowest) {
		return 0
	}
	return math.Exp(x)
}

// scores are rows of products, of which some are masked; a row may be all masked
// or have a NaN.
func (b bench) scores(rows, ld int) []float32 {
	s := b.normal((rows-1)*ld + attnTile)
	for i := range rows {
		r := s[i*ld:][:attnTile]
		b.mask(r)
		for j := range r {
			r[j] *= 20
		}
	}
	return s
}

func (b bench) mask(r []float32) {
	lo, hi := b.IntN(attnTile), attnTile-b.IntN(attnTile)
	for j := range r {
		if j < lo || j >= hi {
			r[j] = negInf()
		}
	}
}

func TestSoftmaxRows(t *testing.T) { each(t, testSoftmaxRows) }

func testSoftmaxRows(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 30 {
		rows, ld := 1+b.IntN(150), attnTile+b.IntN(40)
		scale := float32(b.Float64())
		top, sum, corr := b.out(rows), b.zeros(rows), b.out(rows)
		for i := range top {
			top[i] = negInf()
		}
		wtop, wsum := wide(top), make([]float64, rows)
		for range 3 {
			s := b.scores(rows, ld)
			old := slices.Clone(s)
			l.softmaxRows(s, ld, rows, scale, top, sum, corr)
			for i := range rows {
				want, size := make([]float64, attnTile), make([]float64, attnTile)
				m := wtop[i]
				for j, v := range old[i*ld:][:attnTile] {
					want[j] = float64(scale * v)
					m = max(m, want[j])
				}
				equal(t, "top", float64(top[i]), m)
				c := 0.0
				if !math.IsInf(wtop[i], -1) {
					c = probability(wtop[i] - m)
				}
				total := wsum[i] * c
				for j, z := range want {
					want[j] = 0
					if !math.IsInf(z, -1) {
						want[j] = probability(z - m)
					}
					size[j] = want[j] * (2 + math.Abs(z-m))
					total += want[j]
					if math.IsInf(z, -1) {
						size[j] = 0
					}
				}
				near(t, "exponentials", s[i*ld:][:attnTile], want, size, 2*eps)
				if i+1 < rows {
					same(t, "gap", s[i*ld+attnTile:(i+1)*ld], old[i*ld+attnTile:(i+1)*ld])
				}
				cSize := 0.0
				if c > 0 {
					cSize = c * (2 + m - wtop[i])
				}
				near(t, "corr", corr[i:i+1], []float64{c}, []float64{cSize}, 2*eps)
				wtop[i], wsum[i] = m, total
			}
			near(t, "sum", sum, wsum, nil, 200*eps)
		}
	}
}

// TestSoftmaxRowsAlone: a row does not depend on the others.
func TestSoftmaxRowsAlone(t *testing.T) { each(t, testSoftmaxRowsAlone) }

func testSoftmaxRowsAlone(t *testing.T, l Level) {
	b := newBench(t, l)
	const rows = 131
	s := b.scores(rows, attnTile)
	s[5*attnTile+7] = float32(math.NaN())
	s[6*attnTile+1] = float32(math.Inf(1))
	one := slices.Clone(s)
	vs := [2][3][]float32{}
	for i := range vs {
		vs[i] = [3][]float32{make([]float32, rows), make([]float32, rows), make([]float32, rows)}
		for j := range rows {
			vs[i][0][j], vs[i][1][j] = float32(j%7)-3, float32(j)
		}
	}
	l.softmaxRows(s, attnTile, rows, 0.125, vs[0][0], vs[0][1], vs[0][2])
	at := b.cut(rows)
	for i := range len(at) - 1 {
		i, j := at[i], at[i+1]
		l.softmaxRows(one[i*attnTile:], attnTile, j-i, 0.125, vs[1][0][i:], vs[1][1][i:], vs[1][2][i:])
	}
	same(t, "exponentials", one, s)
	for i, what := range []string{"top", "sum", "corr"} {
		same(t, what, vs[1][i], vs[0][i])
	}
	if v := vs[0][1][5]; v == v {
		t.Errorf("sum of a row with a NaN: got %v", v)
	}
	if v := vs[0][1][6]; v == v {
		t.Errorf("sum of a row with Inf: got %v", v)
	}
}

// TestSoftmaxZero: what is far below the maximum is 0, not a denormal number.
func TestSoftmaxZero(t *testing.T) { each(t, testSoftmaxZero) }

func testSoftmaxZero(t *testing.T, l Level) {
	s := make([]float32, attnTile)
	for j := range s {
		s[j] = -80 - float32(j)/4
	}
	s[0] = 0
	p, d := slices.Clone(s), slices.Clone(s)
	one := []float32{0}
	l.softmaxRows(s, attnTile, 1, 1, []float32{negInf()}, one, []float32{0})
	l.softmaxGradRows(p, d, attnTile, 1, 1, []float32{0}, []float32{-100})
	for j, v := range s {
		if v != 0 && v < 0x1p-126 || p[j] != v || v == 0 && d[j] != 0 {
			t.Errorf("element %d: got %v, %v and %v", j, v, p[j], d[j])
		}
	}
	equal(t, "the last", s[attnTile-1], 0)
}

func TestSoftmaxGradRows(t *testing.T) { each(t, testSoftmaxGradRows) }

func testSoftmaxGradRows(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 30 {
		rows, ld := 1+b.IntN(150), attnTile+b.IntN(40)
		scale := float32(b.Float64())
		p, d := b.scores(rows, ld), b.normal((rows-1)*ld+attnTile)
		lse, delta := b.normal(rows), b.normal(rows)
		oldP, oldD := slices.Clone(p), slices.Clone(d)
		for i := range rows {
			for _, v := range p[i*ld:][:attnTile] {
				lse[i] = max(lse[i], v*scale)
			}
		}
		l.softmaxGradRows(p, d, ld, rows, scale, lse, delta)
		for i := range rows {
			wp, wd := make([]float64, attnTile), make([]float64, attnTile)
			sp, sd := make([]float64, attnTile), make([]float64, attnTile)
			for j := range wp {
				x, y := float64(oldP[i*ld+j])*float64(scale), float64(oldD[i*ld+j])
				if math.IsInf(x, -1) {
					continue
				}
				wp[j] = probability(x - float64(lse[i]))
				wd[j] = wp[j] * (y - float64(delta[i])) * float64(scale)
				sp[j] = wp[j] * (2 + math.Abs(x) + math.Abs(x-float64(lse[i])))
				sd[j] = sp[j] * (math.Abs(y) + math.Abs(float64(delta[i]))) * float64(scale)
			}
			near(t, "p", p[i*ld:][:attnTile], wp, sp, 2*eps)
			near(t, "ds", d[i*ld:][:attnTile], wd, sd, 4*eps)
			if i+1 < rows {
				same(t, "gap", p[i*ld+attnTile:(i+1)*ld], oldP[i*ld+attnTile:(i+1)*ld])
				same(t, "gap", d[i*ld+attnTile:(i+1)*ld], oldD[i*ld+attnTile:(i+1)*ld])
			}
		}
	}
}

func TestScaleRows(t *testing.T) { each(t, testScaleRows) }

func testScaleRows(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 60 {
		rows, n := 1+b.size(70), b.size(257)
		ld := n + b.IntN(20)
		o, f := b.normal((rows-1)*ld+n), b.normal(rows)
		want := slices.Clone(o)
		for i := range rows {
			for j := range n {
				want[i*ld+j] *= f[i]
			}
		}
		l.scaleRows(o, ld, rows, n, f)
		same(t, "rows", o, want)
	}
}

func TestDotRow(t *testing.T) { each(t, testDotRow) }

func testDotRow(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 60 {
		n := b.size(300)
		if b.IntN(20) == 0 {
			n = 65537
		}
		x, y := b.normal(n), b.normal(n)
		want, size := 0.0, 0.0
		for i, v := range x {
			want += float64(v) * float64(y[i])
			size += math.Abs(float64(v) * float64(y[i]))
		}
		near(t, "dot", []float32{l.dotRow(x, y)}, []float64{want}, []float64{size}, float64(8+n/16)*eps)
	}
}
