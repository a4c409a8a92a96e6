// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"testing"

	"pleach/internal/rng"
)

// BenchmarkRow measures row kernels on the shapes of a model of width 512: ns
// per element that is written, and bytes that a call must move. Operands lie in
// the first or second cache.
func BenchmarkRow(b *testing.B) {
	for _, l := range Levels() {
		for _, c := range modelRows(l) {
			b.Run(l.String()+"/"+c.name, func(b *testing.B) { measure(b, c) })
		}
	}
}

// BenchmarkMemory measures what runs along whole models, on operands far larger
// than caches.
func BenchmarkMemory(b *testing.B) {
	const n = 1 << 23
	f := newFixed(5)
	p, m, v, g, h := f.floats(n), make([]float32, n), make([]float32, n), f.floats(n), make([]uint16, n)
	for _, l := range Levels() {
		step := NewAdamWStep(0.9, 0.95, 1e-8, 0.1, 1e-6, 5)
		for _, c := range []kernelCase{
			{name: "SumSquares", elems: n, flops: 4 * n, call: func() { l.SumSquares(0, g, 1) }},
			{name: "Scale", elems: n, flops: 8 * n, call: func() { l.Scale(v, g, 0.3) }},
			{name: "Add", elems: n, flops: 12 * n, call: func() { l.Add(v, m, g) }},
			{name: "Widen", elems: n, flops: 6 * n, call: func() { l.Widen(v, h) }},
			{name: "Narrow", elems: n, flops: 6 * n, call: func() { l.Narrow(h, g) }},
			{name: "Round", elems: n, flops: 8 * n, call: func() { l.Round(v, g) }},
			{name: "NarrowRandom", elems: n, flops: 6 * n, call: func() { narrowPieces(l, h, g) }},
			{name: "AdamW", elems: n, flops: 28 * n, call: func() {
				l.AdamW(p, m, v, g, 0.1, step)
			}},
		} {
			b.Run(l.String()+"/"+c.name, func(b *testing.B) { measure(b, c) })
		}
	}
}

// narrowPieces rounds at random, with numbers that stay in the first cache.
func narrowPieces(l Level, y []uint16, x []float32) {
	var r [1024]uint16
	for i := 0; i < len(y); i += len(r) {
		l.RandomBits(r[:], rng.Stream{}, 1, uint64(i))
		l.NarrowRandom(y[i:][:len(r)], x[i:][:len(r)], r[:])
	}
}

// measure reports a case; flops are bytes here.
func measure(b *testing.B, c kernelCase) {
	for b.Loop() {
		c.call()
	}
	ns := b.Elapsed().Seconds() * 1e9 / float64(b.N)
	b.ReportMetric(ns/float64(c.elems), "ns/element")
	b.ReportMetric(float64(c.flops)/ns, "GB/s")
}

