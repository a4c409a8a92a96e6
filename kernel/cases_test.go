// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pleach/internal/rng"
)

// kernelCase is one kernel on operands of a usual shape.
type kernelCase struct {
	name  string
	elems int         // elements that a call writes, and
	flops int         // its operations, or 0 if bytes are what counts
	out   [][]float32 // what it writes
	call  func()
}

// run calls the kernel once.
func (c kernelCase) run() [][]float32 { c.call(); return c.out }

// kernelCases are all kernels, with the same operands on every host. The
// operands of one do not depend on the others before it.
func kernelCases(l Level) []kernelCase {
	return slices.Concat(productCases(l), rowCases(l), tileCases(l), headCases(l), bf16Cases(l), mergeCases(l))
}

func newFixed(seed uint64) fixed { return fixed{rand.New(rand.NewPCG(seed, 2))} }

func productCases(l Level) []kernelCase {
	const m, n, k = 66, 130, 131
	f := newFixed(1)
	a, b, c, s := f.floats(m*k), f.floats(n*k), f.floats(m*n), make([]float32, l.GemmScratch())
	gemm := func(form string, m, n int, call func(c []float32)) kernelCase {
		c := append([]float32(nil), c[:m*n]...)
		return kernelCase{"Gemm" + form, m * n, 2 * m * n * k, [][]float32{c}, func() { call(c) }}
	}
	h := Heads{4, 2, 32}
	const T = 130
	qkv, do, pos := f.floats(T*h.Width()), f.floats(T*h.H*h.K), make([]int32, T)
	for t := range pos {
		pos[t] = int32(t % 100)
	}
	o, lse, dqkv := make([]float32, T*h.H*h.K), make([]float32, T*h.H), make([]float32, T*h.Width())
	cached, cache := make([]float32, h.H*h.K), make([]float32, T*2*h.G*h.K)
	as, gs := make([]float32, l.AttentionScratch(h, T, false)), make([]float32, l.AttentionGradScratch(h, T, false))
	slots := make([]int32, T)
	at := make([]int32, T)
	for t := range at {
		at[t] = int32(t)
	}
	return []kernelCase{
		gemm("NT", m, n, func(c []float32) { l.GemmNT(c, a, b, m, n, k, n, k, k, true, s) }),
		gemm("NN", m, n, func(c []float32) { l.GemmNN(c, a, b, m, n, k, n, k, n, true, s) }),
		gemm("TN", m, n, func(c []float32) { l.GemmTN(c, a, b, m, n, k, n, m, n, true, s) }),
		gemm("NT1", 1, n, func(c []float32) { l.GemmNT(c, a, b, 1, n, k, n, k, k, true, s) }),
		{"Attention", T * h.K, 4 * h.H * h.K * T * T / 2, [][]float32{o, lse}, func() {
			for j := range h.H {
				l.Attention(Numbers{F32: o}, lse, Numbers{F32: qkv}, pos, h, j, 0, T, as)
			}
		}},
		{"AttentionGrad", T * h.Width(), 14 * h.H * h.K * T * T / 2, [][]float32{dqkv}, func() {
			for j := range h.H { // on its own, it has what it needs
				l.Attention(Numbers{F32: o}, lse, Numbers{F32: qkv}, pos, h, j, 0, T, as)
			}
			for g := range h.G {
				l.AttentionGrad(Numbers{F32: dqkv}, Numbers{F32: qkv}, Numbers{F32: o}, lse, Numbers{F32: do}, pos, h, g, gs)
			}
		}},
		{"AttentionCached", h.H * h.K, 4 * h.H * h.K * T, [][]float32{cached}, func() {
			CacheAppend(Numbers{F32: cache}, Numbers{F32: qkv}, slots, at, T, h)
			for g := range h.G {
				l.AttentionCached(Numbers{F32: cached}, Numbers{F32: qkv}, Numbers{F32: cache}, 0, T-1, T, h, g, as)
			}
		}},
	}
}

