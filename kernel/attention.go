// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "math"

// Attention runs in tiles of keys, so that the [T,T] matrix of scores never
// exists. Tiles of keys begin at multiples of keyTile in the row, or in the
// cache, whatever tile of queries is computed: this fixes every sum.
const keyTile = 64

// AttentionScratch is the number of elements of scratch that Attention takes
// for n queries.
func (l Level) AttentionScratch(a Heads, n int) int {
	return n*keyTile + 2*n + l.GemmScratch()
}

// Attention is causal attention of the queries t0 ≤ t < t1 of query head h in
// one row of T = len(positions) tokens.
//
//	s[t,u] = q[t]·k[u]/√K           for t−positions[t] ≤ u ≤ t
//	lse[t] = log Σ_u e^s[t,u]
//	o[t]   = Σ_u e^(s[t,u]−lse[t]) · v[u]
//
// qkv is [T,(H+2G)K], o is [T,HK], lse is [T,H]; only rows t0 … t1−1 of head h
// of o and lse are written. positions count from 0 at the first token of each
// document, so a token sees its own document only; a document that began in an
// earlier row is seen from the beginning of this one. scratch has
// AttentionScratch(a, t1−t0) elements. Cost: 4·K FLOP per pair (t,u) in the tiles
// of 64 keys that some query sees; others are skipped.
//
// float32. Scores and Σ_u e^s·v are left folds, the sum of exponentials is one
// per tile of keys, joined by the running maximum. The result of a query does
// not depend on t0 and t1, as long as all keys and values of its tile are
// finite: masked ones are multiplied by zero.
//
// Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018,
// arXiv:1805.02867, algorithm 3; Dao et al., "FlashAttention", 2022,
// arXiv:2205.14135, algorithm 1.
func (l Level) Attention(o, lse, qkv []float32, positions []int32, a Heads, h, t0, t1 int,
	scratch []float32,
) {
	if t0 >= t1 {
		return
	}
	n, W, HK := t1-t0, a.Width(), a.H*a.K
	s, scratch := scratch[:n*keyTile], scratch[n*keyTile:]
	top, sum, scratch := scratch[:n], scratch[n:2*n], scratch[2*n:]
	for i := range n {
		top[i], sum[i] = negInf(), 0
	}
	g, scale := h*a.G/a.H, invSqrt(a.K)
	q, k, v := qkv[h*a.K:], qkv[(a.H+g)*a.K:], qkv[(a.H+a.G+g)*a.K:]
	out := o[t0*HK+h*a.K:]
	clearTile(out, n, a.K, HK)
	for u0 := firstKey(positions, t0, t1); u0 < t1; u0 += keyTile {
		w := min(keyTile, t1-u0)
		l.GemmNT(s, q[t0*W:], k[u0*W:], n, w, a.K, keyTile, W, W, false, scratch)
		for i := range n {
			lo, hi := window(positions, t0+i, u0, w)
			softmaxTile(s[i*keyTile:][:w], lo, hi, scale, &top[i], &sum[i], out[i*HK:][:a.K])
		}
		l.GemmNN(out, s, v[u0*W:], n, a.K, w, HK, keyTile, W, true, scratch)
	}
	for i := range n {
		finish(out[i*HK:][:a.K], sum[i])
		lse[(t0+i)*a.H+h] = top[i] + float32(logOf(float64(sum[i])))
	}
}

// firstKey is where the first tile begins that one of the queries sees.
func firstKey(positions []int32, t0, t1 int) int {
	first := t0
	for t := t0; t < t1; t++ {
		first = min(first, t-int(positions[t]))
	}
	return max(first, 0) / keyTile * keyTile
}

// window is the part lo ≤ i < hi of the keys u0 … u0+w−1 that query t sees.
func window(positions []int32, t, u0, w int) (lo, hi int) {
	lo, hi = max(t-int(positions[t])-u0, 0), min(t+1-u0, w)
	if lo >= hi {
		return 0, 0
	}
	return lo, hi
}

// invSqrt is 1/√K, rounded once.
func invSqrt(K int) float32 { return float32(1 / math.Sqrt(float64(K))) }

// softmaxTile turns the products s of a query with a tile of keys into
// exponentials below the running maximum, zero outside [lo,hi). It moves sum and
// o, which belong to the old maximum, to the new one.
func softmaxTile(s []float32, lo, hi int, scale float32, top, sum *float32, o []float32) {
	if lo == hi {
		clear(s)
		return
	}
	m := *top
	for i, v := range s[lo:hi] {
		v *= scale
		s[lo+i] = v
		if v > m {
			m = v
		}
	}
	base := finiteBase(m)
	c := Exp32(*top - base) // 0 in the first tile
	for i := range o {
		o[i] *= c
	}
	*top, *sum = m, float32(*sum*c)+expSum(s[lo:hi], base)
	clear(s[:lo])
	clear(s[hi:])
}

// negInf is −Inf.
func negInf() float32 { return math.Float32frombits(0xff800000) }

// finiteBase is what to subtract from scores with the maximum m: 0 if all are
// −Inf (or NaN, which passes every comparison by), so that e^(−Inf) is 0.
func finiteBase(m float32) float32 {
	if m == negInf() {
		return 0
	}
	return m
}

// expSum sets x[i] to e^(x[i]−m) and returns the sum, a left fold.
func expSum(x []float32, m float32) (sum float32) {
	for i, v := range x {
		e := Exp32(v - m)
		x[i] = e
		sum += e
	}
	return sum
}

// finish divides o by the sum of exponentials.
func finish(o []float32, sum float32) {
	r := 1 / sum
	for i := range o {
		o[i] *= r
	}
}
