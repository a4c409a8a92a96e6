// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"slices"
	"testing"

	"pleach/half"
	"pleach/internal/rng"
)

// sameBits checks equal bits, those of a NaN too.
func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i, w := range want {
		if g, w := math.Float32bits(got[i]), math.Float32bits(w); g != w {
			t.Fatalf("%s: element %d of %d: got %#08x, want %#08x", what, i, len(want), g, w)
		}
	}
}

func sameWords(t *testing.T, what string, got, want []uint16) {
	t.Helper()
	for i, w := range want {
		if g := got[i]; g != w {
			t.Fatalf("%s: element %d of %d: got %#04x, want %#04x", what, i, len(want), g, w)
		}
	}
}

// TestWidenAll: all bf16 numbers, there and back.
func TestWidenAll(t *testing.T) { each(t, testWidenAll) }

func testWidenAll(t *testing.T, l Level) {
	x, y, back := make([]uint16, 1<<16), make([]float32, 1<<16), make([]uint16, 1<<16)
	for i := range x {
		x[i] = uint16(i)
	}
	l.Widen(y, x)
	l.Narrow(back, y)
	for i, v := range y {
		if got := math.Float32bits(v); got != uint32(i)<<16 {
			t.Fatalf("%#04x: got %#08x", i, got)
		}
		want := x[i]
		if v != v {
			want |= 0x40
		}
		if back[i] != want {
			t.Fatalf("%#04x: narrowed to %#04x, want %#04x", i, back[i], want)
		}
	}
	l.Round(y, y)
	l.Narrow(x, y)
	sameWords(t, "rounded", x, back)
}

// edges are float32 numbers on, and beside, what rounding turns at.
func edges() (x []float32) {
	for _, high := range []uint32{
		0x0000, 0x0001, 0x007f, 0x0080, 0x3f80, 0x3f81, 0x4eff, 0x7f7e, 0x7f7f, 0x7f80, 0x7f81, 0x7fbf, 0x7fc0, 0x7fff,
	} {
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			u := high<<16 | low
			x = append(x, math.Float32frombits(u), math.Float32frombits(u|1<<31))
		}
	}
	return x
}

// bf16Inputs is n numbers of all kinds.
func (b bench) bf16Inputs(n int) []float32 {
	x, edges := b.out(n), edges()
	for i := range x {
		switch b.IntN(3) {
		case 0:
			x[i] = float32(b.NormFloat64())
		case 1:
			x[i] = math.Float32frombits(b.Uint32())
		case 2:
			x[i] = edges[b.IntN(len(edges))]
		}
	}
	return x
}

// TestNarrowTwin: rounding is that of package half, for any length.
func TestNarrowTwin(t *testing.T) { each(t, testNarrowTwin) }

func testNarrowTwin(t *testing.T, l Level) {
	b := newBench(t, l)
	for i := range 100 {
		n := b.size(257)
		if i == 0 {
			n = 2*piece + 1
		}
		x, y, wide := b.bf16Inputs(n), b.words(n), b.out(n)
		want, wantWide := make([]uint16, n), make([]float32, n)
		for i, v := range x {
			want[i] = half.ToBF16(v)
			wantWide[i] = math.Float32frombits(uint32(want[i]) << 16)
		}
		l.Narrow(y, x)
		sameWords(t, "Narrow", y, want)
		l.Round(wide, x)
		sameBits(t, "Round", wide, wantWide)
		l.Widen(wide, y)
		sameBits(t, "Widen", wide, wantWide)
		l.Round(x, x)
		sameBits(t, "Round in place", x, wantWide)
	}
}

// TestNarrowRandomTwin: the definition, in float64, for any length.
func TestNarrowRandomTwin(t *testing.T) { each(t, testNarrowRandomTwin) }

func testNarrowRandomTwin(t *testing.T, l Level) {
	b := newBench(t, l)
	for i := range 100 {
		n := b.size(257)
		if i == 0 {
			n = 2*piece + 1
		}
		x, r, y, want := b.bf16Inputs(n), b.random16(n), b.words(n), make([]uint16, n)
		for i, v := range x {
			switch b.IntN(4) {
			case 0:
				r[i] = 0
			case 1:
				r[i] = 0xffff
			}
			want[i] = randomTwin(v, r[i])
		}
		l.NarrowRandom(y, x, r)
		sameWords(t, "NarrowRandom", y, want)
		l.NarrowRandom(r, x, r)
		sameWords(t, "NarrowRandom in place", r, want)
	}
}

// randomTwin rounds by distances.
func randomTwin(v float32, r uint16) uint16 {
	if v-v != 0 {
		return half.ToBF16(v)
	}
	near := uint16(math.Float32bits(v) >> 16) // towards zero
	far := near + 1
	if far&0x7fff == 0x7f80 {
		return near
	}
	a, b, x := float64(half.FromBF16(near)), float64(half.FromBF16(far)), float64(v)
	if (x-a)/(b-a)*0x1p16+float64(r) >= 0x1p16 {
		return far
	}
	return near
}

