// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import "pleach/half"

// Embed looks up rows of a table.
//
//	y[n,:] = table[ids[n],:]
//
// table is [V,D], ids [N], y [N,D]. Where the table is spread over rows, a rank
// fills only the rows that it holds and leaves the others zero, so y is
// partial; the rank's offset in the vocabulary is its index times V.
// The gradient scatters: dtable[ids[n],:] += dy[n,:], in the order of n.
//
// A temporary may be the table where no gradient is wanted: the rows of some
// tokens, say the last of each sequence.
func (b *Builder) Embed(table, ids *Value) *Value {
	b.want(len(table.Shape) == 2 && len(ids.Shape) == 1, "embed: got %v, %v, want [V,D], [N]", table, ids)
	s := Same
	if table.Spread == Rows {
		s = Partial
	}
	op := b.op(OpEmbed, Attr{Axis: shardAxis(table)}, table, ids)
	y := b.out(op, "x", table.Type, s, ids.Dim(0), table.Dim(1))
	b.onGrad(op, y, func(dy *Value) {
		b.want(table.Role == Weight, "embed: a gradient for %s, which is no parameter", table.Name)
		d := b.Sum(table)
		b.sumInto(b.op(OpEmbedGrad, op.Attr, dy, ids, d), table, d, table.Spread)
	})
	return y
}

// shardAxis is the axis over which w is split, if it is.
func shardAxis(w *Value) Axis {
	if w.Spread == Same {
		return 0
	}
	return Tensor
}

// Linear multiplies by a weight stored as Hugging Face stores it.
//
//	y[n,o] = Σ_i x[n,i] · w[o,i]
//
// x is [N,I], w [O,I], y [N,O]. A weight split over rows makes columns of y; a
// weight split over columns takes columns of x and makes partial sums of y.
// Sums run in index order, in float32 at least. Weights of int8 have no gradient.
func (b *Builder) Linear(x, w *Value) *Value {
	op, y := b.linear(x, w, x.Type)
	b.onGrad(op, y, func(dy *Value) {
		if !b.differentiable(w) {
			return
		}
		b.linearGradW(dy, b.need(x), w)
		b.addGrad(x, b.linearGradX(dy, w))
	})
	return y
}

// Logits is Linear with a result in the type of sums, whatever x and w are: a logit
// of 20 rounded to bf16 is off by up to 0.06, and its probability by 6 %. It has no
// gradient.
func (b *Builder) Logits(x, w *Value) *Value {
	_, y := b.linear(x, w, b.layout.Sum)
	return y
}

func (b *Builder) linear(x, w *Value, t half.DType) (*Op, *Value) {
	b.want(len(x.Shape) == 2 && len(w.Shape) == 2 && x.Dim(1) == w.Dim(1) && multiplies(x, w),
		"linear: got %v, %v, want [N,I], [O,I] of one type", x, w)
	s, ok := linearSpread(x.Spread, w.Spread)
	b.want(ok, "linear: %s is %v, %s is %v: gather or reduce first", x.Name, x.Spread, w.Name, w.Spread)
	op := b.op(OpLinear, Attr{}, scaled(w, x, w)...)
	return op, b.out(op, "y", t, s, x.Dim(0), w.Dim(0))
}

// linearSpread is the spread of x·wᵀ.
func linearSpread(x, w Spread) (Spread, bool) {
	switch {
	case w == Same && x != Cols:
		return x, true
	case w == Rows && x == Same:
		return Cols, true
	case w == Cols && x == Cols:
		return Partial, true
	}
	return Same, false
}

// linearGradX appends dx[n,i] = Σ_o dy[n,o] · w[o,i].
func (b *Builder) linearGradX(dy, w *Value) *Value {
	s := [...]Spread{Same: dy.Spread, Rows: Partial, Cols: Cols, Partial: Partial}[w.Spread]
	op := b.op(OpLinearGradX, Attr{}, dy, w)
	return b.out(op, "dx", dy.Type, s, dy.Dim(0), w.Dim(1))
}

// linearGradW appends dw[o,i] += Σ_n dy[n,o] · x[n,i]. The sum continues from
// dw and runs in the order of n: cutting N changes no bit.
func (b *Builder) linearGradW(dy, x, w *Value) {
	d := b.Sum(w)
	b.sumInto(b.op(OpLinearGradW, Attr{}, dy, x, d), w, d, paramSpread(dy, w))
}

// paramSpread is the spread of the gradient of w from dy: where each rank saw
// its own tokens, what it has is a term.
func paramSpread(dy, w *Value) Spread {
	if dy.Spread == Rows {
		return Partial
	}
	return w.Spread
}

// Bias adds a vector to every row.
//
//	y[n,o] = x[n,o] + c[o];  dc[o] += Σ_n dy[n,o], in the order of n
//
// x is [N,O], c [O], spread over rows where x is spread over columns. It comes
// after the reduction of a product whose weight is split over columns, so that
// it is added once.
func (b *Builder) Bias(x, c *Value) *Value {
	b.want(len(x.Shape) == 2 && len(c.Shape) == 1 && x.Dim(1) == c.Dim(0) && x.Type == c.Type,
		"bias: got %v, %v, want [N,O], [O] of one type", x, c)
	b.want(x.Spread != Partial && (x.Spread == Cols) == (c.Spread == Rows), "bias: %s is %v, %s is %v",
		x.Name, x.Spread, c.Name, c.Spread)
	op := b.op(OpBias, Attr{}, x, c)
	y := b.out(op, "y", x.Type, x.Spread, x.Shape...)
	b.onGrad(op, y, func(dy *Value) {
		d := b.Sum(c)
		b.sumInto(b.op(OpBiasGrad, Attr{}, dy, d), c, d, paramSpread(dy, c))
		b.addGrad(x, dy)
	})
	return y
}

