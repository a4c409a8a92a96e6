// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"slices"

	"pleach/half"
	"pleach/program"
)

// pass is one change of a schedule. It returns the steps that it changed.
type pass struct {
	name  string
	says  string
	fuses bool // changes which ops run at once; the others must run
	run   func(*schedule) []*step
}

// passes are run in this order. A fused step does to every element what its ops
// do to it, in the same order and with the same roundings: no pass changes a bit
// of a result.
var passes = []pass{
	{
		"head", "statistics, loss and gradient of the head share the logits, which are made once", true,
		(*schedule).fuseHead,
	},
	{
		"bias", "a product adds the bias to a tile that it has just made", true,
		following(program.OpBias, products, nil),
	},
	{
		"rope", "a product of queries and keys rotates the heads of a tile", true,
		following(program.OpRoPE, forward, nil),
	},
	{
		"swiglu", "a tile has gate and up columns and is gated at once; they are stored if something else reads them",
		true, following(program.OpSwiGLU, forward, nil),
	},
	{
		"residual", "a product adds its tile to the other operand of an addition", true,
		following(program.OpAdd, products, addsAnother),
	},
	{
		"swiglu.grad", "the gradient of what was gated exists a tile at a time", true,
		following(program.OpSwiGLUGrad, []program.Kind{program.OpLinearGradX}, gradOf),
	},
	{
		"norm.add", "the gradient of a norm is added to what a row's gradient already is", true,
		following(program.OpAdd, []program.Kind{program.OpRMSNormGrad}, addsAnother),
	},
	{
		"unrope", "the gradient of attention rotates a head back when it is complete", true,
		following(program.OpRoPE, []program.Kind{program.OpAttentionGrad}, sameHeads),
	},
	{
		"publish", "an update rounds the new weights while they are in the caches", true,
		(*schedule).fusePublish,
	},
	{
		"clear", "an update clears a gradient sum while it is in the caches", true,
		(*schedule).fuseClear,
	},
	{"copies", "packed operands, statistics and logits get buffers in the arena", false, (*schedule).giveBuffers},
	{"in place", "outputs may lie over operands that die, where each element is read before", false, (*schedule).allowOver},
}

// The kinds that a product begins with.
var (
	forward  = []program.Kind{program.OpLinear}
	products = []program.Kind{program.OpLinear, program.OpLinearGradX}
)

// following is the pass that appends ops of kind k to the steps which begin with
// one of firsts and whose result they read: the only ones to do so, except for
// swiglu, whose operand is stored for the others.
func following(k program.Kind, firsts []program.Kind, ok func(st *step, op *program.Op) bool) func(*schedule) []*step {
	return func(s *schedule) (changed []*step) {
		u := s.uses()
		for i, st := range s.steps {
			if st == nil || !slices.Contains(firsts, st.first().Kind) || !open(st) {
				continue
			}
			j := u.follower(i, k, k == program.OpSwiGLU)
			if j < 0 || ok != nil && !ok(st, s.steps[j].first()) {
				continue
			}
			u.join(i, j)
			changed = append(changed, st)
		}
		return changed
	}
}

// open reports whether a step can take one op more: nothing, or a bias, comes
// after its first one.
func open(st *step) bool { return st.last() == st.first() || st.last().Kind == program.OpBias }

func addsAnother(_ *step, op *program.Op) bool { return op.In[0] != op.In[1] }

// gradOf wants the step to make the gradient, not what was gated.
func gradOf(st *step, op *program.Op) bool { return op.In[1] == st.last().Out[0] }

func sameHeads(st *step, op *program.Op) bool { return op.Attr.Heads == st.first().Attr.Heads }

// uses is who makes and reads each value, by index of the step.
type uses struct {
	s       *schedule
	made    map[*program.Value]int
	readers map[*program.Value][]int
}

func (s *schedule) uses() *uses {
	u := &uses{s, map[*program.Value]int{}, map[*program.Value][]int{}}
	for i, st := range s.steps {
		for _, v := range st.in {
			u.readers[v] = append(u.readers[v], i)
		}
		for _, v := range st.out {
			u.made[v] = i
		}
	}
	for _, v := range s.p.Outputs {
		u.readers[v] = append(u.readers[v], len(s.steps))
	}
	return u
}

// follower is the step of one op of kind k that reads the result of step i, in
// the same half, and whose other operands are there already; or −1. Others may
// read the result too if shared.
func (u *uses) follower(i int, k program.Kind, shared bool) int {
	v := u.s.steps[i].last().Out[0]
	readers := u.readers[v]
	if len(readers) == 0 || len(readers) > 1 && !shared {
		return -1
	}
	j := readers[0]
	if j == len(u.s.steps) || u.s.steps[j] == nil || (i < u.s.cut) != (j < u.s.cut) {
		return -1
	}
	op := u.s.steps[j].first()
	if len(u.s.steps[j].ops) > 1 || op.Kind != k || !u.early(op, v, i) {
		return -1
	}
	return j
}

// early reports whether op can run where step i stands: all that it reads but v
// is there, and it writes nothing but temporaries of its own.
func (u *uses) early(op *program.Op, v *program.Value, i int) bool {
	for _, x := range op.In {
		made, isMade := u.made[x]
		if x != v && (x.Role == program.State || isMade && made >= i) {
			return false
		}
	}
	for _, y := range op.Out {
		if y.Role != program.Temp || y.Type == half.F64 || slices.Contains(op.In, y) {
			return false
		}
	}
	return true
}