// TestNarrowRandomExact: over all r, a number goes away from zero as often as its
// distance says.
func TestNarrowRandomExact(t *testing.T) { each(t, testNarrowRandomExact) }

func testNarrowRandomExact(t *testing.T, l Level) {
	const n = 1 << 16
	x, r, y := make([]float32, n), make([]uint16, n), make([]uint16, n)
	for i := range r {
		r[i] = uint16(i)
	}
	for _, u := range []uint32{0x3f800000, 0x3f800001, 0xbf804321, 0x007fffff, 0x80000001, 0x7f7effff, 0xc2f78000} {
		for i := range x {
			x[i] = math.Float32frombits(u)
		}
		l.NarrowRandom(y, x, r)
		far := 0
		for _, v := range y {
			far += int(v - uint16(u>>16))
		}
		equal(t, "of 65536 away from zero", far, int(u&0xffff))
	}
}

// TestUnbiased: the mean of so many draws of one number differs from it by at most
// 4 standard errors, √(p·(1−p)/n) of the distance of its neighbours. The numbers
// are always the same ones: what passes once passes always.
func TestUnbiased(t *testing.T) { each(t, testUnbiased) }

func testUnbiased(t *testing.T, l Level) {
	const n = 1 << 20
	s := rng.New(11, "unbiased")
	x, r, y := make([]float32, n/16), make([]uint16, n/16), make([]uint16, n/16)
	for step, low := range []uint32{1, 0x0ccc, 0x5555, 0x8000, 0xe666, 0xffff} {
		u := 0x3e19_0000 | low
		for i := range x {
			x[i] = math.Float32frombits(u)
		}
		far := 0
		for i := 0; i < n; i += len(x) {
			l.RandomBits(r, s, uint32(step), uint64(i))
			l.NarrowRandom(y, x, r)
			for _, v := range y {
				far += int(v - uint16(u>>16))
			}
		}
		p := float64(low) / 0x1p16
		z := (float64(far)/n - p) / math.Sqrt(p*(1-p)/n)
		t.Logf("p = %.5f: z = %+.2f", p, z)
		if math.Abs(z) > 4 {
			t.Errorf("p = %v: %d of %d, which is %+.1f standard errors off", p, far, n, z)
		}
	}
}

// TestWideSums: sums of bf16 numbers are those of the widened ones.
func TestWideSums(t *testing.T) { each(t, testWideSums) }

func testWideSums(t *testing.T, l Level) {
	b := newBench(t, l)
	for i := range 60 {
		N, D := b.size(33), b.size(257)
		if i == 0 {
			N, D = columnRows+3, 65
		}
		dy, x, r := b.random16(N*D), b.random16(N*D), b.normal(N)
		wdy, wx := make([]float32, N*D), make([]float32, N*D)
		l.Widen(wdy, dy)
		l.Widen(wx, x)
		sum, want := b.normal(N*D), make([]float32, N*D)
		copy(want, sum)
		l.AddInto16(sum, x)
		l.AddInto(want, wx)
		same(t, "AddInto16", sum, want)
		if D == 0 {
			continue
		}
		at, dw := b.cut(D), b.normal(D)
		for _, c := range []struct {
			name      string
			sum, want func(dw []float32, n, m, d0, d1 int)
		}{
			{
				"RMSNormGradW16",
				func(dw []float32, n, m, d0, d1 int) {
					l.RMSNormGradW16(dw, dy[n*D:m*D], x[n*D:m*D], r[n:m], d0, d1)
				},
				func(dw []float32, n, m, d0, d1 int) {
					l.RMSNormGradW(dw, wdy[n*D:m*D], wx[n*D:m*D], r[n:m], d0, d1)
				},
			},
			{
				"BiasGrad16",
				func(dw []float32, n, m, d0, d1 int) { l.BiasGrad16(dw, dy[n*D:m*D], d0, d1) },
				func(dw []float32, n, m, d0, d1 int) { l.BiasGrad(dw, wdy[n*D:m*D], d0, d1) },
			},
		} {
			want := slices.Clone(dw)
			c.want(want, 0, N, 0, D)
			for i := range len(at) - 1 {
				c.sum(dw, 0, N/2, at[i], at[i+1])
				c.sum(dw, N/2, N, at[i], at[i+1])
			}
			same(t, c.name, dw, want)
		}
		V, first := 1+b.size(9), 2+b.IntN(50)
		ids, dt := b.ids(N, first, V), b.normal(V*D)
		wantT := slices.Clone(dt)
		l.EmbedGrad(wantT, wdy, ids, D, first, 0, D)
		for i := range len(at) - 1 {
			l.EmbedGrad16(dt, dy, ids, D, first, at[i], at[i+1])
		}
		same(t, "EmbedGrad16", dt, wantT)
	}
}
