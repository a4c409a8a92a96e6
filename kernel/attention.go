// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "math"

// Attention runs in tiles of keys and of queries, so that the [T,T] matrix of
// scores never exists. Tiles begin at multiples of attnTile in the row, or in the
// cache, whatever part of a row is computed: this fixes every sum.
const attnTile = 64

// AttentionScratch is the number of elements of scratch that Attention takes
// for n queries, of bf16 if half.
func (l Level) AttentionScratch(a Heads, n int, half bool) int {
	f := format{level: l, half: half}
	size := attnTile*attnTile + attnTile + 2*n + f.panelLen(attnTile, a.K) + f.panelLen(a.K, attnTile)
	if half {
		size += n*(a.K+f.steps(a.K)) + attnTile*attnTile
	}
	return size
}

// Attention is causal attention of the queries t0 ≤ t < t1 of query head h in
// one row of T = len(positions) tokens.
//
//	s[t,u] = q[t]·k[u]/√K           for t−positions[t] ≤ u ≤ t
//	lse[t] = log Σ_u e^s[t,u]
//	o[t]   = Σ_u e^(s[t,u]−lse[t]) · v[u]
//
// qkv is [T,(H+2G)K], o is [T,HK], of one type, lse is [T,H]; only rows t0 … t1−1
// of head h of o and lse are written. positions count from 0 at the first token of
// each document, so a token sees its own document only; a document that began in an
// earlier row is seen from the beginning of this one. scratch has
// AttentionScratch(a, t1−t0, o.Half()) elements. A tile of keys is packed once for
// all queries of the call: a few hundred make that cheap. Cost: 4·K FLOP per pair
// (t,u) in the tiles of 64 by 64 that have a visible pair, about half of that on the
// diagonal; others are skipped.
//
// Everything between qkv and o is float32, except that e^s is rounded to bf16 before
// it is multiplied by values of bf16, not before it is summed. Scores and Σ_u e^s·v
// are left folds, the sum of exponentials is one per tile of keys, joined by the
// running maximum. The result of a query does not depend on t0 and t1, as long as
// all keys and values of its tile are finite: masked ones are multiplied by zero.
//
// Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018,
// arXiv:1805.02867, algorithm 3; Dao et al., "FlashAttention", 2022,
// arXiv:2205.14135, algorithm 1.
func (l Level) Attention(o Numbers, lse []float32, qkv Numbers, positions []int32, a Heads, h, t0, t1 int,
	scratch []float32,
) {
	if t0 >= t1 {
		return
	}
	W, HK, g, n := a.Width(), a.H*a.K, h*a.G/a.H, t1-t0
	f := forward{
		format: formatOf(l, qkv), positions: positions, K: a.K, scale: invSqrt(a.K), t0: t0,
	}
	take := func(n int) (x []float32) { x, scratch = scratch[:n], scratch[n:]; return x }
	f.s, f.corr = take(attnTile*attnTile), take(attnTile)
	f.top, f.sum = take(n), take(n)
	keys, values := take(f.panelLen(attnTile, a.K)), take(f.panelLen(a.K, attnTile))
	f.o, f.ldo = o.F32, HK
	var widened []float32
	if f.half {
		f.o, f.ldo = take(n*a.K), a.K
		widened, f.probs = take(n*f.steps(a.K)), take(attnTile*attnTile)
	} else {
		f.o = f.o[t0*HK+h*a.K:]
	}
	f.q = f.left(qkv.From(t0*W+h*a.K), n, a.K, W, widened)
	for i := range f.top {
		f.top[i], f.sum[i] = negInf(), 0
	}
	for u0 := firstKey(positions, t0); u0 < t1; u0 += attnTile {
		w := min(attnTile, t1-u0)
		f.keys = f.columns(keys, qkv.From(u0*W+(a.H+g)*a.K), w, a.K, W)
		f.values = f.rows(values, qkv.From(u0*W+(a.H+a.G+g)*a.K), w, a.K, W)
		for t := max(t0, u0); t < t1; t = nextTile(t, t1) {
			f.tile(t, nextTile(t, t1), u0)
		}
	}
	for t := t0; t < t1; t += attnTile {
		f.finish(lse[h:], a.H, t, min(t+attnTile, t1))
	}
	for t := range n {
		o.Store(l, f.o[t*f.ldo:][:a.K], (t0+t)*HK+h*a.K)
	}
}

// nextTile is where the tile of queries after that of t begins.
func nextTile(t, t1 int) int { return min(t/attnTile*attnTile+attnTile, t1) }