func modelRows(l Level) []kernelCase {
	const N, D, F, V = 8, 512, 1376, 256
	f := newFixed(4)
	x, dy, w, y := f.floats(N*D), f.floats(N*D), f.floats(D), make([]float32, N*D)
	z16, y16, r16 := make([]uint16, N*D), make([]uint16, N*D), make([]uint16, N*D)
	r := make([]float32, N)
	l.RMSNormInv(r, x, D, 1e-5)
	gx, gdx, gy, gdy := f.floats(2*F), make([]float32, 2*F), make([]float32, F), f.floats(F)
	h := Heads{8, 2, 64}
	qkv, cos, sin := f.floats(N*h.Width()), f.floats(N*32), f.floats(N*32)
	pos := make([]int32, N)
	p, m, v := f.floats(N*D), make([]float32, N*D), make([]float32, N*D)
	step := NewAdamWStep(0.9, 0.95, 1e-8, 0.1, 1e-6, 5)
	const rows = 32
	s, t, u, ds := f.floats(rows*attnTile), make([]float32, rows*attnTile), make([]float32, rows*attnTile), f.floats(rows*attnTile)
	top, sum, corr := make([]float32, rows), make([]float32, rows), make([]float32, rows)
	z, zs, stats, lse, labels := f.floats(rows*V), make([]float32, rows*V), make([]float32, 3*rows), make([]float32, rows), make([]int32, rows)
	for i := range lse {
		lse[i] = 7
	}
	c := func(name string, elems, bytes int, call func()) kernelCase {
		return kernelCase{name: name, elems: elems, flops: bytes * elems, call: call}
	}
	return []kernelCase{
		c("Widen", N*D, 6, func() { l.Widen(y, z16) }),
		c("Narrow", N*D, 6, func() { l.Narrow(y16, x) }),
		c("Round", N*D, 8, func() { l.Round(y, x) }),
		c("NarrowRandom", N*D, 8, func() { l.NarrowRandom(y16, x, r16) }),
		c("RandomBits", N*D, 2, func() { l.RandomBits(r16, rng.Stream{}, 0, 0) }),
		c("RandomBits+NarrowRandom", N*D, 6, func() {
			l.RandomBits(r16, rng.Stream{}, 0, 0)
			l.NarrowRandom(y16, x, r16)
		}),
		c("AddInto16", N*D, 10, func() { l.AddInto16(y, z16) }),
		c("BiasGrad16", N*D, 2, func() { l.BiasGrad16(w, z16, 0, D) }),
		c("RMSNormGradW16", N*D, 4, func() { l.RMSNormGradW16(w, z16, z16, r, 0, D) }),
		c("Add", N*D, 12, func() { l.Add(y, x, dy) }),
		c("AddInto", N*D, 12, func() { l.AddInto(y, x) }),
		c("Scale", N*D, 8, func() { l.Scale(y, x, 0.3) }),
		c("AddBias", N*D, 8, func() { l.AddBias(y, x, w) }),
		c("BiasGrad", N*D, 4, func() { l.BiasGrad(w, dy, 0, D) }),
		c("SumSquares", N*D, 4, func() { l.SumSquares(0, x, 1) }),
		c("AdamW", N*D, 28, func() { l.AdamW(p, m, v, x, 0.1, step) }),
		c("RMSNorm", N*D, 8, func() { l.RMSNorm(y, x, w, 1e-5) }),
		c("RMSNormInv", N*D, 4, func() { l.RMSNormInv(r, x, D, 1e-5) }),
		c("RMSNormGradX", N*D, 12, func() { l.RMSNormGradX(y, dy, x, w, r) }),
		c("RMSNormGradW", N*D, 8, func() { l.RMSNormGradW(w, dy, x, r, 0, D) }),
		c("RoPE", N*h.Width(), 8, func() { l.RoPE(qkv, qkv, pos, cos, sin, h, false) }),
		c("SwiGLU", F, 12, func() { l.SwiGLU(gy, gx, F) }),
		c("SwiGLUGrad", 2*F, 10, func() { l.SwiGLUGrad(gdx, gdy, gx, F) }),
		c("HeadStats", rows*V, 4, func() { HeadStatsBegin(stats); l.HeadStats(stats, z, labels, 0, V, V) }),
		c("copy+HeadGrad", rows*V, 8, func() { copy(zs, z); l.HeadGrad(zs, lse, labels, 0, V, V) }),
		c("copy+softmaxRows", rows*attnTile, 8, func() {
			copy(t, s)
			l.softmaxRows(t, attnTile, rows, 0.125, top, sum, corr)
		}),
		c("copy+softmaxGradRows", 2*rows*attnTile, 8, func() {
			copy(t, s)
			copy(u, ds)
			l.softmaxGradRows(t, u, attnTile, rows, 0.125, lse, lse)
		}),
		c("scaleRows", rows*attnTile, 8, func() { l.scaleRows(t, attnTile, rows, attnTile, lse) }),
	}
}