func rowCases(l Level) []kernelCase {
	const N, D, F = 33, 130, 67
	f := newFixed(2)
	x, dy, w, y := f.floats(N*D), f.floats(N*D), f.floats(D), make([]float32, N*D)
	dx, dw, r := make([]float32, N*D), f.floats(D), make([]float32, N)
	db, acc := f.floats(D), f.floats(N*D)
	gx, gy, gdx := f.floats(2*N*F), f.floats(N*F), make([]float32, 2*N*F)
	gdy := f.floats(N * F)
	h := Heads{3, 1, 26}
	cos, sin, pos := f.floats(N*13), f.floats(N*13), make([]int32, N)
	ids := make([]int32, N)
	for n := range N {
		pos[n], ids[n] = int32(N-1-n), int32(n*7%20)
	}
	table := f.floats(16 * D)
	p, m, v := f.floats(N*D), f.floats(N*D), f.floats(N*D)
	for i := range v {
		v[i] *= v[i]
	}
	step := NewAdamWStep(0.9, 0.95, 1e-8, 0.1, 3e-3, 5)
	sum := make([]float32, 2)
	e := make([]float32, N*D)
	return []kernelCase{
		{"RMSNorm", N * D, 0, [][]float32{y}, func() { l.RMSNorm(y, x, w, 1e-5) }},
		{"RMSNormInv", N * D, 0, [][]float32{r}, func() { l.RMSNormInv(r, x, D, 1e-5) }},
		{"RMSNormGradX", N * D, 0, [][]float32{dx}, func() {
			l.RMSNormInv(r, x, D, 1e-5)
			l.RMSNormGradX(dx, dy, x, w, r)
		}},
		{"RMSNormGradW", N * D, 0, [][]float32{dw}, func() {
			l.RMSNormInv(r, x, D, 1e-5)
			l.RMSNormGradW(dw, dy, x, r, 0, D)
		}},
		{"RoPE", N * D, 0, [][]float32{y}, func() { l.RoPE(y, x, pos, cos, sin, h, false) }},
		{"SwiGLU", N * F, 0, [][]float32{gy}, func() { l.SwiGLU(gy, gx, F) }},
		{"SwiGLUGrad", 2 * N * F, 0, [][]float32{gdx}, func() { l.SwiGLUGrad(gdx, gdy, gx, F) }},
		{"Embed", N * D, 0, [][]float32{y}, func() { Embed(y, table, ids, D, 2) }},
		{"EmbedGrad", N * D, 0, [][]float32{table}, func() { l.EmbedGrad(table, dy, ids, D, 2, 0, D) }},
		{"Add", N * D, 0, [][]float32{y}, func() { l.Add(y, x, dy) }},
		{"AddInto", N * D, 0, [][]float32{acc}, func() { l.AddInto(acc, x) }},
		{"Scale", N * D, 0, [][]float32{y}, func() { l.Scale(y, x, 0.3) }},
		{"AddBias", N * D, 0, [][]float32{y}, func() { l.AddBias(y, x, w) }},
		{"BiasGrad", N * D, 0, [][]float32{db}, func() { l.BiasGrad(db, dy, 0, D) }},
		{"SumSquares", N * D, 0, [][]float32{sum}, func() {
			v := l.SumSquares(1, x, 0.5)
			sum[0], sum[1] = float32(v), float32(v-float64(float32(v)))
		}},
		{"AdamW", N * D, 0, [][]float32{p, m, v}, func() { l.AdamW(p, m, v, dy, 0.1, step) }},
		{"Exp32", N * D, 0, [][]float32{e}, func() {
			for i, v := range x {
				e[i] = Exp32(20 * v)
			}
		}},
	}
}

// tileCases are what attention is made of.
func tileCases(l Level) []kernelCase {
	const rows, K = 70, 72
	f := newFixed(4)
	s, t, u, do := f.floats(rows*K), make([]float32, rows*K), make([]float32, rows*K), f.floats(rows*K)
	for i := range s {
		s[i] *= 50
		if i%11 == 0 {
			s[i] = negInf()
		}
	}
	lse, stats, one := f.floats(rows), make([]float32, 3*rows), make([]float32, 1)
	for i := range lse {
		lse[i] += 100
	}
	return []kernelCase{
		{"softmaxRows", rows * attnTile, 0, [][]float32{t, stats}, func() {
			copy(t, s)
			copy(stats, do)
			l.softmaxRows(t, K, rows, 0.9, stats[:rows], stats[rows:2*rows], stats[2*rows:])
		}},
		{"softmaxGradRows", rows * attnTile, 0, [][]float32{t, u}, func() {
			copy(t, s)
			copy(u, do)
			l.softmaxGradRows(t, u, K, rows, 0.9, lse, do)
		}},
		{"scaleRows", rows * K, 0, [][]float32{u}, func() {
			copy(u, do)
			l.scaleRows(u, K, rows, 64, lse)
			l.scaleRows(u, K, rows, 7, lse)
		}},
		{"dotRow", 1, 0, [][]float32{one}, func() { one[0] = l.dotRow(do[1:1003], do[3:1005]) }},
	}
}

