// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"slices"
	"testing"
)

// elementCase is a kernel whose results i need its operands i only.
type elementCase struct {
	name    string
	written int // how many of the operands, the first, are written
	read    int // how many others are read
	call    func(l Level, x [][]float32)
}

func elementCases() []elementCase {
	step := NewAdamWStep(0.9, 0.95, 1e-8, 0.1, 3e-3, 5)
	return []elementCase{
		{"Add", 1, 2, func(l Level, x [][]float32) { l.Add(x[0], x[1], x[2]) }},
		{"AddInto", 1, 1, func(l Level, x [][]float32) { l.AddInto(x[0], x[1]) }},
		{"Scale", 1, 1, func(l Level, x [][]float32) { l.Scale(x[0], x[1], 0.3) }},
		{"ScaleColumns", 1, 1, func(l Level, x [][]float32) { l.ScaleColumns(x[0], x[1], 1, len(x[0]), len(x[0])) }},
		{"Sub", 1, 2, func(l Level, x [][]float32) { l.Sub(x[0], x[1], x[2]) }},
		{"AddScaled", 1, 1, func(l Level, x [][]float32) { l.AddScaled(x[0], x[1], 0.3) }},
		{"Divide", 1, 1, func(l Level, x [][]float32) { l.Divide(x[0], x[1], 0.3) }},
		{"KeepKeys", 1, 1, func(l Level, x [][]float32) { l.KeepKeys(x[0], x[1], math.Float32bits(0.3), infinity) }},
		{"Vote", 5, 1, func(l Level, x [][]float32) { l.Vote(Votes{x[0], x[1], x[2], x[3], x[4]}, x[5], 0.3) }},
		{"Elect", 1, 5, func(l Level, x [][]float32) { l.Elect(x[0], Votes{x[1], x[2], x[3], x[4], x[5]}, true) }},
		{"AdamW", 3, 1, func(l Level, x [][]float32) { l.AdamW(x[0], x[1], x[2], x[3], 0.5, step) }},
		{"RMSNormGradW", 1, 2, func(l Level, x [][]float32) {
			l.RMSNormGradW(x[0], x[1], x[2], []float32{0.7}, 0, len(x[0]))
		}},
		{"SwiGLU", 1, 2, func(l Level, x [][]float32) {
			l.SwiGLU(x[0], slices.Concat(x[1], x[2]), len(x[0]))
		}},
		{"SwiGLUGrad", 2, 3, func(l Level, x [][]float32) {
			n := len(x[0])
			d := make([]float32, 2*n)
			l.SwiGLUGrad(d, x[2], slices.Concat(x[3], x[4]), n)
			copy(x[0], d)
			copy(x[1], d[n:])
		}},
		{"HeadGrad", 1, 0, func(l Level, x [][]float32) {
			l.HeadGrad(x[0], []float32{3}, []int32{1 << 30}, 0, len(x[0]), len(x[0]))
		}},
	}
}

// TestElements: an element does not depend on its place or its neighbours, and
// nothing beside the operands is touched, for any length.
func TestElements(t *testing.T) { each(t, testElements) }

func testElements(t *testing.T, l Level) {
	b := newBench(t, l)
	for _, c := range elementCases() {
		for i := range 20 {
			n := b.size(257)
			if i == 0 {
				n = 2*piece + 1
			}
			var whole, parts [][]float32
			for range c.written + c.read {
				x := b.normal(n)
				b.special(x)
				whole, parts = append(whole, x), append(parts, slices.Clone(x))
			}
			c.call(l, whole)
			at := b.cut(n)
			for i := range len(at) - 1 {
				var part [][]float32
				for _, x := range parts {
					part = append(part, x[at[i]:at[i+1]])
				}
				c.call(l, part)
			}
			for i := range whole {
				same(t, c.name+" "+shape(n, i), parts[i], whole[i])
			}
		}
	}
}

// special makes some numbers of x NaN, Inf, zeros, denormal or large.
func (b bench) special(x []float32) {
	all := []float32{
		float32(math.NaN()), float32(math.Inf(1)), negInf(), 0, float32(math.Copysign(0, -1)),
		math.Float32frombits(0x7fabcde1), 0x1p-149, -0x1p-130, 0x1p-126, 1e30, -1e30, math.MaxFloat32, 87, -88.5, -200,
	}
	for i := range x {
		if b.IntN(8) == 0 {
			x[i] = all[b.IntN(len(all))]
		}
	}
}

// TestElementsSpecial: what is NaN or infinite is one of them on every level.
func TestElementsSpecial(t *testing.T) { each(t, testElementsSpecial) }

func testElementsSpecial(t *testing.T, l Level) {
	b := newBench(t, l)
	for _, c := range elementCases() {
		const n = 4000
		var got, want [][]float32
		for range c.written + c.read {
			x := b.normal(n)
			b.special(x)
			for i, v := range x { // what is near the largest number overflows by rounding
				if math.Abs(float64(v)) > 1e9 && math.Abs(float64(v)) < math.MaxFloat32*2 {
					x[i] = float32(math.Copysign(1e9, float64(v)))
				}
				if c.name == "HeadGrad" && v > 80 {
					x[i] = 1
				}
			}
			got, want = append(got, x), append(want, slices.Clone(x))
		}
		c.call(l, got)
		c.call(Portable, want)
		for i, w := range want {
			for j, w := range w {
				g := got[i][j]
				if w-w == 0 != (g-g == 0) {
					var x []float32
					for _, p := range got[c.written:] {
						x = append(x, p[j])
					}
					t.Errorf("%s: result %d of %v: got %v, want %v", c.name, i, x, g, w)
				}
			}
		}
	}
}

// TestLong: rows longer than a call into assembly may be.
func TestLong(t *testing.T) { each(t, testLong) }

func testLong(t *testing.T, l Level) {
	b := newBench(t, l)
	const n = 2*piece + 1
	x, w, y, r := b.normal(n), b.normal(n), b.out(n), b.out(1)
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	l.RMSNormInv(r, x, n, 0)
	near(t, "r", r, []float64{1 / math.Sqrt(sum/n)}, nil, 3e-4)
	l.RMSNorm(y, x, w, 0)
	for i, v := range y {
		if want := x[i] * r[0] * w[i]; math.Abs(float64(v-want)) > 4*eps*math.Abs(float64(want)) {
			t.Fatalf("RMSNorm, element %d: got %v, want %v", i, v, want)
		}
	}
	if got := l.SumSquares(1, x, 0.5); math.Abs(got-1-sum/2) > 1e-10*sum {
		t.Errorf("SumSquares: got %v, want %v", got, 1+sum/2)
	}
	stats, label := b.out(3), []int32{n - 1}
	HeadStatsBegin(stats)
	l.HeadStats(stats, x, label, 0, n, n)
	total, top := 0.0, slices.Max(x)
	for _, v := range x {
		total += math.Exp(float64(v - top))
	}
	near(t, "stats", stats, []float64{float64(top), total, float64(x[n-1])}, nil, 3e-4)
}
