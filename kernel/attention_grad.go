// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// AttentionGradScratch is the number of elements of scratch that AttentionGrad
// takes for a row of T tokens.
func (l Level) AttentionGradScratch(a Heads, T int) int {
	tiles := (T + attnTile - 1) / attnTile
	return 2*attnTile*attnTile + 2*T + 2*tiles*l.PanelLen(a.K, attnTile) +
		2*l.PanelLen(attnTile, a.K) + l.PanelLen(a.K, attnTile)
}

// AttentionGrad is the gradient of Attention for one row of T = len(positions)
// tokens and key head g with its H/G query heads.
//
//	p[t,u]  = e^(s[t,u]−lse[t]),  delta[t] = do[t]·o[t]
//	dv[u]   = Σ_h Σ_t p[t,u]·do[t]
//	ds[t,u] = p[t,u]·(do[t]·v[u] − delta[t])/√K
//	dq[t]   = Σ_u ds[t,u]·k[u],  dk[u] = Σ_h Σ_t ds[t,u]·q[t]
//
// with the letters, shapes and windows of Attention; do is [T,HK], and dqkv, of
// which the query heads of g and its key and value head are overwritten, is
// [T,(H+2G)K] and overlaps nothing else. scratch has AttentionGradScratch(a, T)
// elements. Cost: 10·K FLOP per query head and pair (t,u) in the tiles of 64 by
// 64 that have a visible pair, about half of that on the diagonal; others are
// skipped.
//
// float32. Every sum is one left fold: over u for dq, over the heads of the
// group and then t for dk and dv, in rising order.
//
// Dao et al., "FlashAttention", 2022, arXiv:2205.14135, algorithm 4.
func (l Level) AttentionGrad(dqkv, qkv, o, lse, do []float32, positions []int32, a Heads, g int,
	scratch []float32,
) {
	T, rep := len(positions), a.H/a.G
	b := backward{
		level: l, Heads: a, W: a.Width(), HK: a.H * a.K, scale: invSqrt(a.K), g: g,
		dqkv: dqkv, qkv: qkv, o: o, do: do, positions: positions,
	}
	tiles := (T + attnTile - 1) / attnTile
	take := func(n int) (x []float32) { x, scratch = scratch[:n], scratch[n:]; return x }
	b.p, b.ds = take(attnTile*attnTile), take(attnTile*attnTile)
	b.lse, b.delta = take(T), take(T)
	b.queries, b.grads = take(tiles*l.PanelLen(a.K, attnTile)), take(tiles*l.PanelLen(a.K, attnTile))
	b.keys.panels, b.values.panels = take(l.PanelLen(attnTile, a.K)), take(l.PanelLen(attnTile, a.K))
	b.rows.panels = take(l.PanelLen(a.K, attnTile))
	for h := g * rep; h < (g+1)*rep; h++ {
		b.begin(h, lse)
		for u0 := 0; u0 < T; u0 += attnTile {
			b.column(h, u0, h > g*rep)
		}
	}
}

// backward is one call of AttentionGrad.
type backward struct {
	level Level
	Heads
	W, HK, g       int
	scale          float32
	dqkv, qkv      []float32
	o, do          []float32
	positions      []int32
	p, ds          []float32 // [attnTile,attnTile]
	lse, delta     []float32 // [T], of the query head at work
	queries, grads []float32 // its q and do, packed a tile of tokens after the other
	keys, values   packed    // [K,attnTile], of the tile at work
	rows           packed    // [attnTile,K], its keys
}

// at is where head j of token t begins in fused rows.
func (b *backward) at(t, j int) int { return t*b.W + j*b.K }

// tokens is the tile of tokens from t on of a head's packed rows.
func (b *backward) tokens(panels []float32, t int) packed {
	n := min(attnTile, len(b.positions)-t)
	return packed{panels[t/attnTile*b.level.PanelLen(b.K, attnTile):], b.K, n, attnWidths[b.level]}
}

// begin is what all tiles of a query head share.
func (b *backward) begin(h int, lse []float32) {
	T := len(b.positions)
	for t := range T {
		i := t*b.HK + h*b.K
		b.lse[t] = lse[t*b.H+h]
		b.delta[t] = b.level.dotRow(b.do[i:][:b.K], b.o[i:][:b.K])
	}
	for t := 0; t < T; t += attnTile {
		q, g := b.tokens(b.queries, t), b.tokens(b.grads, t)
		b.level.packedRows(q.panels, b.qkv[b.at(t, h):], q.k, b.K, b.W)
		b.level.packedRows(g.panels, b.do[t*b.HK+h*b.K:], g.k, b.K, b.HK)
	}
}

// column is a tile of keys with all queries that see one of it. Gradients of
// keys and values are added to those of other heads if acc.
func (b *backward) column(h, u0 int, acc bool) {
	T, n := len(b.positions), min(attnTile, len(b.positions)-u0)
	k, v := b.at(u0, b.H+b.g), b.at(u0, b.H+b.G+b.g)
	b.keys = b.level.packedColumns(b.keys.panels, b.qkv[k:], n, b.K, b.W)
	b.values = b.level.packedColumns(b.values.panels, b.qkv[v:], n, b.K, b.W)
	b.rows = b.level.packedRows(b.rows.panels, b.qkv[k:], n, b.K, b.W)
	for t := u0; t < T; t += attnTile {
		m := min(attnTile, T-t)
		see := window{b.positions, t, u0, n}
		if t > u0 && see.nothing() {
			continue
		}
		b.tile(h, see, m, acc || t > u0)
	}
}

// tile is m queries and the keys at work.
func (b *backward) tile(h int, see window, m int, acc bool) {
	l, t, n := b.level, see.t, see.w
	l.scores(b.p, b.qkv[b.at(t, h):], b.keys, see, m, b.W)
	l.scores(b.ds, b.do[t*b.HK+h*b.K:], b.values, see, m, b.HK)
	see.mask(b.p, m)
	if see.end(0) < attnTile {
		for i := range m { // what was not computed must be finite
			clear(b.ds[i*attnTile+see.end(i) : (i+1)*attnTile])
		}
	}
	l.softmaxGradRows(b.p, b.ds, attnTile, m, b.scale, b.lse[t:][:m], b.delta[t:][:m])
	dq, dk, dv := b.at(t, h), b.at(see.u0, b.H+b.g), b.at(see.u0, b.H+b.G+b.g)
	q, g := b.tokens(b.queries, t), b.tokens(b.grads, t)
	step := n // keys that are multiplied at once: queries before a key do not see it
	if t == see.u0 {
		step = attnRows
	}
	for i := 0; i < n; i += step {
		rows, from := min(step, n-i), max(0, see.u0+i-t)
		l.block(b.dqkv[dv+i*b.W:], b.p[from*attnTile+i:], g, rows, b.K, from, m-from, b.W, 1, attnTile, acc)
		l.block(b.dqkv[dk+i*b.W:], b.ds[from*attnTile+i:], q, rows, b.K, from, m-from, b.W, 1, attnTile, acc)
	}
	more := see.u0 > firstKey(b.positions, t)
	see.groups(m, func(i, rows, end int) {
		l.block(b.dqkv[dq+i*b.W:], b.ds[i*attnTile:], b.rows, rows, b.K, 0, end, b.W, attnTile, 1, more)
	})
}