func headCases(l Level) []kernelCase {
	const N, V, k = 17, 300, 4
	f := newFixed(3)
	z, labels, stats := f.floats(N*V), make([]int32, N), make([]float32, 3*N)
	for n := range labels {
		labels[n] = int32(n*31%V) - 20
	}
	lse, loss, lp := make([]float32, N), make([]float32, N), make([]float32, N)
	value, id := make([]float32, N*k), make([]int32, N*k)
	all := func() {
		HeadStatsBegin(stats)
		l.HeadStats(stats, z, labels, 0, 256, V)
		l.HeadStats(stats, z[256:], labels, 256, V-256, V)
	}
	g := f.floats(N * V)
	return []kernelCase{
		{"HeadStats", N * V, 0, [][]float32{stats}, all},
		{"HeadLoss", N, 0, [][]float32{lse, loss, lp}, func() {
			all()
			HeadLoss(lse, loss, stats, labels)
			HeadLogProbs(lp, stats, labels)
		}},
		{"HeadGrad", N * V, 0, [][]float32{g}, func() {
			all()
			HeadLoss(lse, loss, stats, labels)
			copy(g, z)
			l.HeadGrad(g, lse, labels, 0, V, V)
		}},
		{"TopK", N * V, 0, [][]float32{value}, func() {
			TopKBegin(value, id)
			TopK(value, id, z, k, 0, V, V)
		}},
	}
}

// halves are the bits of x as twice as many numbers.
func halves(x []float32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

// asFloats are the bits of w as numbers.
func asFloats[T uint32 | uint64](w []T) []float32 {
	var one T
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(w))), len(w)*int(unsafe.Sizeof(one))/4)
}

func bf16Cases(l Level) []kernelCase {
	const N, D = 33, 134
	f := newFixed(5)
	x, y, narrow, bits := f.floats(N*D), make([]float32, N*D), make([]float32, N*D/2), make([]float32, N*D/2)
	dw, db, sum, table, r, ids := f.floats(D), f.floats(D), f.floats(N*D), f.floats(16*D), f.floats(N), make([]int32, N)
	for n := range ids {
		ids[n] = int32(n * 7 % 20)
	}
	z, dy, random := make([]uint16, N*D), make([]uint16, N*D), make([]uint16, N*D)
	Portable.Narrow(z, x)
	Portable.Narrow(dy, f.floats(N*D))
	Portable.RandomBits(random, rng.New(1, "cases"), 0, 0)
	return []kernelCase{
		{"Widen", N * D, 0, [][]float32{y}, func() { l.Widen(y, z) }},
		{"Narrow", N * D, 0, [][]float32{narrow}, func() { l.Narrow(halves(narrow), x) }},
		{"Round", N * D, 0, [][]float32{y}, func() { l.Round(y, x) }},
		{"NarrowRandom", N * D, 0, [][]float32{narrow}, func() { l.NarrowRandom(halves(narrow), x, random) }},
		{"RandomBits", N * D, 0, [][]float32{bits}, func() { l.RandomBits(halves(bits), rng.New(2, "cases"), 3, 5) }},
		{"ScaleColumns", N * D, 0, [][]float32{y}, func() { copy(y, x); l.ScaleColumns(y, x[:D], N, D, D) }},
		{"AddInto16", N * D, 0, [][]float32{sum}, func() { l.AddInto16(sum, z) }},
		{"EmbedGrad16", N * D, 0, [][]float32{table}, func() { l.EmbedGrad16(table, dy, ids, D, 2, 0, D) }},
		{"BiasGrad16", N * D, 0, [][]float32{db}, func() { l.BiasGrad16(db, dy, 0, D) }},
		{"RMSNormGradW16", N * D, 0, [][]float32{dw}, func() { l.RMSNormGradW16(dw, dy, z, r, 0, D) }},
	}
}

