// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"pleach/kernel"
	"pleach/program"
)

// queries is the number of query tokens in a tile of attention.
const queries = 256

// rotation names a table of sines: K/2 frequencies at T positions.
type rotation struct {
	program.Rope
	K, T int
}

// rotations is the table of cosines and of sines [T,K/2] that all layers share.
func (e *Engine) rotations(r rotation) (cos, sin []float32) {
	t := e.tables[r]
	if t == nil {
		n := r.T * r.K / 2
		t = &[2][]float32{make([]float32, n), make([]float32, n)}
		kernel.RoPETable(t[0], t[1], r.Frequencies(r.K))
		e.tables[r] = t
		e.memory.Scratch += 2 * 4 * n
	}
	return t[0], t[1]
}

// rope has its tables of sines before a run.
func rope(l *lowering) []phase {
	x, positions, y := l.num(0), l.ints(1), l.numOut(0)
	a, heads, W := l.op.Attr, shapeOf(l.op), l.op.Attr.Heads.Width()
	cos, sin := l.x.e.rotations(rotation{a.Rope, a.Heads.K, a.Heads.T})
	return l.rows(len(positions), func(d *desk, lo, hi int) {
		n := (hi - lo) * W
		out := d.room(y, lo*W, n)
		d.level.RoPE(out, d.read(x, lo*W, n), positions[lo:hi], cos, sin, heads, a.Inverse)
		y.Store(d.level, out, lo*W)
	})
}

// attention has a tile for each row, query head and block of queries.
func attention(l *lowering) []phase {
	qkv, positions, o, lse := l.num(0), l.ints(1), l.numOut(0), l.out(1)
	h, heads, scratch := l.op.Attr.Heads, shapeOf(l.op), l.scratch()
	W, across := h.Width(), (h.T+queries-1)/queries
	return []phase{{tiles: len(positions) / h.T * h.H * across, run: func(worker, tile int) {
		// The last block of a row is the longest, so blocks are taken from the
		// last to the first.
		b, j, t := tile/across/h.H*h.T, tile/across%h.H, (across-1-tile%across)*queries
		l.level.Attention(o.From(b*h.H*h.K), lse[b*h.H:][:h.T*h.H], qkv.From(b*W), positions[b:][:h.T], heads,
			j, t, min(t+queries, h.T), scratch(worker))
	}}}
}

// attentionGrad has a tile for each row and key/value head, whose query heads
// add to the same gradients. What they make is complete then, and may be rotated
// back.
func attentionGrad(l *lowering) []phase {
	qkv, o, lse, do, positions := l.num(0), l.num(1), l.in(2), l.num(3), l.ints(4)
	dqkv, h, heads, scratch := l.numbers(l.st.last().Out[0]), l.op.Attr.Heads, shapeOf(l.op), l.scratch()
	W, HK, rep := h.Width(), h.H*h.K, h.H/h.G
	turn := func(kernel.Numbers, int, int, int, int, []float32) {}
	if op := l.st.op(program.OpRoPE); op != nil {
		turn = l.turner(op)
	}
	return []phase{{tiles: len(positions) / h.T * h.G, run: func(worker, tile int) {
		b, g := tile/h.G*h.T, tile%h.G
		l.level.AttentionGrad(dqkv.From(b*W), qkv.From(b*W), o.From(b*HK), lse[b*h.H:][:h.T*h.H],
			do.From(b*HK), positions[b:][:h.T], heads, g, scratch(worker))
		turn(dqkv.From(b*W+g*rep*h.K), W, b, h.T, rep, scratch(worker))
		turn(dqkv.From(b*W+(h.H+g)*h.K), W, b, h.T, 1, scratch(worker))
	}}}
}

func cachedAttention(l *lowering) []phase {
	qkv, cache, slots, positions, o := l.num(0), l.num(1), l.ints(2), l.ints(3), l.numOut(0)
	h, heads, scratch := l.op.Attr.Heads, shapeOf(l.op), l.scratch()
	W, HK := h.Width(), h.H*h.K
	return []phase{
		one(func() { kernel.CacheAppend(cache, qkv, slots, positions, h.T, heads) }),
		{tiles: len(slots) * h.G, run: func(worker, tile int) {
			n, g := tile/h.G, tile%h.G
			l.level.AttentionCached(o.From(n*HK), qkv.From(n*W), cache, int(slots[n]), int(positions[n]), h.T,
				heads, g, scratch(worker))
		}},
	}
}