// RMSNorm scales each row by the inverse of its root mean square, then by w.
//
//	y[n,d] = w[d] · x[n,d] · r[n],  r[n] = 1/√(mean_d x[n,d]² + eps)
//
// x and y are [N,D], w is [D]. The backward op computes r again from x:
//
//	dx[n,d] = r · (w[d]·dy[n,d] − x[n,d]·r²·mean_e(w[e]·dy[n,e]·x[n,e]))
//	dw[d]  += Σ_n dy[n,d] · x[n,d] · r[n], in the order of n
//
// Zhang & Sennrich, "Root Mean Square Layer Normalization", 2019,
// arXiv:1910.07467, eq. 4.
func (b *Builder) RMSNorm(x, w *Value, eps float64) *Value {
	b.want(len(x.Shape) == 2 && len(w.Shape) == 1 && x.Dim(1) == w.Dim(0) && x.Type == w.Type,
		"rmsnorm: got %v, %v, want [N,D], [D] of one type", x, w)
	b.want(x.Spread <= Rows && w.Spread == Same, "rmsnorm: %s is %v, %s is %v: reduce first",
		x.Name, x.Spread, w.Name, w.Spread)
	op := b.op(OpRMSNorm, Attr{Eps: eps}, x, w)
	y := b.out(op, "h", x.Type, x.Spread, x.Shape...)
	b.onGrad(op, y, func(dy *Value) {
		d := b.Sum(w)
		g := b.op(OpRMSNormGrad, op.Attr, b.need(x), w, dy, d)
		b.addGrad(x, b.out(g, "dx", x.Type, x.Spread, x.Shape...))
		b.sumInto(g, w, d, paramSpread(dy, w))
	})
	return y
}

// SwiGLU gates.
//
//	y[n,f] = silu(x[n,f]) · x[n,F+f],  silu(a) = a/(1+e^−a)
//
// x is [N,2F], gate before up; y is [N,F].
// Shazeer, "GLU Variants Improve Transformer", 2020, arXiv:2002.05202, eq. 6.
func (b *Builder) SwiGLU(x *Value) *Value {
	b.want(len(x.Shape) == 2 && x.Dim(1)%2 == 0, "swiglu: got %v, want [N,2F]", x)
	b.want(x.Spread != Partial, "swiglu: %s is partial: reduce first", x.Name)
	op := b.op(OpSwiGLU, Attr{}, x)
	y := b.out(op, "u", x.Type, x.Spread, x.Dim(0), x.Dim(1)/2)
	b.onGrad(op, y, func(dy *Value) {
		g := b.op(OpSwiGLUGrad, Attr{}, b.need(x), dy)
		b.addGrad(x, b.out(g, "dx", x.Type, x.Spread, x.Shape...))
	})
	return y
}

// Add is y = x + z, of one shape, type and spread.
func (b *Builder) Add(x, z *Value) *Value {
	b.wantAlike("add", x, z)
	op := b.op(OpAdd, Attr{}, x, z)
	y := b.out(op, "x", x.Type, x.Spread, x.Shape...)
	b.onGrad(op, y, func(dy *Value) { b.addGrad(x, dy); b.addGrad(z, dy) })
	return y
}

// AddInto is x += z, for states.
func (b *Builder) AddInto(x, z *Value) {
	b.wantAlike("add", x, z)
	b.into(b.op(OpAdd, Attr{}, x, z), x)
}

func (b *Builder) wantAlike(op string, x, z *Value) {
	b.want(x.like(z), "%s: got %v and %v", op, x, z)
	b.want(x.Spread == z.Spread, "%s: %s is %v, %s is %v", op, x.Name, x.Spread, z.Name, z.Spread)
}

// Scale is y = c · x.
func (b *Builder) Scale(x *Value, c float64) *Value {
	op := b.op(OpScale, Attr{C: c}, x)
	y := b.out(op, "x", x.Type, x.Spread, x.Shape...)
	b.onGrad(op, y, func(dy *Value) { b.addGrad(x, b.Scale(dy, c)) })
	return y
}

// Cast changes the element type, rounding to nearest even. Its gradient is cast
// back.
func (b *Builder) Cast(x *Value, t half.DType) *Value {
	if x.Type == t {
		return x
	}
	op := b.op(OpCast, Attr{}, x)
	y := b.out(op, "c", t, x.Spread, x.Shape...)
	b.onGrad(op, y, func(dy *Value) { b.addGrad(x, b.Cast(dy, x.Type)) })
	return y
}

// CastInto is x = z in the type of x, for weights that have a master copy.
func (b *Builder) CastInto(x, z *Value) {
	b.want(x.Len() == z.Len(), "cast: got %v and %v", x, z)
	b.into(b.op(OpCast, Attr{}, z), x)
}