func mergeCases(l Level) []kernelCase {
	const n = 33 * 134
	f := newFixed(6)
	x, z, y, acc, sums := f.floats(n), f.floats(n), make([]float32, n), f.floats(n), make([]float32, 2)
	v := Votes{f.floats(n), f.floats(n), f.floats(n), f.floats(n), f.floats(n)}
	all := [][]float32{v.Sum, v.Plus, v.Minus, v.WPlus, v.WMinus}
	for i := range v.WPlus {
		v.WPlus[i], v.WMinus[i] = float32(i%3), float32(i%5) // some are 0
	}
	keep, words, h := make([]uint64, (n+63)/64), make([]uint32, n), make([]uint16, n)
	Portable.RandomBelow(keep, rng.New(3, "cases"), 0, n, 1<<23)
	Portable.Narrow16F(h, x)
	below, open, bounds := make([]uint64, (n+63)/64), make([]uint64, (n+63)/64), new([256]uint16)
	for i := range bounds {
		bounds[i] = uint16(i/2 | (i/2+90)<<8)
	}
	c := func(name string, out [][]float32, call func()) kernelCase {
		return kernelCase{name, n, 0, out, call}
	}
	sum := func(name string, f func() float64) kernelCase {
		sums := make([]float32, 2)
		return c(name, [][]float32{sums}, func() {
			v := f()
			sums[0], sums[1] = float32(v), float32(v-float64(float32(v)))
		})
	}
	return []kernelCase{
		c("Sub", [][]float32{y}, func() { l.Sub(y, x, z) }),
		c("AddScaled", [][]float32{acc}, func() { l.AddScaled(acc, x, 0.3) }),
		c("Divide", [][]float32{y}, func() { l.Divide(y, x, 0.3) }),
		c("KeepKeys", [][]float32{y}, func() {
			l.KeepKeys(y, x, math.Float32bits(0.5), math.Float32bits(1.5))
		}),
		c("KeepBits", [][]float32{y}, func() { l.KeepBits(y, x, keep) }),
		c("Elect", [][]float32{y}, func() { l.Elect(y, v, false) }),
		c("Elect the mean", [][]float32{y}, func() { l.Elect(y, v, true) }),
		c("Vote", all, func() { l.Vote(v, x, 0.3) }),
		sum("Dot64", func() float64 { return l.Dot64(x, z) }),
		sum("SumAbs64", func() float64 { return l.SumAbs64(x) }),
		c("SumAbs64Bits", [][]float32{sums}, func() {
			all, kept := l.SumAbs64Bits(x, keep)
			sums[0], sums[1] = float32(all), float32(kept)
		}),
		sum("CountBelow", func() float64 { return float64(l.CountBelow(x, math.Float32bits(0.7))) }),
		c("Bucket", [][]float32{asFloats(words)}, func() {
			Portable.RandomWords(words, rng.New(6, "cases"), 0)
			l.Bucket(words, x, math.Float32bits(0.01))
		}),
		c("WordsBelow", [][]float32{asFloats(below)}, func() {
			Portable.RandomWords(words, rng.New(6, "cases"), 0)
			l.WordsBelow(below, words, 1<<22)
		}),
		c("Sieve", [][]float32{asFloats(below), asFloats(open)}, func() {
			Portable.RandomWords(words, rng.New(6, "cases"), 0)
			l.Sieve(below, open, words, bounds)
		}),
		sum("Largest", func() float64 { return float64(l.Largest(x)) }),
		c("RandomWords", [][]float32{asFloats(words)}, func() { l.RandomWords(words, rng.New(4, "cases"), 5) }),
		c("RandomBelow", [][]float32{asFloats(below)}, func() {
			l.RandomBelow(below, rng.New(5, "cases"), 64, n, 1<<23)
		}),
		c("Widen16F", [][]float32{y}, func() { l.Widen16F(y, h) }),
		c("Narrow16F", [][]float32{acc[:n/2]}, func() { l.Narrow16F(halves(acc[:n/2]), x) }),
		c("Collect", [][]float32{sums}, func() {
			n, above, least, most := l.Collect(words, x, math.Float32bits(0.5), math.Float32bits(1.5))
			sums[0], sums[1] = float32(n), float32(above+least+most)
		}),
	}
}

// BenchmarkKernel runs every kernel on a shape that fits the caches.
func BenchmarkKernel(b *testing.B) {
	for _, l := range Levels() {
		for _, c := range kernelCases(l) {
			b.Run(l.String()+"/"+c.name, func(b *testing.B) {
				for b.Loop() {
					c.call()
				}
				ns := b.Elapsed().Seconds() * 1e9 / float64(b.N)
				if c.flops > 0 {
					b.ReportMetric(float64(c.flops)/ns, "GF/s")
				} else {
					b.ReportMetric(ns/float64(c.elems), "ns/element")
				}
			})
		}
	}
}
