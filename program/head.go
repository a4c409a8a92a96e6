// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import "pleach/half"

// HeadLoss is the cross-entropy of a vocabulary head.
//
//	z[n,v]  = Σ_d x[n,d] · w[v,d]
//	lse[n]  = log Σ_v e^z[n,v]
//	loss[n] = lse[n] − z[n,labels[n]], 0 where the label is negative: masked
//
// x is [N,D], w [V,D], labels [N], loss and lse [N]. With a tally [2], which is
// a state, the losses are added to tally[0] and the number of unmasked tokens
// to tally[1], in the order of n, and Backward starts from tally[0]. It appends
// three ops, none of which stores z:
//
//	head.stats  max, Σ e^(z−max) and target logit of the rank's words: [1,N,3]
//	all-gather  of the statistics, where the vocabulary is split: [t,N,3]
//	head.loss   combines them in rank order
//
// Backward, head.grad goes through the vocabulary once more:
//
//	p = e^(z−lse) − [v = label],  dx = p·w,  dw += pᵀ·x
//
// Weights of int8 have no gradient, and so no tally.
//
// The tally is a sum, not a mean: the one division, by the count of the whole
// step, is in [Builder.Clip].
func (b *Builder) HeadLoss(x, w, labels, tally *Value) (loss, lse *Value) {
	b.wantHead(x, w)
	b.want(x.Dim(0) == labels.Dim(0), "head loss: got %v for %v", labels, x)
	axis := Attr{Axis: shardAxis(w)}
	op := b.op(OpHeadStats, axis, scaled(w, x, w, labels)...)
	stats := b.gathered(b.out(op, "stats", b.layout.Sum, w.Spread, 1, x.Dim(0), 3))
	op = b.op(OpHeadLoss, Attr{}, stats, labels)
	lse = b.out(op, "lse", b.layout.Sum, Same, x.Dim(0))
	loss = b.out(op, "loss", b.layout.Sum, Same, x.Dim(0))
	if tally == nil || !b.differentiable(w) {
		return loss, lse
	}
	op.In = append(op.In, tally)
	b.into(op, tally)
	op.grad = func() {
		d := b.headSum(w)
		g := b.op(OpHeadGrad, axis, b.need(x), w, labels, lse, d)
		s := Same
		if w.Spread == Rows {
			s = Partial
		}
		dx := b.out(g, "dx", x.Type, s, x.Shape...)
		b.sumInto(g, w, d, w.Spread)
		b.addGrad(x, dx)
	}
	return loss, lse
}

// headSum is where the head's gradient of w is summed. A table that is also the
// embedding has a second sum for the head, "d" + name + ".head": if both added
// to one, the order of its terms would depend on how rows are cut into
// micro-batches. The update adds the two.
func (b *Builder) headSum(w *Value) *Value {
	for _, op := range b.p.Ops[:b.p.Cut] {
		if op.Kind == OpEmbed && op.In[0] == w {
			return b.value("d"+w.Name+HeadSum, State, b.layout.Sum, w.Spread, w.Shape)
		}
	}
	return b.Sum(w)
}

// HeadSum ends the name of the second gradient sum of a tied embedding.
const HeadSum = ".head"

// Tally declares the state that HeadLoss adds to: loss sum and count.
func (b *Builder) Tally() *Value { return b.State("tally", TallyType, Same, 2) }

// HeadTop is the k most probable words of each token.
//
//	top[n,i] = (v, z[n,v] − lse[n]),  i < k
//
// by falling logit, the lowest word among equals. x is [N,D], w [V,D], lse [N]
// from HeadLoss, top [N,k,2]; the first number of a pair is a word of the whole
// vocabulary, exact below 2²⁴ in float32.
func (b *Builder) HeadTop(x, w, lse *Value, k int) *Value {
	b.wantHead(x, w)
	t := 1
	if w.Spread == Rows {
		t = b.p.Mesh.Size(Tensor)
	}
	b.want(k > 0 && k <= w.Dim(0)*t, "head top: %d of %d words", k, w.Dim(0)*t)
	b.want(w.Dim(0)*t <= 1<<24, "head top: %d words: want at most 2²⁴", w.Dim(0)*t)
	op := b.op(OpHeadTop, Attr{Axis: shardAxis(w)}, scaled(w, x, w)...)
	found := b.gathered(b.out(op, "found", b.layout.Sum, w.Spread, 1, x.Dim(0), k, 2))
	op = b.op(OpTopMerge, Attr{}, found, lse)
	return b.out(op, "top", b.layout.Sum, Same, x.Dim(0), k, 2)
}

func (b *Builder) wantHead(x, w *Value) {
	b.want(len(x.Shape) == 2 && len(w.Shape) == 2 && x.Dim(1) == w.Dim(1) && multiplies(x, w),
		"head: got %v, %v, want [N,D], [V,D] of one type", x, w)
	b.want(x.Spread == Same && w.Spread != Cols, "head: %s is %v, %s is %v", x.Name, x.Spread, w.Name, w.Spread)
}

// gathered joins what the tensor ranks found in their words.
func (b *Builder) gathered(x *Value) *Value {
	if x.Spread == Rows {
		return b.AllGather(x)
	}
	return x
}

// TallyType is the element type of the few numbers that a whole step is judged
// by: tally, norm slots, report. They cost nothing, and float32 would lose
// counts above 2²⁴ and the sums of squares of large parameters.
const TallyType = half.F64
