// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"pleach/kernel"
	"pleach/program"
)

// headStep is the whole head in one step: statistics, loss and gradients of
// chunks of tokens, whose logits exist once.
//
//	z = x·wᵀ, statistics of each tile of headWords words
//	lse, loss from the statistics, joined in the order of the words
//	for each block of words:
//	  p = e^(z−lse) − [v = label];  dw += pᵀ·x, a tile of words at a time
//	  dx (+)= p·w
//
// dw is one left fold over tokens, dx one over words: neither chunks nor blocks
// change a bit. The work on dx of a block is done beside that on dw of the next.
//
// In float32, p takes the place of z, and dx is summed in its own. With operands of
// bf16, z and both sums are float32, and p is rounded to bf16.
type headStep struct {
	l             *lowering
	level         kernel.Level
	x, w, dx      kernel.Numbers
	lse, loss, dw []float32
	labels        []int32
	N, V, D       int
	tokens, words int // of a chunk, of a block

	z, stats, rows []float32    // logits [tokens,V], statistics [tiles,tokens,3], packed x
	weights        [2][]float32 // packed blocks of w
	grads          [2][]uint16  // p of blocks [tokens,words], of bf16
	sum            []float32    // dx of a chunk [tokens,D]
	scratch        func(worker int) []float32
}

// headSizes is how many tokens' logits exist at a time, and how many words of the
// weights are packed for dx.
func headSizes(s *schedule, st *step) (tokens, words int) {
	op := st.first()
	N, V, D := op.In[0].Dim(0), op.In[1].Dim(0), op.In[1].Dim(1)
	logits := s.limits.logits
	if halved(op.In[0]) { // p takes memory of its own
		logits /= 2
	}
	tokens = min(N, upTo(logits/V, cellRows))
	words = min(V, upTo(s.limits.packed/2/D, headWords))
	return tokens, words
}

func headTiles(V int) int { return across(headWords, V) }

func headNeeds(s *schedule, st *step) {
	op := st.first()
	V, D := op.In[1].Dim(0), op.In[1].Dim(1)
	tokens, words := headSizes(s, st)
	st.buffer("logits", tokens, V)
	st.buffer("statistics", headTiles(V), tokens, 3)
	half := halved(op.In[0])
	st.buffer("packed.x", panelLen(s.level, half, D, tokens))
	st.buffer("packed.w", panelLen(s.level, half, D, words))
	st.buffer("packed.w", panelLen(s.level, half, D, words))
	st.scratch = panelLen(s.level, half, headWords, D) + stageScratch(s.level, half)
	if half {
		st.buffer("p", tokens, (words+1)/2)
		st.buffer("p", tokens, (words+1)/2)
		st.buffer("dx", tokens, D)
	}
}

func headAtOnce(l *lowering) []phase {
	loss, grad := l.st.op(program.OpHeadLoss), l.st.op(program.OpHeadGrad)
	h := &headStep{
		l: l, level: l.level, x: l.num(0), w: l.num(1), labels: l.ints(2),
		lse: l.f32(loss.Out[0]), loss: l.f32(loss.Out[1]), dw: l.f32(grad.In[4]), dx: l.numbers(grad.Out[0]),
		N: l.dim(0, 0), V: l.dim(1, 0), D: l.dim(1, 1),
		z: l.own(0), stats: l.own(1), rows: l.own(2), weights: [2][]float32{l.own(3), l.own(4)},
		scratch: l.scratch(),
	}
	if h.x.Half() {
		h.grads, h.sum = [2][]uint16{l.ownHalf(5), l.ownHalf(6)}, l.own(7)
	}
	h.tokens, h.words = headSizes(l.x.s, l.st)
	var phases []phase
	for n := 0; n < h.N; n += h.tokens {
		phases = append(phases, h.chunk(n, min(h.tokens, h.N-n))...)
	}
	if len(loss.In) > 2 {
		tally := view[float64](l.x.bytes(loss.In[2], l.slot))
		labels, losses := h.labels, h.loss
		phases = append(phases, one(func() {
			tally[0], tally[1] = kernel.Tally(tally[0], tally[1], losses, labels)
		}))
	}
	return phases
}

