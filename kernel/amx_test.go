// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"testing"
)

// each16 is each, and AMX in plain Go where the rest of it can run.
func each16(t *testing.T, f func(t *testing.T, l Level)) {
	each(t, f)
	if slices.Contains(Levels(), AVX512) {
		t.Run("AMXPlain", func(t *testing.T) { f(t, AMXPlain) })
	}
}

// tile16 adds steps p … p+31 of element i,j as TDPBF16PS does: the products of even
// and of odd steps are chains from zero, added to each other and then to c.
func (g product) tile16(c float32, a, b []uint16, i, j, p int) float32 {
	var sums [2]float32
	for q := range 32 {
		var v, w uint16
		if p+q < g.k {
			x, y := g.at(i, j, p+q)
			v, w = a[x], b[y]
		}
		sums[q%2] = flushedFMA(v, w, sums[q%2])
	}
	return flushed(flushed(c) + flushed(sums[0]+sums[1]))
}

// TestAMXNoAllocations: products and attention on tiles live from what they are given.
func TestAMXNoAllocations(t *testing.T) {
	if !slices.Contains(Levels(), AVX512) {
		t.Skip("no AVX-512")
	}
	const m, n, k, few, T = 70, 90, 75, 3, 70
	l, b, h := AMXPlain, newBench(t, AMXPlain), Heads{2, 1, 20}
	x, y, c, scratch := b.halves(m*k), b.halves(n*k), make([]float32, m*n), make([]float32, l.GemmScratch16())
	qkv, o, do := Numbers{BF16: b.halves(T * h.Width())}, Numbers{BF16: b.halves(T * 40)}, Numbers{BF16: b.halves(T * 40)}
	dqkv, lse, pos := Numbers{BF16: make([]uint16, T*h.Width())}, make([]float32, T*2), make([]int32, T)
	for t := range pos {
		pos[t] = int32(t)
	}
	room := make([]float32, max(l.AttentionScratch(h, T, true), l.AttentionGradScratch(h, T, true)))
	allocations := testing.AllocsPerRun(2, func() {
		l.GemmNT16(c, x, y, m, n, k, n, k, k, false, scratch)
		l.GemmNT16(c, x, y, few, n, k, n, k, k, false, scratch)
		l.GemmNN16(c, x, y, m, n, k, n, k, n, true, scratch)
		l.GemmTN16(c, x, y, m, n, k, n, m, n, true, scratch)
		l.Attention(o, lse, qkv, pos, h, 0, 0, T, room)
		l.AttentionGrad(dqkv, qkv, o, lse, do, pos, h, 0, room)
	})
	if allocations != 0 {
		t.Errorf("got %v allocations, want none", allocations)
	}
}

// BenchmarkTurnLeft is what tiles cost a product that sums over rows.
func BenchmarkTurnLeft(b *testing.B) {
	if !slices.Contains(Levels(), AVX512) {
		b.Skip("no AVX-512")
	}
	const m, k, ld = 96, 512, 1376
	x, dst := make([]uint16, k*ld), make([]float32, m*k/2)
	for b.Loop() {
		turnLeft(dst, x, m, k, ld)
	}
	b.SetBytes(2 * m * k)
}
