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
//	  z ← e^(z−lse) − [v = label];  dw += zᵀ·x, a tile of words at a time
//	  dx (+)= z·w
//
// dw is one left fold over tokens, dx one over words: neither chunks nor blocks
// change a bit. The work on dx of a block is done beside that on dw of the next.
type headStep struct {
	l                   *lowering
	level               kernel.Level
	x, w, lse, loss, dw []float32
	dx                  []float32
	labels              []int32
	N, V, D             int
	tokens, words       int // of a chunk, of a block

	z, stats, rows []float32    // logits [tokens,V], statistics [tiles,tokens,3], packed x
	weights        [2][]float32 // packed blocks of w
	scratch        func(worker int) []float32
}

// headSizes is how many tokens' logits exist at a time, and how many words of the
// weights are packed for dx.
func headSizes(s *schedule, st *step) (tokens, words int) {
	op := st.first()
	N, V, D := op.In[0].Dim(0), op.In[1].Dim(0), op.In[1].Dim(1)
	tokens = min(N, upTo(s.limits.logits/V, cellRows))
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
	st.buffer("packed.x", s.level.PanelLen(D, tokens))
	st.buffer("packed.w", s.level.PanelLen(D, words))
	st.buffer("packed.w", s.level.PanelLen(D, words))
	st.scratch = s.level.PanelLen(headWords, D)
}

func headAtOnce(l *lowering) []phase {
	loss, grad := l.st.op(program.OpHeadLoss), l.st.op(program.OpHeadGrad)
	h := &headStep{
		l: l, level: l.level, x: l.in(0), w: l.in(1), labels: l.ints(2),
		lse: l.f32(loss.Out[0]), loss: l.f32(loss.Out[1]), dw: l.f32(grad.In[4]), dx: l.f32(grad.Out[0]),
		N: l.dim(0, 0), V: l.dim(1, 0), D: l.dim(1, 1),
		z: l.own(0), stats: l.own(1), rows: l.own(2), weights: [2][]float32{l.own(3), l.own(4)},
		scratch: l.scratch(),
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
		both(h.logits(n0, N), h.l.packRows(h.rows, h.x[n0*h.D:], N, h.D)),
		h.losses(n0, N),
	}
	before := phase{}
	for block, v := 0, 0; v < h.V; block, v = block+1, v+h.words {
		words, packed := min(h.words, h.V-v), h.weights[block%2]
		toW := both(h.toW(n0, N, v, words), h.l.packRows(packed, h.w[v*h.D:], words, h.D))
		phases = append(phases, both(before, toW))
		before = h.toX(n0, N, v, words, packed)
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
		words, packed := min(headWords, h.V-v), h.scratch(worker)
		h.level.PackNT(packed, h.w[v*h.D:], words, h.D, h.D)
		end := min(tile/tiles*tm+tm, N)
		for i := tile / tiles * tm; i < end; i += cellRows {
			m, z := min(cellRows, end-i), h.z[i*h.V+v:]
			h.level.MultiplyN(z, h.x[(n0+i)*h.D:], packed, m, words, h.D, h.V, h.D, false)
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
func (h *headStep) toW(n0, N, v0, V int) phase {
	size := headWords / 2
	if h.l.few(across(size, V)) {
		size /= 2
	}
	return over(V, size, func(lo, hi int) {
		z, v := h.z[v0+lo:], v0+lo
		h.level.HeadGrad(z, h.lse[n0:n0+N], h.labels[n0:n0+N], v, hi-lo, h.V)
		h.level.MultiplyT(h.dw[v*h.D:], z, h.rows, hi-lo, h.D, N, h.D, h.V, true)
	})
}

// toX adds what a block of words says about x.
func (h *headStep) toX(n0, N, v0, V int, packed []float32) phase {
	width := upTo(cellCols, h.level.PanelWidth())
	wide := across(width, h.D)
	return phase{tiles: wide * across(cellRows, N), run: func(_, tile int) {
		i, j := tile/wide*cellRows, tile%wide*width
		m, n := min(cellRows, N-i), min(width, h.D-j)
		h.level.MultiplyN(h.dx[(n0+i)*h.D+j:], h.z[i*h.V+v0:], packed[h.level.PanelLen(j, V):], m, n, V, h.D, h.V, v0 > 0)
	}}
}
