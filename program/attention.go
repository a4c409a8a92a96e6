// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

// RoPE rotates the query and key heads of fused rows by their positions, and
// copies the value heads.
//
//	(a, c) → (a·cos φ − c·sin φ, c·cos φ + a·sin φ),  φ = positions[n]·f[i]
//
// where a and c are elements i and i+K/2 of a head and f = r.Frequencies(K).
// x and y are [N,(H+2G)K]: H query heads, G key heads, G value heads; positions
// are [N], below h.T. The gradient is the inverse rotation, so nothing is saved.
// Su et al., "RoFormer", 2021, arXiv:2104.09864, eq. 34; the pairing of halves
// is Hugging Face's.
func (b *Builder) RoPE(x, positions *Value, h Heads, r Rope) *Value {
	return b.rope(x, positions, h, r, false)
}

func (b *Builder) rope(x, positions *Value, h Heads, r Rope, inverse bool) *Value {
	b.wantHeads("rope", x, positions, h)
	op := b.op(OpRoPE, Attr{Heads: h, Rope: r, Inverse: inverse}, x, positions)
	y := b.out(op, "qkv", x.Type, x.Spread, x.Shape...)
	b.onGrad(op, y, func(dy *Value) { b.addGrad(x, b.rope(dy, positions, h, r, !inverse)) })
	return y
}

func (b *Builder) wantHeads(op string, x, positions *Value, h Heads) {
	b.want(h.G > 0 && h.H%h.G == 0 && h.K%2 == 0 && h.T > 0, "%s: %+v: want H a multiple of G, K even", op, h)
	b.want(len(x.Shape) == 2 && x.Dim(1) == h.Width(), "%s: got %v, want [N,(H+2G)K] with %+v", op, x, h)
	b.want(positions.Dim(0) == x.Dim(0), "%s: got %v for %v", op, positions, x)
	b.want(x.Spread == Same || x.Spread == Cols, "%s: %s is %v", op, x.Name, x.Spread)
}

// Attention is causal, grouped-query and masked by document.
//
//	o[n,h,:] = Σ_m p[n,h,m] · v[m,g,:],  p = softmax_m(q[n,h,:]·k[m,g,:] / √K)
//
// over the tokens n−positions[n] ≤ m ≤ n, where g = ⌊h·G/H⌋: a token at position
// p sees the p tokens before it and itself. Positions that restart with each
// document are therefore the document mask, and positions that count through
// the row make attention causal over the whole row. positions[n] ≤ n mod h.T
// keeps it within the row.
//
// qkv is [N,(H+2G)K], N a multiple of h.T, o is [N,HK]. The second output, lse
// [N,H], is the log of the sum of exponentials, from which the backward op
// computes p again (Dao et al., "FlashAttention", 2022, arXiv:2205.14135,
// appendix B).
func (b *Builder) Attention(qkv, positions *Value, h Heads) *Value {
	b.wantHeads("attention", qkv, positions, h)
	b.want(qkv.Dim(0)%max(h.T, 1) == 0, "attention: %v: want rows of %d tokens", qkv, h.T)
	op := b.op(OpAttention, Attr{Heads: h}, qkv, positions)
	o := b.out(op, "o", qkv.Type, qkv.Spread, qkv.Dim(0), h.H*h.K)
	lse := b.out(op, "lse", b.layout.Sum, qkv.Spread, qkv.Dim(0), h.H)
	b.onGrad(op, o, func(do *Value) {
		g := b.op(OpAttentionGrad, op.Attr, b.need(qkv), b.need(o), b.need(lse), do, positions)
		b.addGrad(qkv, b.out(g, "dqkv", qkv.Type, qkv.Spread, qkv.Shape...))
	})
	return o
}

// CachedAttention appends the keys and values of N tokens to a cache, and
// attends from them to all that the cache holds of their sequence.
//
//	cache[s,p] = k[n], v[n];  o[n] = attention of q[n] over cache[s,0…p]
//
// with s = slots[n], p = positions[n], formula and heads as in [Builder.Attention].
// qkv is [N,(H+2G)K], cache [slots,h.T,2GK] (the G key heads, then the G value
// heads, of one position), o [N,HK]. All N tokens are appended first, so a
// prompt in one run and the same tokens one by one give the same. It has no
// gradient.
func (b *Builder) CachedAttention(qkv, cache, slots, positions *Value, h Heads) *Value {
	b.wantHeads("cached attention", qkv, positions, h)
	b.want(len(cache.Shape) == 3 && cache.Dim(1) == h.T && cache.Dim(2) == 2*h.G*h.K && cache.Type == qkv.Type,
		"cached attention: got %v, want [slots,T,2GK] with %+v", cache, h)
	b.want(slots.Dim(0) == qkv.Dim(0), "cached attention: got %v for %v", slots, qkv)
	op := b.op(OpCachedAttention, Attr{Heads: h}, qkv, cache, slots, positions)
	o := b.out(op, "o", qkv.Type, qkv.Spread, qkv.Dim(0), h.H*h.K)
	b.into(op, cache)
	return o
}
