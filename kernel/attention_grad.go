// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// AttentionGradScratch is the number of elements of scratch that AttentionGrad
// takes for a row of T tokens, of bf16 if half.
func (l Level) AttentionGradScratch(a Heads, T int, half bool) int {
	f := format{level: l, half: half}
	tiles := (T + attnTile - 1) / attnTile
	size := 2*attnTile*attnTile + 2*T + 2*tiles*f.panelLen(a.K, attnTile) +
		2*f.panelLen(attnTile, a.K) + f.panelLen(a.K, attnTile)
	if half {
		size += 3*T*a.K + 2*T*f.steps(a.K) + 2*attnTile*attnTile + 2*a.K
	}
	return size
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
// [T,(H+2G)K] and overlaps nothing else; lse is float32, the others are of one
// type. scratch has AttentionGradScratch(a, T, qkv.Half()) elements. Cost: 10·K FLOP
// per query head and pair (t,u) in the tiles of 64 by 64 that have a visible pair,
// about half of that on the diagonal; others are skipped.
//
// Everything between is float32, except that p and ds are rounded to bf16 before
// they are multiplied by numbers of bf16. Every sum is one left fold: over u for dq,
// over the heads of the group and then t for dk and dv, in rising order.
//
// Dao et al., "FlashAttention", 2022, arXiv:2205.14135, algorithm 4.
func (l Level) AttentionGrad(dqkv, qkv, o Numbers, lse []float32, do Numbers, positions []int32, a Heads, g int,
	scratch []float32,
) {
	T, rep := len(positions), a.H/a.G
	if T == 0 {
		return
	}
	b := backward{
		format: formatOf(l, qkv), Heads: a, W: a.Width(), HK: a.H * a.K, scale: invSqrt(a.K), g: g,
		dqkv: dqkv, qkv: qkv, o: o, do: do, positions: positions,
	}
	tiles := (T + attnTile - 1) / attnTile
	take := func(n int) (x []float32) { x, scratch = scratch[:n], scratch[n:]; return x }
	b.s, b.ds = take(attnTile*attnTile), take(attnTile*attnTile)
	b.lse, b.delta = take(T), take(T)
	b.queries, b.grads = take(tiles*b.panelLen(a.K, attnTile)), take(tiles*b.panelLen(a.K, attnTile))
	b.keys.panels, b.values.panels = take(b.panelLen(attnTile, a.K)), take(b.panelLen(attnTile, a.K))
	b.rowsOf.panels = take(b.panelLen(a.K, attnTile))
	b.dk, b.dv, b.ld = dqkv.F32, dqkv.F32, b.W
	if b.half {
		b.ld = a.K
		b.dq, b.dk, b.dv = take(T*a.K), take(T*a.K), take(T*a.K)
		b.widened = [2][]float32{take(T * b.steps(a.K)), take(T * b.steps(a.K))}
		b.operands = [2][]float32{take(attnTile * attnTile / 2), take(attnTile * attnTile / 2)}
		b.columnsOf = take(attnTile * attnTile)
		b.row = [2][]float32{take(a.K), take(a.K)}
	} else {
		b.dk, b.dv = b.dk[b.at(0, a.H+g):], b.dv[b.at(0, a.H+a.G+g):]
	}
	for h := g * rep; h < (g+1)*rep; h++ {
		b.begin(h, lse)
		for u0 := 0; u0 < T; u0 += attnTile {
			b.column(u0, h > g*rep)
		}
		b.store(b.dq, h)
	}
	b.store(b.dk, a.H+g)
	b.store(b.dv, a.H+a.G+g)
}

// backward is one call of AttentionGrad.
type backward struct {
	format
	Heads
	W, HK, g       int
	scale          float32
	dqkv, qkv      Numbers
	o, do          Numbers
	positions      []int32
	q, g16         left      // the query head at work, and the gradient of what it made
	dq, dk, dv     []float32 // of a head, from token 0 on, with rows of distance ld
	ld             int
	s, ds          []float32 // [attnTile,attnTile], scores and then probabilities; their gradients
	lse, delta     []float32 // [T], of the query head at work
	queries, grads []float32 // its q and do, packed a tile of tokens after the other
	keys, values   packed    // [K,attnTile], of the tile at work
	rowsOf         packed    // [attnTile,K], its keys
	widened        [2][]float32
	operands       [2][]float32 // room for two tiles as operands, and
	columnsOf      []float32    // for one turned
	row            [2][]float32
}

// at is where head j of token t begins in fused rows.
func (b *backward) at(t, j int) int { return t*b.W + j*b.K }

// store rounds the gradients of a head into their place.
func (b *backward) store(d []float32, j int) {
	for t := 0; b.half && t < len(b.positions); t++ {
		b.dqkv.Store(b.level, d[t*b.K:][:b.K], b.at(t, j))
	}
}

// tokens is the tile of tokens from t on of a head's packed rows.
func (b *backward) tokens(panels []float32, t int) packed {
	n := min(attnTile, len(b.positions)-t)
	return packed{panels[t/attnTile*b.panelLen(b.K, attnTile):], b.K, b.steps(n), attnWidths[b.level]}
}

// begin is what all tiles of a query head share.
func (b *backward) begin(h int, lse []float32) {
	T := len(b.positions)
	b.q = b.left(b.qkv.From(h*b.K), T, b.K, b.W, b.widened[0])
	b.g16 = b.left(b.do.From(h*b.K), T, b.K, b.HK, b.widened[1])
	if !b.half {
		b.dq = b.dqkv.F32[h*b.K:]
	}
	for t := range T {
		i := t*b.HK + h*b.K
		b.lse[t] = lse[t*b.H+h]
		b.delta[t] = b.level.dotRow(b.do.Load(b.level, b.row[0], i, b.K), b.o.Load(b.level, b.row[1], i, b.K))
	}
	for t := 0; t < T; t += attnTile {
		n := min(attnTile, T-t)
		b.rows(b.tokens(b.queries, t).panels, b.qkv.From(b.at(t, h)), n, b.K, b.W)
		b.rows(b.tokens(b.grads, t).panels, b.do.From(t*b.HK+h*b.K), n, b.K, b.HK)
	}
}

// column is a tile of keys with all queries that see one of it. Gradients of
// keys and values are added to those of other heads if acc.
func (b *backward) column(u0 int, acc bool) {
	T, n := len(b.positions), min(attnTile, len(b.positions)-u0)
	k, v := b.qkv.From(b.at(u0, b.H+b.g)), b.qkv.From(b.at(u0, b.H+b.G+b.g))
	b.keys = b.columns(b.keys.panels, k, n, b.K, b.W)
	b.values = b.columns(b.values.panels, v, n, b.K, b.W)
	b.rowsOf = b.rows(b.rowsOf.panels, k, n, b.K, b.W)
	for t := u0; t < T; t += attnTile {
		m := min(attnTile, T-t)
		see := window{b.positions, t, u0, n}
		if t > u0 && see.nothing() {
			continue
		}
		b.tile(see, m, acc || t > u0)
	}
}

// tile is m queries and the keys at work.
func (b *backward) tile(see window, m int, acc bool) {
	t := see.t
	b.scores(b.s, b.q.from(t), b.keys, see, m)
	b.scores(b.ds, b.g16.from(t), b.values, see, m)
	see.mask(b.s, m)
	if see.end(0) < attnTile {
		for i := range m { // what was not computed must be finite
			clear(b.ds[i*attnTile+see.end(i) : (i+1)*attnTile])
		}
	}
	p, ds := b.softmaxGrad(b.s, b.ds, m, b.scale, b.lse[t:][:m], b.delta[t:][:m], b.operands)
	b.toKeys(b.dv, p, see, m, b.tokens(b.grads, t), acc)
	b.toKeys(b.dk, ds, see, m, b.tokens(b.queries, t), acc)
	more := see.u0 > firstKey(b.positions, t)
	see.groups(m, b.rowsTogether(), func(i, rows, end int) {
		b.mul.block(b.dq[(t+i)*b.ld:], ds.from(i).x, b.rowsOf, rows, b.K, 0, b.steps(end), b.ld, ds.ld, 1, more)
	})
}

// toKeys adds aᵀ·x to the gradients of the tile of keys.
func (b *backward) toKeys(d []float32, a left, see window, m int, x packed, acc bool) {
	turned := b.turned(a, m, b.columnsOf)
	n, step := see.w, see.w // keys that are multiplied at once: queries before a key do not see it
	if see.t == see.u0 {
		step = b.rowsTogether()
	}
	for i := 0; i < n; i += step {
		from := b.steps(max(0, see.u0+i-see.t))
		b.mul.block(d[(see.u0+i)*b.ld:], turned.from(from, i), x, min(step, n-i), b.K, from, x.k-from, b.ld,
			turned.as, attnTile, acc)
	}
}
