// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"pleach/kernel"
)

// The head makes logits in tiles of headTokens tokens and headWords words. The
// cut of the words is part of the result (sums of exponentials are joined tile
// by tile), so it is a constant.
const (
	headTokens = 64
	headWords  = 192
)

// logitTiles calls f with the logits of n tokens from token lo on, a tile of words
// after the other.
func logitTiles(
	k kernel.Level, z []float32, x kernel.Numbers, w weights, lo, n, V int, scratch []float32, f func(first, words int),
) {
	for first := 0; first < V; first += headWords {
		words := min(headWords, V-first)
		w.gemmNT(k, z, x.From(lo*w.k), n, first, words, first+words, headWords, scratch)
		f(first, words)
	}
}

func headStatsNeeds(s *schedule, st *step) {
	if len(st.ops) > 1 {
		headNeeds(s, st)
		return
	}
	st.scratch = headTokens*(headWords+3) + gemmScratch(s.level, halved(st.first().In[0]))
}

// headStats begins anew in every tile of words, and joins what it finds: tiles
// may be made in any order, as the fused head does.
func headStats(l *lowering) []phase {
	if len(l.st.ops) > 1 {
		return headAtOnce(l)
	}
	x, w, labels, stats := l.num(0), l.weights(), l.ints(2), l.out(0)
	N, V, scratch := l.dim(0, 0), l.dim(1, 0), l.scratch()
	size := min(headTokens, l.share(N, 4))
	return []phase{{tiles: (N + size - 1) / size, run: func(worker, tile int) {
		lo := tile * size
		hi := min(lo+size, N)
		z, rest := cut(scratch(worker), headTokens*headWords)
		part, rest := cut(rest, 3*(hi-lo))
		st := stats[3*lo : 3*hi]
		kernel.HeadStatsBegin(st)
		logitTiles(l.level, z, x, w, lo, hi-lo, V, rest, func(first, words int) {
			kernel.HeadStatsBegin(part)
			l.level.HeadStats(part, z, labels[lo:hi], first, words, headWords)
			kernel.HeadCombine(st, part)
		})
	}}}
}

func headLoss(l *lowering) []phase {
	stats, labels, lse, loss := l.in(0), l.ints(1), l.out(0), l.out(1)
	var tally []float64
	if len(l.op.In) > 2 {
		tally = l.wide(2)
	}
	return []phase{one(func() {
		kernel.HeadLoss(lse, loss, stats, labels)
		if tally != nil {
			tally[0], tally[1] = kernel.Tally(tally[0], tally[1], loss, labels)
		}
	})}
}

// Chunks of head.grad: the logits of so many tokens and words exist at a time.
const (
	gradTokens = 256
	gradWords  = 512
)

func headGradNeeds(s *schedule, st *step) {
	op := st.first()
	half := halved(op.In[0])
	N, V, D := min(gradTokens, op.In[0].Dim(0)), min(gradWords, op.In[1].Dim(0)), op.In[1].Dim(1)
	st.scratch = gemmScratch(s.level, half)
	st.buffer("logits", N, V)
	if half {
		st.buffer("p", N, (V+1)/2)
		st.buffer("dx", N, D)
	}
}

// headGrad goes through tokens and words in chunks: the gradients of a chunk's
// logits are made, then added to dx over words and to dw over tokens, both in
// rising order. With operands of bf16 they are rounded first, and dx is summed
// beside its place.
func headGrad(l *lowering) []phase {
	h := headGradient{
		x: l.num(0), w: l.num(1), labels: l.ints(2), lse: l.in(3), dw: l.in(4), dx: l.numOut(0),
		V: l.dim(1, 0), D: l.dim(1, 1), z: l.own(0), scratch: l.scratch(),
	}
	h.p = kernel.Numbers{F32: h.z}
	if h.x.Half() {
		h.p, h.sum = kernel.Numbers{BF16: l.ownHalf(1)}, l.own(2)
	}
	N := l.dim(0, 0)
	var phases []phase
	for n := 0; n < N; n += gradTokens {
		for v := 0; v < h.V; v += gradWords {
			phases = append(phases, h.chunk(l, n, v, min(gradTokens, N-n), min(gradWords, h.V-v))...)
		}
	}
	return phases
}

