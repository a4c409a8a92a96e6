// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

// Backward appends the backward ops of everything appended so far, in reverse
// order. The seeds are HeadLoss, whose gradient with respect to its own sum is
// one, Send, which receives its gradient from the next stage, and Seed.
func (b *Builder) Backward() {
	ops := b.p.Ops
	b.p.Cut, b.phase = len(ops), Backward
	for i := len(ops) - 1; i >= 0 && b.err == nil; i-- {
		if ops[i].grad != nil {
			b.where = ops[i].Where
			ops[i].grad()
		}
	}
	b.where = ""
}

// Seed adds dy, which is like y, to the gradient of y before Backward, as if an
// op after y had.
func (b *Builder) Seed(y, dy *Value) {
	b.want(y.like(dy), "seed: got %v for %v", dy, y)
	b.addGrad(y, dy)
}

// Grad is the gradient of x after Backward, nil if nothing depends on x.
func (b *Builder) Grad(x *Value) *Value { return b.grads[x] }

// onGrad records the gradient rule of op, whose result is y. The rule runs
// with dy complete; if nothing depends on y it does not run.
//
// The spread of dy follows from that of y: rows for rows, cols for cols, same
// for partial (each term of a sum has the gradient of the sum). A value that is
// the same on all ranks may collect partial gradients, because each rank went
// on with its own share of the weights; they are summed here, as late as
// possible. Only AllGather wants them unsummed.
func (b *Builder) onGrad(op *Op, y *Value, rule func(dy *Value)) {
	op.grad = func() {
		dy := b.grads[y]
		if dy == nil {
			return
		}
		if op.Kind != OpAllGather {
			dy = b.summed(dy)
		}
		rule(dy)
	}
}

// addGrad adds dx to what is known of the gradient of x. Partial and full
// gradients are reduced before they meet.
func (b *Builder) addGrad(x, dx *Value) {
	if x.Role == Input {
		return
	}
	if old := b.grads[x]; old != nil {
		if old.Spread != dx.Spread {
			old, dx = b.summed(old), b.summed(dx)
		}
		dx = b.Add(old, dx)
	}
	b.grads[x] = dx
}

func (b *Builder) summed(x *Value) *Value {
	if x.Spread == Partial {
		return b.AllReduce(x)
	}
	return x
}

// Sum is the gradient sum of parameter w, a state named "d" + its name.
// Gradient ops add into it token after token, so the sum over a step does not
// depend on how its rows are cut into micro-batches.
func (b *Builder) Sum(w *Value) *Value {
	d := b.sums[w]
	if d == nil {
		d = b.value("d"+w.Name, State, b.layout.Sum, w.Spread, w.Shape)
		b.sums[w] = d
	}
	return d
}

// sumInto marks op as adding a gradient spread like s into d, the sum of w. A
// parameter that is the same on all ranks may collect partial sums (norm
// weights under sequence parallelism); the update sums them once per step.
func (b *Builder) sumInto(op *Op, w, d *Value, s Spread) {
	if s != w.Spread {
		b.want(w.Spread == Same && s == Partial, "the gradient of %s is %v, the parameter %v", w.Name, s, w.Spread)
		d.Spread = s
	}
	b.into(op, d)
}

// need is the value a backward op reads for forward value v: v itself if the
// policy keeps it, else a copy made by appending its op again. Recomputation is
// lazy, so what no backward op reads is never recomputed.
func (b *Builder) need(v *Value) *Value {
	if v.def == nil || b.kept(v) {
		return v
	}
	if c := b.clones[v]; c != nil {
		return c
	}
	in := make([]*Value, len(v.def.In))
	for i, x := range v.def.In {
		in[i] = b.need(x)
	}
	op := b.op(v.def.Kind, v.def.Attr, in...)
	op.Phase, op.Where = Recompute, v.def.Where
	for _, o := range v.def.Out {
		c := b.out(op, "", o.Type, o.Spread, o.Shape...)
		c.Name = o.Name + "'"
		b.clones[o] = c
	}
	return b.clones[v]
}

func (b *Builder) kept(v *Value) bool {
	switch b.layout.Recompute {
	case KeepAll:
		return true
	case Full:
		return v.keep
	}
	return v.keep || !infos[v.def.Kind].cheap
}