// forward is one call of Attention.
type forward struct {
	format
	positions []int32
	K         int
	scale     float32
	t0        int
	q         left      // of the head, from token t0 on
	o         []float32 // likewise, with rows of distance ldo
	ldo       int
	s         []float32 // [attnTile,attnTile], scores and then exponentials
	probs     []float32 // room for them as an operand
	top, sum  []float32 // of each query, so far
	corr      []float32 // what a tile does to them
	keys      packed    // [K,attnTile]
	values    packed    // [attnTile,K]
}

// tile is queries t … t1−1 and the tile of keys that begins at u0.
func (f *forward) tile(t, t1, u0 int) {
	n, w := t1-t, f.keys.n
	see, first := window{f.positions, t, u0, w}, firstKey(f.positions, t)
	if u0 < first || see.nothing() {
		return
	}
	f.scores(f.s, f.q.from(t-f.t0), f.keys, see, n)
	see.mask(f.s, n)
	top, sum := f.top[t-f.t0:][:n], f.sum[t-f.t0:][:n]
	p := f.softmax(f.s, n, f.scale, top, sum, f.corr[:n], f.probs)
	out, more := f.o[(t-f.t0)*f.ldo:], u0 > first
	if more && !allOnes(f.corr[:n]) {
		f.level.scaleRows(out, f.ldo, n, f.K, f.corr[:n])
	}
	see.groups(n, f.rowsTogether(), func(i, rows, end int) {
		f.mul.block(out[i*f.ldo:], p.from(i).x, f.values, rows, f.K, 0, f.steps(end), f.ldo, p.ld, 1, more)
	})
}

// scores are the products of n queries with the keys that they or neighbours
// see; the others stay what they were.
func (f *format) scores(s []float32, q left, keys packed, see window, n int) {
	see.groups(n, f.rowsTogether(), func(i, rows, end int) {
		end = min(roundUp(end, 16), keys.n)
		f.mul.block(s[i*attnTile:], q.from(i).x, keys, rows, end, 0, keys.k, attnTile, q.ld, 1, false)
	})
}

// groups cuts n queries into such as share a limit of the keys that they see:
// all of them off the diagonal, else so many.
func (s window) groups(n, together int, f func(i, rows, end int)) {
	if s.end(0) == s.w {
		f(0, n, s.w)
		return
	}
	for i := 0; i < n; i += together {
		rows := min(together, n-i)
		f(i, rows, s.end(i+rows-1))
	}
}

// finish divides outputs by their sums, and writes lse [T,H].
func (f *forward) finish(lse []float32, H, t, t1 int) {
	n := t1 - t
	top, sum := f.top[t-f.t0:][:n], f.sum[t-f.t0:][:n]
	for i, s := range sum {
		lse[(t+i)*H] = top[i] + float32(logOf(float64(s)))
		f.corr[i] = 1 / s
	}
	f.level.scaleRows(f.o[(t-f.t0)*f.ldo:], f.ldo, n, f.K, f.corr[:n])
}

// window is what queries from t on see of the w keys from u0 on.
type window struct {
	positions []int32
	t, u0, w  int
}

// end is behind the last key that query i may see.
func (s window) end(i int) int { return max(0, min(s.t+i+1-s.u0, s.w)) }

// begin is the first key that query i sees.
func (s window) begin(i int) int {
	return max(s.t+i-int(s.positions[s.t+i])-s.u0, 0)
}

// nothing says whether no query from t ≥ u0 on sees any: documents begin in the
// order of their tokens, so the first query sees the most of what is before it.
func (s window) nothing() bool { return s.begin(0) >= s.w }

// mask makes −Inf of the scores of keys that their query does not see.
func (s window) mask(scores []float32, n int) {
	if s.begin(n-1) == 0 && s.end(0) == attnTile {
		return
	}
	for i := range n {
		row := scores[i*attnTile:][:attnTile]
		fillInf(row[:min(s.begin(i), attnTile)])
		fillInf(row[s.end(i):])
	}
}

func fillInf(x []float32) {
	for i := range x {
		x[i] = negInf()
	}
}

// firstKey is where the tile begins that has the first key which query t, or one
// after it, sees.
func firstKey(positions []int32, t int) int {
	return max(t-int(positions[t]), 0) / attnTile * attnTile
}

func allOnes(x []float32) bool {
	for _, v := range x {
		if v != 1 {
			return false
		}
	}
	return true
}

// invSqrt is 1/√K, rounded once.
func invSqrt(K int) float32 { return float32(1 / math.Sqrt(float64(K))) }

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