// grid cuts an m by n result into tiles: smaller ones where workers would wait
// for each other at the end.
func (l *lowering) grid(m, n int, f func(worker, i, j, rows, cols int)) phase {
	tm, tn := min(headTokens, m), min(headWords, n)
	few := func() bool { return l.few(across(tm, m) * across(tn, n)) }
	for few() && tn > headWords/4 {
		tn /= 2
	}
	for few() && tm > headTokens/2 {
		tm /= 2
	}
	w := across(tn, n)
	return phase{tiles: across(tm, m) * w, run: func(worker, tile int) {
		i, j := tile/w*tm, tile%w*tn
		f(worker, i, j, min(tm, m-i), min(tn, n-j))
	}}
}

type headGradient struct {
	x, w, dx kernel.Numbers
	lse, dw  []float32
	labels   []int32
	V, D     int
	z        []float32      // the chunk's logits
	p        kernel.Numbers // their gradients
	sum      []float32      // dx of the chunk's tokens, where it is not summed in its place
	scratch  func(worker int) []float32
}

// chunk is N tokens from n0 on, and V words from v0 on.
func (h headGradient) chunk(l *lowering, n0, v0, N, V int) []phase {
	D, k := h.D, l.level
	x, w, dw, sum := h.x.From(n0*D), h.w.From(v0*D), h.dw[v0*D:], h.sum
	if !h.x.Half() {
		sum = h.dx.F32[n0*D:]
	}
	logits := l.grid(N, V, func(worker, i, j, m, n int) {
		z := h.z[i*V+j:]
		x.From(i*D).GemmNT(k, z, w.From(j*D), m, n, D, V, D, D, false, h.scratch(worker))
		k.HeadGrad(z, h.lse[n0+i:][:m], h.labels[n0+i:][:m], v0+j, n, V)
		for r := range m {
			h.p.Store(k, z[r*V:][:n], (i+r)*V+j)
		}
	})
	toX := l.grid(N, D, func(worker, i, j, m, n int) {
		h.p.From(i*V).GemmNN(k, sum[i*D+j:], w.From(j), m, n, V, D, V, D, v0 > 0, h.scratch(worker))
		for r := i; r < i+m && v0+V == h.V; r++ {
			h.dx.Store(k, sum[r*D+j:][:n], (n0+r)*D+j)
		}
	})
	toW := l.grid(V, D, func(worker, i, j, m, n int) {
		h.p.From(i).GemmTN(k, dw[i*D+j:], x.From(j), m, n, N, D, V, D, true, h.scratch(worker))
	})
	return []phase{logits, both(toX, toW)}
}

// both is two phases that do not depend on each other as one.
func both(a, b phase) phase {
	n, f, g := a.tiles, a.run, b.run
	return phase{tiles: n + b.tiles, run: func(worker, tile int) {
		if tile < n {
			f(worker, tile)
		} else {
			g(worker, tile-n)
		}
	}}
}

func headTopNeeds(s *schedule, st *step) {
	op := st.first()
	st.scratch = headTokens*(headWords+2*op.Out[0].Dim(2)) + gemmScratch(s.level, halved(op.In[0]))
}

func headTop(l *lowering) []phase {
	x, w, found := l.num(0), l.weights(), l.out(0)
	N, V, k, scratch := l.dim(0, 0), l.dim(1, 0), l.op.Out[0].Dim(2), l.scratch()
	size := min(headTokens, l.share(N, 4))
	return []phase{{tiles: (N + size - 1) / size, run: func(worker, tile int) {
		lo := tile * size
		n := min(size, N-lo)
		s := scratch(worker)
		z, value := s[:headTokens*headWords], s[headTokens*headWords:][:n*k]
		ids := asInts(s[headTokens*(headWords+k):][:n*k])
		kernel.TopKBegin(value, ids)
		logitTiles(l.level, z, x, w, lo, n, V, s[headTokens*(headWords+2*k):], func(first, words int) {
			kernel.TopK(value, ids, z, k, first, words, headWords)
		})
		for i, v := range value {
			found[2*(lo*k+i)], found[2*(lo*k+i)+1] = float32(ids[i]), v
		}
	}}}
}

// topMerge sorts what the ranks found: with one of them it is sorted already.
func topMerge(l *lowering) []phase {
	found, lse, top := l.in(0), l.in(1), l.out(0)
	N, k := l.dim(0, 1), l.dim(0, 2)
	return []phase{over(N, rowTile, func(lo, hi int) {
		copy(top[2*lo*k:2*hi*k], found[2*lo*k:])
		for i := lo * k; i < hi*k; i++ {
			top[2*i+1] -= lse[i/k]
		}
	})}
}
