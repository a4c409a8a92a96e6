// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// The cache of keys and values for decoding is [slots,S,2GK]: for each slot, a
// sequence being generated, and each of its first S positions the G key heads,
// then the G value heads.

// CacheAppend copies the keys and values of fused rows into the cache.
//
//	cache[slots[n],positions[n],:] = qkv[n,HK:]
//
// qkv is [N,(H+2G)K] with N = len(slots), keys already turned by RoPE; all
// positions are below S; cache and qkv are of one type. Tokens of different slots or positions do not touch.
func CacheAppend(cache, qkv Numbers, slots, positions []int32, S int, a Heads) {
	W, C := a.Width(), 2*a.G*a.K
	for n, s := range slots {
		cache.From((int(s)*S + int(positions[n])) * C).Copy(qkv.From(n*W + a.H*a.K).First(C))
	}
}

// AttentionCachedScratch is the number of elements of scratch that
// AttentionCached takes, for numbers of bf16 if half.
func (l Level) AttentionCachedScratch(a Heads, half bool) int {
	f, n := format{level: l, half: half}, a.H/a.G
	size := n*(attnTile+3) + f.panelLen(attnTile, a.K) + f.panelLen(a.K, attnTile)
	if half {
		size += n * (a.K + f.steps(a.K) + attnTile)
	}
	return size
}

// AttentionCached is attention of one token, at a position of a slot, to the
// keys of that slot up to its own position, for the query heads of key head g.
//
//	o[h] = Σ_u e^(s[u]−lse)·v[u],  s[u] = q[h]·k[u]/√K  for 0 ≤ u ≤ position
//
// o is the token's [HK], qkv its fused row [(H+2G)K], cache is
// [slots,S,2GK] and has the token's own key already; they are of one type. scratch
// has AttentionCachedScratch(a, o.Half()) elements.
//
// The result has the bits of Attention for a document that begins at the
// beginning of its row, if all that it masks is finite.
func (l Level) AttentionCached(o, qkv, cache Numbers, slot, position, S int, a Heads, g int,
	scratch []float32,
) {
	C, n, scale, f := 2*a.G*a.K, a.H/a.G, invSqrt(a.K), formatOf(l, qkv)
	take := func(n int) (x []float32) { x, scratch = scratch[:n], scratch[n:]; return x }
	s, corr, top, sum := take(n*attnTile), take(n), take(n), take(n)
	keys, values := take(f.panelLen(attnTile, a.K)), take(f.panelLen(a.K, attnTile))
	var widened, probs, room []float32
	if f.half {
		widened, probs, room = take(n*f.steps(a.K)), take(n*attnTile), take(n*a.K)
	}
	for i := range n {
		top[i], sum[i] = negInf(), 0
	}
	seq, out := cache.From(slot*S*C), o.Room(room, g*n*a.K, n*a.K)
	q := f.left(qkv.From(g*n*a.K), n, a.K, a.K, widened)
	for u0 := 0; u0 <= position; u0 += attnTile {
		w := min(attnTile, position+1-u0)
		columns := f.columns(keys, seq.From(u0*C+g*a.K), w, a.K, C)
		rows := f.rows(values, seq.From(u0*C+(a.G+g)*a.K), w, a.K, C)
		f.mul.block(s, q.x, columns, n, w, 0, columns.k, attnTile, q.ld, 1, false)
		for i := range n {
			fillInf(s[i*attnTile+w : (i+1)*attnTile])
		}
		p := f.softmax(s, n, scale, top, sum, corr[:n], probs)
		if u0 > 0 {
			l.scaleRows(out, a.K, n, a.K, corr[:n])
		}
		f.mul.block(out, p.x, rows, n, a.K, 0, rows.k, a.K, p.ld, 1, u0 > 0)
	}
	for i, v := range sum {
		corr[i] = 1 / v
	}
	l.scaleRows(out, a.K, n, a.K, corr[:n])
	o.Store(l, out, g*n*a.K)
}
