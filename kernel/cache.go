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
func (l Level) AttentionCachedScratch() int { return keyTile + l.GemmScratch() }

// AttentionCached is attention of one token, at a position of a slot, to the
// keys of that slot up to its own position, for the query heads h0 ≤ h < h1.
//
//	o[h] = Σ_u e^(s[u]−lse)·v[u],  s[u] = q[h]·k[u]/√K  for 0 ≤ u ≤ position
//
// o is the token's [HK], qkv its fused row [(H+2G)K], cache is
// [slots,S,2GK] and has the token's own key already. scratch has
// AttentionCachedScratch elements.
//
// The result has the bits of Attention for a document that begins at the
// beginning of its row, if all that it masks is finite.
func (l Level) AttentionCached(o, qkv, cache []float32, slot, position, S int, a Heads, h0, h1 int,
	scratch []float32,
) {
	C, scale := 2*a.G*a.K, invSqrt(a.K)
	seq := cache[slot*S*C:][:(position+1)*C]
	for h := h0; h < h1; h++ {
		k, v := h*a.G/a.H*a.K, (a.G+h*a.G/a.H)*a.K
		q, out := qkv[h*a.K:][:a.K], o[h*a.K:][:a.K]
		clear(out)
		top, sum := negInf(), float32(0)
		for u0 := 0; u0 <= position; u0 += keyTile {
			w := min(keyTile, position+1-u0)
			s := scratch[:w]
			l.GemmNT(s, q, seq[u0*C+k:], 1, w, a.K, w, a.K, C, false, scratch[keyTile:])
			softmaxTile(s, 0, w, scale, &top, &sum, out)
			l.GemmNN(out, s, seq[u0*C+v:], 1, a.K, w, a.K, w, C, true, scratch[keyTile:])
		}
		finish(out, sum)
	}
}