// chunk is N tokens from n0 on.
func (h *headStep) chunk(n0, N int) []phase {
	phases := []phase{
		both(h.logits(n0, N), h.l.packRows(h.rows, h.x.From(n0*h.D), N, h.D)),
		h.losses(n0, N),
	}
	before := phase{}
	for block, v := 0, 0; v < h.V; block, v = block+1, v+h.words {
		words, packed, grads := min(h.words, h.V-v), h.weights[block%2], h.grads[block%2]
		toW := both(h.toW(n0, N, v, words, grads), h.l.packRows(packed, h.w.From(v*h.D), words, h.D))
		phases = append(phases, both(before, toW))
		before = h.toX(n0, N, v, words, packed, grads)
	}
	return append(phases, before)
}

// logits makes a tile of words for several tokens, with weights that it packs for
// itself.
func (h *headStep) logits(n0, N int) phase {
	tiles, tm := headTiles(h.V), N
	for h.l.few(tiles*across(tm, N)) && tm > 2*cellRows {
		tm = (tm/2 + cellRows - 1) / cellRows * cellRows
	}
	return phase{tiles: tiles * across(tm, N), run: func(worker, tile int) {
		v, t := tile%tiles*headWords, tile%tiles
		words := min(headWords, h.V-v)
		packed, scratch := cut(h.scratch(worker), h.w.PanelLen(h.level, words, h.D))
		h.w.From(v*h.D).PackNT(h.level, packed, words, h.D, h.D)
		end := min(tile/tiles*tm+tm, N)
		for i := tile / tiles * tm; i < end; i += cellRows {
			m, z := min(cellRows, end-i), h.z[i*h.V+v:]
			h.x.From((n0+i)*h.D).MultiplyN(h.level, z, packed, m, words, h.D, h.V, h.D, false, scratch)
			st := h.stats[3*(t*h.tokens+i):][:3*m]
			kernel.HeadStatsBegin(st)
			h.level.HeadStats(st, z, h.labels[n0+i:][:m], v, words, h.V)
		}
	}}
}

// losses joins the statistics of all tiles.
func (h *headStep) losses(n0, N int) phase {
	return over(N, rowTile, func(lo, hi int) {
		st := h.stats[3*lo : 3*hi]
		for t := 1; t < headTiles(h.V); t++ {
			kernel.HeadCombine(st, h.stats[3*(t*h.tokens+lo):][:len(st)])
		}
		kernel.HeadLoss(h.lse[n0+lo:n0+hi], h.loss[n0+lo:n0+hi], st, h.labels[n0+lo:n0+hi])
	})
}

// toW turns the logits of a block of words into their gradients, and adds to dw.
func (h *headStep) toW(n0, N, v0, V int, grads []uint16) phase {
	size := headWords / 2
	if h.l.few(across(size, V)) {
		size /= 2
	}
	return overWith(V, size, func(worker, lo, hi int) {
		z, v, n := h.z[v0+lo:], v0+lo, hi-lo
		if lse, labels := h.lse[n0:n0+N], h.labels[n0:n0+N]; h.x.Half() {
			h.level.HeadGrad16(grads[lo:], z, lse, labels, v, n, V, h.V)
		} else {
			h.level.HeadGrad(z, lse, labels, v, n, h.V)
		}
		p, ld := h.block(v0, V, grads)
		p.From(lo).MultiplyT(h.level, h.dw[v*h.D:], h.rows, n, h.D, N, h.D, ld, true, h.scratch(worker))
	})
}

// block is p of a block of words, with rows of distance ld.
func (h *headStep) block(v0, V int, grads []uint16) (p kernel.Numbers, ld int) {
	if h.x.Half() {
		return kernel.Numbers{BF16: grads}, V
	}
	return kernel.Numbers{F32: h.z[v0:]}, h.V
}

// toX adds what a block of words says about x. Sums that are not made in their place
// are rounded into it after the last block.
func (h *headStep) toX(n0, N, v0, V int, packed []float32, grads []uint16) phase {
	width := upTo(cellCols, h.level.PanelWidth())
	wide := across(width, h.D)
	p, ld := h.block(v0, V, grads)
	sum := h.sum
	if !h.x.Half() {
		sum = h.dx.F32[n0*h.D:]
	}
	return phase{tiles: wide * across(cellRows, N), run: func(worker, tile int) {
		i, j := tile/wide*cellRows, tile%wide*width
		m, n := min(cellRows, N-i), min(width, h.D-j)
		p.From(i*ld).MultiplyN(h.level, sum[i*h.D+j:], packed[p.PanelLen(h.level, j, V):], m, n, V, h.D, ld, v0 > 0,
			h.scratch(worker))
		for r := i; r < i+m && v0+V == h.V; r++ {
			h.dx.Store(h.level, sum[r*h.D+j:][:n], (n0+r)*h.D+j)
		}
	}}
}
