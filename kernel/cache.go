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
// positions are below S. Tokens of different slots or positions do not touch.
func CacheAppend(cache, qkv []float32, slots, positions []int32, S int, a Heads) {
	W, C := a.Width(), 2*a.G*a.K
	for n, s := range slots {
		copy(cache[(int(s)*S+int(positions[n]))*C:][:C], qkv[n*W+a.H*a.K:][:C])
	}
}

// AttentionCachedScratch is the number of elements of scratch that
// AttentionCached takes.
func (l Level) AttentionCachedScratch(a Heads) int {
	return a.H/a.G*(attnTile+3) + l.PanelLen(attnTile, a.K) + l.PanelLen(a.K, attnTile)
}

// AttentionCached is attention of one token, at a position of a slot, to the
// keys of that slot up to its own position, for the query heads of key head g.
//
//	o[h] = Σ_u e^(s[u]−lse)·v[u],  s[u] = q[h]·k[u]/√K  for 0 ≤ u ≤ position
//
// o is the token's [HK], qkv its fused row [(H+2G)K], cache is
// [slots,S,2GK] and has the token's own key already. scratch has
// AttentionCachedScratch elements.
//
// The result has the bits of Attention for a document that begins at the
// beginning of its row, if all that it masks is finite.
func (l Level) AttentionCached(o, qkv, cache []float32, slot, position, S int, a Heads, g int,
	scratch []float32,
) {
	C, n, scale := 2*a.G*a.K, a.H/a.G, invSqrt(a.K)
	take := func(n int) (x []float32) { x, scratch = scratch[:n], scratch[n:]; return x }
	s, corr, top, sum := take(n*attnTile), take(n), take(n), take(n)
	keys, values := take(l.PanelLen(attnTile, a.K)), take(l.PanelLen(a.K, attnTile))
	for i := range n {
		top[i], sum[i] = negInf(), 0
	}
	seq, q, out := cache[slot*S*C:][:(position+1)*C], qkv[g*n*a.K:], o[g*n*a.K:][:n*a.K]
	for u0 := 0; u0 <= position; u0 += attnTile {
		w := min(attnTile, position+1-u0)
		columns := l.packedColumns(keys, seq[u0*C+g*a.K:], w, a.K, C)
		rows := l.packedRows(values, seq[u0*C+(a.G+g)*a.K:], w, a.K, C)
		l.block(s, q, columns, n, w, 0, a.K, attnTile, a.K, 1, false)
		for i := range n {
			fillInf(s[i*attnTile+w : (i+1)*attnTile])
		}
		l.softmaxRows(s, attnTile, n, scale, top, sum, corr[:n])
		if u0 > 0 {
			l.scaleRows(out, a.K, n, a.K, corr[:n])
		}
		l.block(out, s, rows, n, a.K, 0, w, a.K, attnTile, 1, u0 > 0)
	}
	for i, v := range sum {
		corr[i] = 1 / v
	}
	l.scaleRows(out, a.K, n, a.K, corr[:n])
}
