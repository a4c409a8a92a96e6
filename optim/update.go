// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package optim

import (
	"pleach/half"
	"pleach/program"
)

// AdamW holds the constants of the optimizer.
type AdamW struct {
	Beta1, Beta2 float64
	Eps          float64
	Decay        float64
	Except       []program.Class // classes that do not decay
	Clip         float64         // largest gradient norm; 0 never clips
	Stochastic   bool            // round what is bf16 stochastically, see [program.Rounding]
	Seed         uint64          // of those random numbers
	Master       bool            // keep weights in the type of sums too, and update those
	HalfMoments  bool            // keep m and v in bf16
}

// Update is the program that turns the gradient sums of one stage into new
// weights, the same on all its ranks. params are the stage's parameters,
// groups the number of norm groups in the whole model, accumulate the stage's
// program, which knows how the sums are spread.
//
// Inputs, [1] each: lr; t, the number of applied steps with this one; apply, 0
// to change nothing. The output is the report of [program.Builder.Clip].
//
// Per parameter, in this order:
//
//	data    sum over data ranks; under ZeRO-1 each keeps its flat shard; then a
//	        tied embedding adds what the head made of it
//	copies  sum over tensor ranks that hold the same elements but saw other
//	        tokens or query heads (norm weights under sequence parallelism,
//	        replicated key/value heads)
//	ends    sum over first and last stage, for a tied embedding
//
// then one norm over everything, and AdamW. The states are "m." and "v." with
// the parameter's name, and "master." where there is one, which is cast into the
// weights after each update. All parameters are treated alike, norm weights too:
// copies of them are equal on all ranks.
func Update(
	a AdamW, l program.Layout, params []program.Param, groups int, accumulate *program.Program,
) (*program.Program, error) {
	b := program.New("update", l)
	b.UpdatePhase()
	scalar := func(name string) *program.Value { return b.Input(name, half.F64, 1) }
	lr, t, apply := scalar("lr"), scalar("t"), scalar("apply")
	tally := b.Tally()
	b.SumOver(tally, program.Data)
	b.SumOver(tally, program.Pipe)

	slots, weights := b.Zeros(groups, l.Leaves()), b.Zeros(groups, 1)
	var updates []*update
	for _, p := range params {
		u := newUpdate(b, l, p, accumulate)
		u.reduce()
		runs := p.Runs(l.Mesh.Size(program.Tensor))
		b.SumSquares(slots, u.grad, p.Group, u.leaf, l.Sharded(), runs)
		b.SumSquares(weights, u.w, p.Group, u.w.Len(), false, runs)
		updates = append(updates, u)
	}
	for _, s := range []*program.Value{slots, weights} {
		b.SumOver(s, program.Tensor)
		b.SumOver(s, program.Pipe)
	}
	if l.Sharded() {
		b.SumOver(slots, program.Data)
	}
	report := b.Clip(slots, weights, tally, apply, a.Clip)
	for _, u := range updates {
		u.step(a, report, lr, t)
	}
	b.Clear(tally)
	return b.Build(report)
}

// update is one parameter on its way through Update.
type update struct {
	program.Param
	b         *program.Builder
	layout    program.Layout
	w, sum    *program.Value
	head      *program.Value // the head's own sum of a tied embedding, or nil
	grad      *program.Value // reduced; a flat shard under ZeRO-1
	leaf, len int            // elements in a leaf, in a shard
}

func newUpdate(b *program.Builder, l program.Layout, p program.Param, accumulate *program.Program) *update {
	u := &update{Param: p, b: b, layout: l}
	u.w = b.Param(p.Name, l.Compute, p.Spread(), p.Local()...)
	u.sum = b.State("d"+p.Name, l.Sum, p.Spread(), p.Local()...)
	if v := accumulate.Named(u.sum.Name); v != nil {
		u.sum.Spread = v.Spread // partial, for norms under sequence parallelism
	}
	if name := u.sum.Name + program.HeadSum; accumulate.Named(name) != nil {
		u.head = b.State(name, l.Sum, p.Spread(), p.Local()...)
	}
	u.leaf = (u.w.Len() + l.Leaves() - 1) / l.Leaves()
	u.len = u.leaf * (l.Leaves() / l.Mesh.Size(program.Data))
	return u
}

// reduce sums the gradient over everyone who added to it. The data axis comes
// first: chunks of rows are the leaves of the summation tree, and a rank with
// more chunks has already summed them before it meets its tensor neighbours.
func (u *update) reduce() {
	b, sharded := u.b, u.layout.Sharded()
	u.grad = u.overData(u.sum)
	if u.head != nil {
		b.AddInto(u.grad, u.overData(u.head))
	}
	for _, r := range u.Runs(u.layout.Mesh.Size(program.Tensor)) {
		if r.Copies > 1 && u.sum.Spread != program.Same {
			b.SumCopies(u.grad, r.Lo, r.Hi, r.Copies, sharded)
		}
	}
	if u.Ends {
		b.SumOver(u.grad, program.Ends)
	}
}

// overData sums a gradient over the data ranks: in place, or to the rank's shard.
func (u *update) overData(sum *program.Value) *program.Value {
	if u.layout.Sharded() {
		return u.b.ShardSum(sum, u.len)
	}
	u.b.SumOver(sum, program.Data)
	return sum
}

// step appends AdamW on what the rank updates: the weights, a shard of them, or
// its part of a master copy.
func (u *update) step(a AdamW, report, lr, t *program.Value) {
	b, w, l := u.b, u.w, u.layout
	state := func(name string, t half.DType) *program.Value {
		return b.State(name+"."+u.Name, t, u.Spread(), u.grad.Len())
	}
	moments := l.Sum
	if a.HalfMoments {
		moments = half.BF16
	}
	if a.Master {
		w = state("master", l.Sum)
	} else if l.Sharded() {
		w = b.Shard(w, u.len)
	}
	adam := program.Adam{Beta1: a.Beta1, Beta2: a.Beta2, Eps: a.Eps, Decay: a.DecayOf(u.Class)}
	b.AdamW(w, state("m", moments), state("v", moments), u.grad, report, lr, t, adam,
		program.Rounding{Stochastic: a.Stochastic, Seed: a.Seed}, l.Sharded())
	if l.Sharded() {
		b.Publish(u.w, b.Cast(w, l.Compute))
	} else if a.Master {
		b.CastInto(u.w, w)
	}
	b.Clear(u.sum)
	if u.head != nil {
		b.Clear(u.head)
	}
}

// Carry is the inner node of the summation tree over chunks of rows: it adds
// the gradient sums of one stage, named "d…" and "tally", into a second set,
// named "older.d…" and "older.tally", and clears the first. The caller chooses
// which buffers carry the names.
func Carry(l program.Layout, accumulate *program.Program) (*program.Program, error) {
	b := program.New("carry", l)
	b.UpdatePhase()
	for _, v := range accumulate.Held(program.State) {
		older := b.State("older."+v.Name, v.Type, v.Spread, v.Shape...)
		newer := b.State(v.Name, v.Type, v.Spread, v.Shape...)
		b.AddInto(older, newer)
		b.Clear(newer)
	}
	return b.Build()
}
