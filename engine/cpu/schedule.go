// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"slices"
	"strings"

	"pleach/half"
	"pleach/kernel"
	"pleach/program"
)

// step is what the engine runs at once: an op, or several ops of which one hands
// its result to the next while it is in a cache.
type step struct {
	ops  []*program.Op    // in the order of the program
	in   []*program.Value // read from memory
	out  []*program.Value // written to memory
	own  []*program.Value // buffers that exist while the step runs: packed copies, logits
	over [][2]*program.Value
	// scratch is the elements of float32 that each worker needs.
	scratch int
}

// first is the op whose kind decides which code runs the step.
func (s *step) first() *program.Op { return s.ops[0] }

// last is the op whose result is that of the step.
func (s *step) last() *program.Op { return s.ops[len(s.ops)-1] }

// op is the op of a kind in the step, nil if there is none.
func (s *step) op(k program.Kind) *program.Op {
	for _, op := range s.ops {
		if op.Kind == k {
			return op
		}
	}
	return nil
}

// name is the kinds of the ops.
func (s *step) name() string {
	var names []string
	for _, op := range s.ops {
		names = append(names, op.Kind.String())
	}
	return strings.Join(names, " + ")
}

// flops counts products and attention as [program.Op.FLOPs] does. The fused head
// makes logits once: what the program counts for its statistics is not done.
func (s *step) flops() (n int) {
	for _, op := range s.ops {
		if op.Kind != program.OpHeadStats || len(s.ops) == 1 {
			n += op.FLOPs()
		}
	}
	return n
}

// bytes is what is read and written of the program's values, each once.
func (s *step) bytes() (n int) {
	for _, v := range slices.Concat(s.in, s.out) {
		n += v.Bytes()
	}
	return n
}

// buffer adds memory of n elements of float32 that the step has while it runs.
func (s *step) buffer(name string, shape ...int) {
	s.own = append(s.own, &program.Value{Name: name, Role: program.Temp, Type: half.F32, Shape: shape})
}

// schedule is a program as the engine runs it.
type schedule struct {
	p      *program.Program
	level  kernel.Level
	limits limits
	steps  []*step
	cut    int // steps before it are the forward half
	notes  []note
}

// note is what a pass has changed.
type note struct {
	pass  *pass
	steps []*step
}

// limits bound the buffers that steps make for themselves, in elements of
// float32. They change no bit of a result.
type limits struct {
	packed int // a packed copy of an operand: larger ones are packed in parts
	logits int // the logits of a head that exist at a time
}

var usual = limits{packed: 1 << 22, logits: 1 << 25}

// newSchedule takes p through the passes, or only through those that do not fuse.
func newSchedule(p *program.Program, k kernel.Level, m limits, fuse bool) *schedule {
	s := &schedule{p: p, level: k, limits: m, cut: p.Cut}
	for _, op := range p.Ops {
		s.steps = append(s.steps, &step{ops: []*program.Op{op}, in: op.In, out: op.Out})
	}
	for i := range passes {
		if fuse || !passes[i].fuses {
			s.notes = append(s.notes, note{&passes[i], passes[i].run(s)})
			s.compact()
		}
	}
	return s
}

// compact drops what has become part of another step.
func (s *schedule) compact() {
	cut, kept := 0, s.steps[:0]
	for i, st := range s.steps {
		if st != nil {
			kept = append(kept, st)
			if i < s.cut {
				cut++
			}
		}
	}
	s.steps, s.cut = kept, cut
}

// plan places the temporaries and the steps' own buffers.
func (s *schedule) plan(slots int) *program.Plan {
	steps := make([]program.Step, len(s.steps))
	for i, st := range s.steps {
		steps[i] = program.Step{In: st.in, Out: slices.Concat(st.out, st.own), Over: st.over}
	}
	return program.PlanSteps(steps, s.cut, s.p.Outputs, slots)
}

// half is the range of the steps of a half.
func (s *schedule) half(h program.Half) (lo, hi int) {
	switch h {
	case program.Fore:
		return 0, s.cut
	case program.Back:
		return s.cut, len(s.steps)
	}
	return 0, len(s.steps)
}

// scratch is the most that a step asks of a worker.
func (s *schedule) scratch() (n int) {
	for _, st := range s.steps {
		n = max(n, st.scratch)
	}
	return n
}
