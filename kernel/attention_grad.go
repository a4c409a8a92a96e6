// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// queryTile is the number of queries that AttentionGrad takes at a time.
const queryTile = 64

// AttentionGradScratch is the number of elements of scratch that AttentionGrad
// takes for a row of T tokens.
func (l Level) AttentionGradScratch(a Heads, T int) int {
	return T*(a.H/a.G) + 2*queryTile*keyTile + 2*a.K*keyTile + l.GemmScratch()
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
// 64 that have a visible pair; others are skipped.
//
// float32. Every sum is one left fold: over u for dq, over the heads of the
// group and then t for dk and dv, in rising order.
//
// Dao et al., "FlashAttention", 2022, arXiv:2205.14135, algorithm 4.
func (l Level) AttentionGrad(dqkv, qkv, o, lse, do []float32, positions []int32, a Heads, g int,
	scratch []float32,
) {
	T, rep := len(positions), a.H/a.G
	w := attnGrad{Level: l, Heads: a, dqkv: dqkv, qkv: qkv, lse: lse, do: do, positions: positions, g: g}
	w.delta, scratch = scratch[:T*rep], scratch[T*rep:]
	w.p, scratch = scratch[:queryTile*keyTile], scratch[queryTile*keyTile:]
	w.ds, scratch = scratch[:queryTile*keyTile], scratch[queryTile*keyTile:]
	w.kT, scratch = scratch[:a.K*keyTile], scratch[a.K*keyTile:]
	w.vT, w.scratch = scratch[:a.K*keyTile], scratch[a.K*keyTile:]
	w.begin(o)
	for u0 := 0; u0 < T; u0 += keyTile {
		n := min(keyTile, T-u0)
		transpose(w.kT, qkv[w.at(u0, a.H+g):], n, a.K, keyTile, a.Width())
		transpose(w.vT, qkv[w.at(u0, a.H+a.G+g):], n, a.K, keyTile, a.Width())
		for h := g * rep; h < (g+1)*rep; h++ {
			for t0 := u0 / queryTile * queryTile; t0 < T; t0 += queryTile {
				w.tile(h, t0, min(queryTile, T-t0), u0, n)
			}
		}
	}
}

// attnGrad is one call of AttentionGrad.
type attnGrad struct {
	Level
	Heads
	dqkv, qkv, lse, do []float32
	positions          []int32
	g                  int
	delta              []float32 // [T,H/G]
	p, ds              []float32 // [queryTile,keyTile]
	kT, vT             []float32 // [K,keyTile], the keys and values of a tile
	scratch            []float32 // of products
}

// at is where head j of token t begins in fused rows.
func (w *attnGrad) at(t, j int) int { return t*w.Width() + j*w.K }

// begin computes delta and clears what will be summed.
func (w *attnGrad) begin(o []float32) {
	rep := w.H / w.G
	for t := range w.positions {
		for j := range rep {
			i := (t*w.H + w.g*rep + j) * w.K
			w.delta[t*rep+j] = dot(0, w.do[i:][:w.K], o[i:][:w.K])
		}
		clear(w.dqkv[w.at(t, w.g*rep):][:rep*w.K])
		clear(w.dqkv[w.at(t, w.H+w.g):][:w.K])
		clear(w.dqkv[w.at(t, w.H+w.G+w.g):][:w.K])
	}
}

// tile adds what m queries from t0 of head h and n keys from u0 have to do with
// each other.
func (w *attnGrad) tile(h, t0, m, u0, n int) {
	if t0+m <= u0 || firstKey(w.positions, t0, t0+m) >= u0+n {
		return
	}
	W, HK := w.Width(), w.H*w.K
	q, do := w.qkv[w.at(t0, h):], w.do[t0*HK+h*w.K:]
	w.GemmNN(w.p, q, w.kT, m, n, w.K, keyTile, W, keyTile, false, w.scratch)
	w.GemmNN(w.ds, do, w.vT, m, n, w.K, keyTile, HK, keyTile, false, w.scratch)
	w.softmax(h, t0, m, u0, n)
	k, dk, dv := w.at(u0, w.H+w.g), w.at(u0, w.H+w.g), w.at(u0, w.H+w.G+w.g)
	w.GemmTN(w.dqkv[dv:], w.p, do, n, w.K, m, W, keyTile, HK, true, w.scratch)
	w.GemmTN(w.dqkv[dk:], w.ds, q, n, w.K, m, W, keyTile, W, true, w.scratch)
	w.GemmNN(w.dqkv[w.at(t0, h):], w.ds, w.qkv[k:], m, w.K, n, W, keyTile, W, true, w.scratch)
}

// softmax turns q·k in p into probabilities, and do·v in ds into the gradient of
// q·k; both are zero where a query does not see a key.
func (w *attnGrad) softmax(h, t0, m, u0, n int) {
	scale, rep := invSqrt(w.K), w.H/w.G
	for i := range m {
		t := t0 + i
		p, ds := w.p[i*keyTile:][:n], w.ds[i*keyTile:][:n]
		lo, hi := window(w.positions, t, u0, n)
		clear(p[:lo])
		clear(p[hi:])
		clear(ds[:lo])
		clear(ds[hi:])
		l, delta := w.lse[t*w.H+h], w.delta[t*rep+h-w.g*rep]
		for j := lo; j < hi; j++ {
			e := Exp32(float32(p[j]*scale) - l)
			p[j], ds[j] = e, float32(e*(ds[j]-delta))*scale
		}
	}
}
