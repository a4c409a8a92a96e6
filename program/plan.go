// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"slices"
)

// Align is the alignment of every temporary: a cache line.
const Align = 64

// Spot is where a temporary lies in its arena. A saved one lies in the slot of
// its micro-batch, the others in the work area that all micro-batches share.
type Spot struct {
	Saved  bool
	Offset int
}

// Step is what an engine runs at once, as a memory plan sees it: an op, or
// several that pass values on without memory. A value that stands in both In and
// Out is updated in place.
type Step struct {
	In, Out []*Value
	// Over lists pairs {output, operand}: the step may write the output over the
	// operand, if that dies there.
	Over [][2]*Value
}

// StepOf is an op that runs alone.
func StepOf(op *Op) Step {
	s := Step{In: op.In, Out: op.Out}
	for _, pair := range infos[op.Kind].over {
		if pair[0] < len(op.Out) && pair[1] < len(op.In) {
			s.Over = append(s.Over, [2]*Value{op.Out[pair[0]], op.In[pair[1]]})
		}
	}
	return s
}

// Plan is the memory of a program's temporaries. The arena is
//
//	slot 0 | slot 1 | … | work area
//
// A slot holds what crosses from the forward to the backward half of one
// micro-batch. With one slot the halves follow each other, there is nothing to
// keep apart, and everything shares the work area.
type Plan struct {
	Spots map[*Value]Spot
	Slots int
	Slot  int        // bytes of one slot; 0 with one slot
	Work  int        // bytes of the work area
	Bytes int        // bytes of the arena
	Live  []int      // bytes of temporaries alive while step i runs, one micro-batch
	Peak  int        // the largest Live: no arena can be smaller
	Frees [][]*Value // what is free once step i has run; the last entry outlives all steps
}

// Offset is where v lies in the arena for the micro-batch in a slot.
func (p *Plan) Offset(v *Value, slot int) int {
	s := p.Spots[v]
	if s.Saved {
		return slot*p.Slot + s.Offset
	}
	return p.Slots*p.Slot + s.Offset
}

// block is memory shared by values of which each is written over the last.
type block struct {
	values   []*Value
	from, to int // first and last step that touches it
	size     int
	offset   int
}

// MakePlan places the temporaries of p, of which every op is a step, for a
// schedule that keeps up to slots micro-batches between their halves.
func MakePlan(p *Program, slots int) *Plan {
	steps := make([]Step, len(p.Ops))
	for i, op := range p.Ops {
		steps[i] = StepOf(op)
	}
	return PlanSteps(steps, p.Cut, p.Outputs, slots)
}

// PlanSteps places the temporaries of steps, of which those from cut on are the
// backward half. The outputs outlive all steps.
func PlanSteps(steps []Step, cut int, outputs []*Value, slots int) *Plan {
	blocks, frees := lifetimes(steps, outputs)
	plan := &Plan{
		Spots: map[*Value]Spot{}, Slots: slots, Frees: frees,
		Live: make([]int, len(steps)),
	}
	var saved, work []*block
	for _, k := range blocks {
		for i := k.from; i <= min(k.to, len(steps)-1); i++ {
			plan.Live[i] += k.size
		}
		if slots > 1 && k.from < cut && cut <= k.to {
			saved = append(saved, k)
		} else {
			work = append(work, k)
		}
	}
	plan.Slot, plan.Work = pack(saved), pack(work)
	plan.Bytes = slots*plan.Slot + plan.Work
	if len(plan.Live) > 0 {
		plan.Peak = slices.Max(plan.Live)
	}
	plan.place(saved, true)
	plan.place(work, false)
	return plan
}

func (p *Plan) place(blocks []*block, saved bool) {
	for _, k := range blocks {
		for _, v := range k.values {
			p.Spots[v] = Spot{saved, k.offset}
		}
	}
}

// lifetimes finds the blocks of steps in order of first use, and for every step
// the values that die with it. An output joins the block of an operand of equal
// size that dies at its step, if the step allows it.
func lifetimes(steps []Step, outputs []*Value) ([]*block, [][]*Value) {
	last := lastUses(steps, outputs)
	var blocks []*block
	home := map[*Value]*block{}
	for i, s := range steps {
		for _, v := range s.Out {
			if v.Role != Temp || home[v] != nil {
				continue // a state, or updated in place
			}
			k := s.heir(v, i, last, home)
			if k == nil {
				k = &block{from: i, size: (v.Bytes() + Align - 1) / Align * Align}
				blocks = append(blocks, k)
			}
			k.values, k.to = append(k.values, v), last[v]
			home[v] = k
		}
	}
	frees := make([][]*Value, len(steps)+1)
	for _, k := range blocks {
		v := k.values[len(k.values)-1]
		frees[last[v]] = append(frees[last[v]], v)
	}
	return blocks, frees
}

// lastUses is the index of the last step that touches each value; an output of
// the program outlives all steps.
func lastUses(steps []Step, outputs []*Value) map[*Value]int {
	last := map[*Value]int{}
	for i, s := range steps {
		for _, v := range s.In {
			last[v] = i
		}
		for _, v := range s.Out {
			last[v] = i
		}
	}
	for _, v := range outputs {
		last[v] = len(steps)
	}
	return last
}

// heir is the block that output y of step i takes over, or nil. Two outputs never
// take over one block: the first has made it its own.
func (s Step) heir(y *Value, i int, last map[*Value]int, home map[*Value]*block) *block {
	for _, pair := range s.Over {
		x := pair[1]
		if pair[0] != y || x.Role != Temp || last[x] != i || x.Bytes() != y.Bytes() {
			continue
		}
		if k := home[x]; k != nil && k.values[len(k.values)-1] == x {
			return k
		}
	}
	return nil
}

// pack gives every block an offset such that blocks alive together do not
// overlap, each at the lowest free place, large ones first, and returns the
// bytes used.
func pack(blocks []*block) int {
	order := slices.Clone(blocks)
	slices.SortStableFunc(order, func(a, b *block) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.from, b.from))
	})
	var placed []*block // by offset
	bytes := 0
	for _, k := range order {
		k.offset = 0
		for _, q := range placed {
			if q.from > k.to || k.from > q.to {
				continue
			}
			if k.offset+k.size <= q.offset {
				break
			}
			k.offset = max(k.offset, q.offset+q.size)
		}
		at, _ := slices.BinarySearchFunc(placed, k.offset, func(q *block, off int) int {
			return cmp.Compare(q.offset, off)
		})
		placed = slices.Insert(placed, at, k)
		bytes = max(bytes, k.offset+k.size)
	}
	return bytes
}
