// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"fmt"

	"pleach/engine"
	"pleach/half"
	"pleach/program"
)

// executable is a program lowered to phases.
type executable struct {
	e      *Engine
	p      *program.Program
	plan   *program.Plan
	arena  []byte
	shared []byte // what the workers of one op share: reused by every op
	inputs map[*program.Value][]byte
	in     [][]byte // the same, in order
	out    [][][]byte
	steps  [][][]*job // by slot and op
	checks []check
}

// Compile lowers p.
func (e *Engine) Compile(p *program.Program, slots int) (engine.Executable, error) {
	if n := p.Mesh.Ranks(); n > 1 {
		return nil, fmt.Errorf("cpu: program %s: a mesh of %d ranks: not yet", p.Name, n)
	}
	x := &executable{e: e, p: p, plan: program.MakePlan(p, slots), inputs: map[*program.Value][]byte{}}
	need, err := x.measure()
	if err != nil {
		return nil, err
	}
	if err := x.allocate(need); err != nil {
		return nil, err
	}
	for slot := range slots {
		l := lowering{x: x, slot: slot}
		steps := make([][]*job, len(p.Ops))
		for i, op := range p.Ops {
			l.op = op
			for _, ph := range lower[op.Kind](&l) {
				steps[i] = append(steps[i], &job{phase: ph})
			}
		}
		x.steps = append(x.steps, steps)
		x.out = append(x.out, l.outputs())
	}
	x.checks = inputChecks(x)
	return x, nil
}

// needs is working memory in elements of float32.
type needs struct{ worker, shared int }

// measure checks that the engine can run every op, and finds the largest
// working memory.
func (x *executable) measure() (needs, error) {
	var most needs
	for i, op := range x.p.Ops {
		if lower[op.Kind] == nil {
			return most, fmt.Errorf("cpu: program %s op %d %v (%s): there is one rank", x.p.Name, i, op.Kind, op.Where)
		}
		for _, v := range append(op.In[:len(op.In):len(op.In)], op.Out...) {
			if v.Type != half.F32 && v.Type != half.F64 && v.Type != half.I32 {
				return most, fmt.Errorf("cpu: program %s op %d %v (%s): %v: this type is not built yet",
					x.p.Name, i, op.Kind, op.Where, v)
			}
		}
		if f := scratch[op.Kind]; f != nil {
			n := f(op)
			most.worker, most.shared = max(most.worker, n.worker), max(most.shared, n.shared)
		}
	}
	return most, nil
}

// allocate takes all memory that the program needs.
func (x *executable) allocate(n needs) error {
	for _, v := range x.p.Values {
		if v.Role == program.Weight || v.Role == program.State {
			if _, err := x.e.state(v); err != nil {
				return err
			}
		}
	}
	x.arena, x.shared = allocate(x.plan.Bytes), allocate(4*n.shared)
	x.e.memory.Arena += len(x.arena)
	x.e.memory.Scratch += len(x.shared)
	for _, v := range x.p.Held(program.Input) {
		b := allocate(v.Bytes())
		x.inputs[v], x.in = b, append(x.in, b)
		x.e.memory.Input += len(b)
	}
	x.e.reserve(n.worker)
	return nil
}

// bytes is where v lies for the micro-batch in a slot.
func (x *executable) bytes(v *program.Value, slot int) []byte {
	switch v.Role {
	case program.Temp:
		off := x.plan.Offset(v, slot)
		return x.arena[off : off+v.Bytes() : off+v.Bytes()]
	case program.Input:
		return x.inputs[v]
	}
	return x.e.states[v.Name].data
}

// Program is what was compiled.
func (x *executable) Program() *program.Program { return x.p }

// Run runs a half and is done when it returns. It allocates nothing.
func (x *executable) Run(c *engine.Call) engine.Event { return done(x.run(c)) }

// done is an event without an allocation where there is no error.
func done(err error) engine.Event {
	if err == nil {
		return succeeded
	}
	return engine.Done{Err: err}
}

var succeeded engine.Event = engine.Done{}

func (x *executable) run(c *engine.Call) error {
	if len(c.In) != len(x.in) || c.Slot < 0 || c.Slot >= len(x.steps) || c.At != (program.Place{}) {
		return fmt.Errorf("cpu: program %s: %d inputs for slot %d of rank %+v, want %d, slots below %d, one rank",
			x.p.Name, len(c.In), c.Slot, c.At, len(x.in), len(x.steps))
	}
	for i, b := range x.in {
		if len(c.In[i].Bytes) != len(b) {
			return fmt.Errorf("cpu: program %s: input %s: got %d bytes, want %d", x.p.Name,
				x.p.Held(program.Input)[i].Name, len(c.In[i].Bytes), len(b))
		}
		copy(b, c.In[i].Bytes)
	}
	for i := range x.checks {
		if err := x.checks[i].run(); err != nil {
			return fmt.Errorf("cpu: program %s: %w", x.p.Name, err)
		}
	}
	lo, hi := c.Half.Range(x.p)
	for _, jobs := range x.steps[c.Slot][lo:hi] {
		for _, j := range jobs {
			x.e.pool.do(j)
		}
	}
	if hi == len(x.p.Ops) {
		for i, b := range x.out[c.Slot] {
			if i < len(c.Out) {
				copy(c.Out[i].Bytes, b)
			}
		}
	}
	return nil
}