// join appends the op of step j to step i. What it reads of step i stays in
// memory only if somebody else reads it.
func (u *uses) join(i, j int) {
	st, op := u.s.steps[i], u.s.steps[j].first()
	v := st.last().Out[0]
	if len(u.readers[v]) == 1 {
		st.out = without(st.out, v)
	}
	st.ops, st.out = append(st.ops, op), slices.Concat(st.out, op.Out)
	for _, x := range op.In {
		if x != v && !slices.Contains(st.in, x) {
			st.in = append(slices.Clip(st.in), x)
		}
	}
	for _, y := range op.Out {
		u.made[y] = i
	}
	u.s.steps[j] = nil
}

func without(vs []*program.Value, v *program.Value) []*program.Value {
	return slices.DeleteFunc(slices.Clone(vs), func(x *program.Value) bool { return x == v })
}

// giveBuffers asks every step what memory it needs beside its operands.
func (s *schedule) giveBuffers() (changed []*step) {
	for _, st := range s.steps {
		if f := needs[st.first().Kind]; f != nil {
			f(s, st)
		}
		if len(st.own) > 0 {
			changed = append(changed, st)
		}
	}
	return changed
}

// allowOver finds which outputs may lie over which operands.
func (s *schedule) allowOver() (changed []*step) {
	for _, st := range s.steps {
		if st.over = st.overs(); len(st.over) > 0 {
			changed = append(changed, st)
		}
	}
	return changed
}

// overs is {output, operand} that may share memory. A fused step may do what its
// last op may, except where the operand is one of a product too: other tiles
// still read it.
func (s *step) overs() (pairs [][2]*program.Value) {
	first, last := s.first(), s.last()
	if first == last {
		return program.StepOf(first).Over
	}
	if first.Kind == program.OpHeadStats { // dx: its chunk of x has been packed
		return [][2]*program.Value{{last.Out[0], first.In[0]}}
	}
	for _, pair := range program.StepOf(last).Over {
		byRow := first.Kind == program.OpRMSNormGrad
		if slices.Contains(s.in, pair[1]) && (byRow || !slices.Contains(first.In, pair[1])) {
			pairs = append(pairs, pair)
		}
	}
	if first.Kind == program.OpRMSNormGrad {
		for _, pair := range program.StepOf(first).Over {
			pairs = append(pairs, [2]*program.Value{last.Out[0], pair[1]})
		}
	}
	return pairs
}

// fuseHead makes one step of statistics, loss and gradient, which stands where
// the loss does: its gradients are made in the forward half.
func (s *schedule) fuseHead() (changed []*step) {
	u := s.uses()
	for i, st := range s.steps {
		if st == nil || st.first().Kind != program.OpHeadStats {
			continue
		}
		if j, k := u.headParts(i); k >= 0 {
			stats, loss, grad := st.first(), s.steps[j].first(), s.steps[k].first()
			s.steps[i], s.steps[k] = nil, nil
			s.steps[j] = &step{
				ops: []*program.Op{stats, loss, grad},
				in:  slices.Concat(stats.In, loss.In[2:], grad.In[4:]), // tally, gradient sum
				out: slices.Concat(loss.Out, grad.Out),
			}
			changed = append(changed, s.steps[j])
		}
	}
	return changed
}

// headParts is the steps of loss and gradient that go with the statistics of
// step i, or −1.
func (u *uses) headParts(i int) (loss, grad int) {
	stats := u.s.steps[i].first()
	loss, grad = u.sole(stats.Out[0], program.OpHeadLoss), -1
	if loss < 0 {
		return -1, -1
	}
	grad = u.sole(u.s.steps[loss].first().Out[0], program.OpHeadGrad)
	if grad < 0 {
		return -1, -1
	}
	a, b := stats.In, u.s.steps[grad].first().In // x, w, labels; and lse, dw
	if a[0] != b[0] || a[1] != b[1] || a[2] != b[2] || len(u.readers[b[4]]) != 1 || u.s.steps[loss].first().In[1] != a[2] {
		return -1, -1
	}
	return loss, grad
}

// sole is the only step that reads v, if it is an op of kind k; or −1.
func (u *uses) sole(v *program.Value, k program.Kind) int {
	r := u.readers[v]
	if len(r) != 1 || r[0] == len(u.s.steps) || u.s.steps[r[0]] == nil || u.s.steps[r[0]].first().Kind != k {
		return -1
	}
	return r[0]
}

// fusePublish appends the op that rounds new weights of float32 to bf16 to the update
// that it follows.
func (s *schedule) fusePublish() (changed []*step) {
	for i, st := range s.steps {
		if i == 0 || s.steps[i-1] == nil {
			continue
		}
		up, op := s.steps[i-1], st.first()
		if up.first().Kind == program.OpAdamW && op.Kind == program.OpCast && op.In[0] == up.first().In[0] &&
			!halved(op.In[0]) && halved(op.Out[0]) {
			up.ops, up.out = append(up.ops, op), append(slices.Clip(up.out), op.Out[0])
			s.steps[i] = nil
			changed = append(changed, up)
		}
	}
	return changed
}

// fuseClear appends the op that clears a gradient sum to the update that reads it,
// if nothing in between touches the sum.
func (s *schedule) fuseClear() (changed []*step) {
	updates := map[*program.Value]*step{} // by the sum that they were the last to touch
	for i, st := range s.steps {
		op := st.first()
		if op.Kind == program.OpZero && updates[op.Out[0]] != nil {
			up := updates[op.Out[0]]
			up.ops, up.out = append(up.ops, op), append(slices.Clip(up.out), op.Out[0])
			s.steps[i] = nil
			changed = append(changed, up)
			delete(updates, op.Out[0])
			continue
		}
		for _, v := range slices.Concat(st.in, st.out) {
			delete(updates, v)
		}
		if op.Kind == program.OpAdamW && op.In[3].Role == program.State {
			updates[op.In[3]] = st
		}
	}
	return changed
}
