// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"testing"
)

func TestVectors(t *testing.T) { each(t, testVectors) }

func testVectors(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 60 {
		n := b.size(257)
		x, z, y := b.normal(n), b.normal(n), b.out(n)
		each := func(f func(i int) float32) []float32 {
			w := make([]float32, n)
			for i := range w {
				w[i] = f(i)
			}
			return w
		}
		l.Add(y, x, z)
		same(t, "Add", y, each(func(i int) float32 { return x[i] + z[i] }))
		want := each(func(i int) float32 { return y[i] + x[i] })
		l.AddInto(y, x)
		same(t, "AddInto", y, want)
		l.Scale(y, x, 0.3)
		same(t, "Scale", y, each(func(i int) float32 { return 0.3 * x[i] }))
		copy(y, x)
		want = each(func(i int) float32 { return x[i] + x[i] })
		l.Add(y, y, y)
		same(t, "Add in place", y, want)
	}
}

func TestBias(t *testing.T) { each(t, testBias) }

func testBias(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 60 {
		N, O := b.size(33), b.size(129)
		x, bias, y := b.normal(N*O), b.normal(O), b.out(N*O)
		l.AddBias(y, x, bias)
		fold, db := append([]float32(nil), bias...), bias
		for i := range x {
			if want := x[i] + bias[i%O]; y[i] != want {
				t.Fatalf("y[%d]: got %v, want %v", i, y[i], want)
			}
			fold[i%O] += x[i]
		}
		l.AddBias(y, y, bias)
		if O == 0 {
			continue
		}
		at := b.cut(O)
		for i := range len(at) - 1 {
			l.BiasGrad(db, x[:N/2*O], at[i], at[i+1])
			l.BiasGrad(db, x[N/2*O:], at[i], at[i+1])
		}
		same(t, "db", db, fold)
	}
}

func TestSumSquares(t *testing.T) { each(t, testSumSquares) }

func testSumSquares(t *testing.T, l Level) {
	b := newBench(t, l)
	g := b.normal(1000)
	want := 3.0
	for _, v := range g {
		want += 0.25 * float64(v) * float64(v)
	}
	got := l.SumSquares(l.SumSquares(3, g[:333], 0.25), g[333:], 0.25)
	if l == Portable {
		equal(t, "sum", got, want)
	} else if math.Abs(got-want) > 1e-14*want {
		t.Fatalf("sum: got %v, want %v", got, want)
	}
	if v := l.SumSquares(0, []float32{float32(math.Inf(1))}, 1); !math.IsInf(v, 1) {
		t.Errorf("Inf: got %v", v)
	}
}

func TestAdamWTwin(t *testing.T) { each(t, testAdamWTwin) }

func testAdamWTwin(t *testing.T, l Level) {
	b := newBench(t, l)
	const beta1, beta2, e, decay, lr, scale = 0.9, 0.95, 1e-8, 0.1, 3e-3, 0.125
	for range 40 {
		n := b.size(129)
		p, m, v, g := b.normal(n), b.zeros(n), b.zeros(n), b.normal(n)
		P, M, V := wide(p), wide(m), wide(v)
		size := make([]float64, n)
		for step := range 10 {
			s := float64(step + 1)
			for i := range g {
				g[i] = float32(b.NormFloat64())
				h := scale * float64(g[i])
				M[i] = beta1*M[i] + (1-beta1)*h
				V[i] = beta2*V[i] + (1-beta2)*h*h
				u := M[i] / (1 - math.Pow(beta1, s)) /
					(math.Sqrt(V[i]/(1-math.Pow(beta2, s))) + e)
				P[i] -= lr * (u + decay*P[i])
				// The moment may cancel: its error is that of its terms.
				size[i] = max(size[i], math.Abs(P[i])) + 10*lr
			}
			l.AdamW(p, m, v, g, scale, NewAdamWStep(beta1, beta2, e, decay, lr, int64(step+1)))
		}
		near(t, "p", p, P, size, 12*eps)
		near(t, "v", v, V, nil, 16*eps)
	}
}

// TestAdamWCut: an element does not depend on its neighbours.
func TestAdamWCut(t *testing.T) { each(t, testAdamWCut) }

func testAdamWCut(t *testing.T, l Level) {
	b := newBench(t, l)
	const n = 101
	s := NewAdamWStep(0.9, 0.999, 1e-8, 0.01, 1e-3, 7)
	p, m, v, g := b.normal(n), b.normal(n), b.normal(n), b.normal(n)
	for i := range v {
		v[i] *= v[i]
	}
	dup := func(x []float32) []float32 { return append([]float32(nil), x...) }
	q, k, w := dup(p), dup(m), dup(v)
	l.AdamW(q, k, w, g, 0.5, s)
	at := b.cut(n)
	for i := range len(at) - 1 {
		i, j := at[i], at[i+1]
		l.AdamW(p[i:j], m[i:j], v[i:j], g[i:j], 0.5, s)
	}
	same(t, "p", p, q)
	same(t, "m", m, k)
	same(t, "v", v, w)
}
