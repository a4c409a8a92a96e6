// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"fmt"

	"pleach/engine"
	"pleach/program"
)

// executable is a program lowered to phases.
type executable struct {
	e      *Engine
	p      *program.Program
	s      *schedule
	plan   *program.Plan
	arena  []byte
	held   []*program.Value // the inputs
	inputs map[*program.Value][]byte
	in     [][]byte // the same, in order
	out    [][][]byte
	steps  [][][]*job // by slot and step
	bounds []program.Bound
}

// Compile lowers p.
func (e *Engine) Compile(p *program.Program, slots int) (engine.Executable, error) {
	if e.closed {
		return nil, fmt.Errorf("cpu: program %s: the engine is closed", p.Name)
	}
	if n := p.Mesh.Ranks(); n > 1 || slots < 1 {
		return nil, fmt.Errorf("cpu: program %s: got %d ranks and %d slots, want one rank and a slot", p.Name, n, slots)
	}
	if err := checkOps(p); err != nil {
		return nil, err
	}
	if err := e.declare(p); err != nil {
		return nil, err
	}
	s := newSchedule(p, e.level, e.limits, !e.plain)
	x := &executable{
		e: e, p: p, s: s, plan: s.plan(slots),
		held: p.Held(program.Input), inputs: map[*program.Value][]byte{},
	}
	x.allocate()
	for slot := range slots {
		x.lower(slot)
	}
	x.bounds = p.Bounds()
	return x, nil
}

// lower makes the jobs of the micro-batch in a slot.
func (x *executable) lower(slot int) {
	l := lowering{x: x, slot: slot, level: x.e.level}
	steps := make([][]*job, len(x.s.steps))
	for i, st := range x.s.steps {
		l.st, l.op = st, st.first()
		for _, ph := range lower[l.op.Kind](&l) {
			steps[i] = append(steps[i], &job{phase: ph})
		}
	}
	x.steps, x.out = append(x.steps, steps), append(x.out, l.outputs())
}

// allocate takes all memory that the program needs.
func (x *executable) allocate() {
	x.arena = x.e.allocate(x.plan.Bytes)
	x.e.memory.Arena += len(x.arena)
	for _, v := range x.held {
		b := x.e.allocate(v.Bytes())
		x.inputs[v], x.in = b, append(x.in, b)
		x.e.memory.Input += len(b)
	}
	x.e.reserve(x.s.scratch())
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
	return x.runSteps(c, x.each)
}

// each runs the jobs of a step.
func (x *executable) each(_ int, jobs []*job) {
	for _, j := range jobs {
		x.e.pool.do(j)
	}
}

// runSteps hands the steps of a call to run, with their index.
func (x *executable) runSteps(c *engine.Call, run func(i int, jobs []*job)) error {
	if err := x.check(c); err != nil {
		return fmt.Errorf("cpu: program %s: %w", x.p.Name, err)
	}
	for i, b := range x.in {
		copy(b, c.In[i].Bytes)
	}
	for _, b := range x.bounds {
		if err := b.Check(view[int32](x.inputs[b.Input])); err != nil {
			return fmt.Errorf("cpu: program %s: %w", x.p.Name, err)
		}
	}
	lo, hi := x.s.half(c.Half)
	for i := lo; i < hi; i++ {
		run(i, x.steps[c.Slot][i])
	}
	if hi == len(x.s.steps) {
		for i, a := range c.Out {
			copy(a.Bytes, x.out[c.Slot][i])
		}
	}
	return nil
}

// check wants a call that fits the program.
func (x *executable) check(c *engine.Call) error {
	switch {
	case x.e.closed:
		return fmt.Errorf("the engine is closed")
	case c.At != program.Place{}:
		return fmt.Errorf("rank %+v: there is one rank", c.At)
	case c.Slot < 0 || c.Slot >= len(x.steps):
		return fmt.Errorf("slot %d of %d", c.Slot, len(x.steps))
	case len(c.In) != len(x.in):
		return fmt.Errorf("got %d inputs, want %d", len(c.In), len(x.in))
	case len(c.Out) != 0 && len(c.Out) != len(x.p.Outputs):
		return fmt.Errorf("got %d outputs, want %d", len(c.Out), len(x.p.Outputs))
	}
	for i, v := range x.held {
		if a := c.In[i]; a.Type != v.Type || len(a.Bytes) != v.Bytes() {
			return fmt.Errorf("input %v: got %d bytes of %v", v, len(a.Bytes), a.Type)
		}
	}
	for i, a := range c.Out {
		if v := x.p.Outputs[i]; len(a.Bytes) != 0 && (a.Type != v.Type || len(a.Bytes) != v.Bytes()) {
			return fmt.Errorf("output %v: got %d bytes of %v", v, len(a.Bytes), a.Type)
		}
	}
	return nil
}
