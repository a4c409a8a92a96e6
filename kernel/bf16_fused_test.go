// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"testing"
)

// TestFusedNarrow: what is done in one pass has the bits of what is done in several, in
// place and for any length, and touches nothing else.
func TestFusedNarrow(t *testing.T) { each(t, testFusedNarrow) }

func testFusedNarrow(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 60 {
		n := b.size(300)
		a, u, x := b.normal(n), b.normal(n), b.halves(n)
		b.special(a)
		ra, ru, wx := make([]float32, n), make([]float32, n), make([]float32, n)
		l.Round(ra, a)
		l.Round(ru, u)
		l.Widen(wx, x)
		want, z := make([]uint16, n), make([]float32, n)

		l.Add(z, ra, wx)
		l.Narrow(want, z)
		got := slices.Clone(x)
		l.AddNarrow(got, a, got)
		sameNumbers(t, l, "sum", got, want)

		l.SwiGLU(z, slices.Concat(ra, ru), n)
		l.Narrow(want, z)
		g, v := b.words(n), b.words(n)
		y := b.words(n)
		l.SwiGLUNarrow(g, v, y, a, u)
		sameNumbers(t, l, "gated", y, want)
		l.SwiGLUNarrow(nil, nil, got, a, u)
		sameNumbers(t, l, "gated, not kept", got, want)
		l.Narrow(want, a)
		sameNumbers(t, l, "gate", g, want)
		l.Narrow(want, u)
		sameNumbers(t, l, "up", v, want)

		d := slices.Concat(wx, ru)
		l.SwiGLUGrad(d, ra, d, n)
		e := make([]uint16, n)
		l.Narrow(e, ru)
		got = slices.Clone(x)
		l.SwiGLUGradNarrow(got, e, a, got, e)
		l.Narrow(want, d[:n])
		sameNumbers(t, l, "gradient of gate", got, want)
		l.Narrow(want, d[n:])
		sameNumbers(t, l, "gradient of up", e, want)
	}
}

// sameNumbers compares bits, but takes any NaN for any other.
func sameNumbers(t *testing.T, l Level, what string, got, want []uint16) {
	t.Helper()
	x, y := make([]float32, len(got)), make([]float32, len(want))
	l.Widen(x, got)
	l.Widen(y, want)
	same(t, what, x, y)
}
