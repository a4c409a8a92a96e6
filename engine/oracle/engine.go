// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"

	"pleach/engine"
	"pleach/half"
	"pleach/program"
)

// Engine is the oracle behind the contract of package engine: one rank, float64
// inside whatever the types of a program are, except that what an op writes to a
// value of type bf16 is rounded there: that is part of the program. Arrays are
// converted where they come in and go out, rounding once. Memory that no op has written yet, and
// temporaries that the plan calls free, are NaN.
type Engine struct {
	rank   Rank
	states map[string]*program.Value
	input  int
	closed bool
}

var _ engine.Engine = (*Engine)(nil)

// New makes an engine.
func New() *Engine {
	return &Engine{
		rank:   Rank{World: NewWorld(program.Mesh{}, 1), Mem: map[string][]float64{}},
		states: map[string]*program.Value{},
	}
}

// Info says what the engine is.
func (*Engine) Info() engine.Info {
	return engine.Info{Engine: "oracle", Level: "float64", Threads: 1}
}

// Memory is what states and inputs take. Temporaries come and go with a run.
func (e *Engine) Memory() (m engine.Memory) {
	for _, v := range e.states {
		m.State += 8 * v.Len()
	}
	m.Input = e.input
	return m
}

// Close forgets everything.
func (e *Engine) Close() error {
	*e = Engine{closed: true}
	return nil
}

// executable is a program and the temporaries of its slots.
type executable struct {
	e      *Engine
	p      *program.Program
	plan   *program.Plan
	inputs []*program.Value
	frames []*frame
}

// frame gives every temporary memory of its own.
type frame struct {
	mem   map[*program.Value][]float64
	frees [][]*program.Value
}

// At is the memory of v.
func (f *frame) At(v *program.Value) []float64 {
	if f.mem[v] == nil {
		f.mem[v] = make([]float64, v.Len())
		poison(f.mem[v])
	}
	return f.mem[v]
}

func (f *frame) done(op int) {
	for _, v := range f.frees[op] {
		poison(f.At(v))
	}
}

// Compile checks p and makes its states.
func (e *Engine) Compile(p *program.Program, slots int) (engine.Executable, error) {
	if e.closed {
		return nil, fmt.Errorf("oracle: program %s: the engine is closed", p.Name)
	}
	if n := p.Mesh.Ranks(); n > 1 || slots < 1 {
		return nil, fmt.Errorf("oracle: program %s: %d ranks and %d slots: got one rank, want one slot or more", p.Name, n, slots)
	}
	for i, op := range p.Ops {
		if ops[op.Kind] == nil || op.Kind == program.OpSend || op.Kind == program.OpRecv {
			return nil, fmt.Errorf("oracle: program %s op %d %v (%s): there is one rank", p.Name, i, op.Kind, op.Where)
		}
	}
	if err := e.declare(p); err != nil {
		return nil, err
	}
	x := &executable{e: e, p: p, plan: program.MakePlan(p, slots), inputs: p.Held(program.Input)}
	x.frames = make([]*frame, slots)
	for _, v := range x.inputs {
		e.input += 8 * v.Len()
	}
	return x, nil
}

// declare makes the states of p that are new, if all of them fit.
func (e *Engine) declare(p *program.Program) error {
	vs := append(p.Held(program.Weight), p.Held(program.State)...)
	for _, v := range vs {
		if w := e.states[v.Name]; w != nil && (w.Type != v.Type || !slices.Equal(w.Shape, v.Shape)) {
			return fmt.Errorf("oracle: %v: another program has it as %v%v", v, w.Type, w.Shape)
		}
	}
	for _, v := range vs {
		if e.states[v.Name] == nil {
			e.states[v.Name] = v
			e.rank.Mem[v.Name] = make([]float64, v.Len())
		}
	}
	return nil
}

// Read copies a range of a weight or state.
func (e *Engine) Read(at program.Place, name string, lo int, dst program.Array) error {
	x, err := e.span("reading", at, name, lo, dst)
	if err == nil {
		fromWide(dst, x)
	}
	return err
}

// Write sets a range of a weight or state.
func (e *Engine) Write(at program.Place, name string, lo int, src program.Array) error {
	x, err := e.span("writing", at, name, lo, src)
	if err == nil {
		toWide(x, src)
	}
	return err
}

// span is the elements of a named buffer from lo on that a has.
func (e *Engine) span(what string, at program.Place, name string, lo int, a program.Array) ([]float64, error) {
	v := e.states[name]
	switch {
	case at != program.Place{}:
		return nil, fmt.Errorf("oracle: %s %s: rank %+v: there is one rank", what, name, at)
	case v == nil:
		return nil, fmt.Errorf("oracle: %s %s: no program has it", what, name)
	case a.Type != v.Type:
		return nil, fmt.Errorf("oracle: %s %s: got %v, want %v", what, name, a.Type, v.Type)
	}
	n := len(a.Bytes) / v.Type.Size()
	if x := e.rank.Mem[name]; lo >= 0 && n <= len(x) && lo <= len(x)-n {
		return x[lo : lo+n], nil
	}
	return nil, fmt.Errorf("oracle: %s %s: %d elements from %d on of %d", what, name, n, lo, v.Len())
}

// Program is what was compiled.
func (x *executable) Program() *program.Program { return x.p }

// Run runs a half and is done when it returns.
func (x *executable) Run(c *engine.Call) engine.Event { return engine.Done{Err: x.run(c)} }

func (x *executable) run(c *engine.Call) error {
	if x.e.closed {
		return fmt.Errorf("oracle: program %s: the engine is closed", x.p.Name)
	}
	if err := x.check(c); err != nil {
		return fmt.Errorf("oracle: program %s: %w", x.p.Name, err)
	}
	r := &x.e.rank
	for i, v := range x.inputs {
		r.Mem[v.Name] = make([]float64, v.Len())
		toWide(r.Mem[v.Name], c.In[i])
	}
	if c.Half != program.Back {
		x.frames[c.Slot] = &frame{mem: map[*program.Value][]float64{}, frees: x.plan.Frees}
	}
	f := x.frames[c.Slot]
	r.Run(x.p, c.Half, f)
	if _, hi := c.Half.Range(x.p); hi < len(x.p.Ops) {
		return nil
	}
	for i, a := range c.Out {
		if len(a.Bytes) > 0 {
			fromWide(a, r.slice(x.p.Outputs[i], f))
		}
	}
	return nil
}

// check wants a call that fits the program.
func (x *executable) check(c *engine.Call) error {
	switch {
	case c.At != program.Place{}:
		return fmt.Errorf("rank %+v: there is one rank", c.At)
	case c.Slot < 0 || c.Slot >= len(x.frames):
		return fmt.Errorf("slot %d of %d", c.Slot, len(x.frames))
	case c.Half == program.Back && x.frames[c.Slot] == nil:
		return fmt.Errorf("backward half in slot %d without a forward half", c.Slot)
	case len(c.In) != len(x.inputs):
		return fmt.Errorf("got %d inputs, want %d", len(c.In), len(x.inputs))
	case len(c.Out) != 0 && len(c.Out) != len(x.p.Outputs):
		return fmt.Errorf("got %d outputs, want %d", len(c.Out), len(x.p.Outputs))
	}
	for i, v := range x.inputs {
		if c.In[i].Type != v.Type || len(c.In[i].Bytes) != v.Bytes() {
			return fmt.Errorf("input %v: got %v of %d bytes", v, c.In[i].Type, len(c.In[i].Bytes))
		}
	}
	for _, b := range x.p.Bounds() {
		if err := b.Check(program.View[int32](c.In[slices.Index(x.inputs, b.Input)])); err != nil {
			return err
		}
	}
	for i, a := range c.Out {
		if v := x.p.Outputs[i]; len(a.Bytes) != 0 && (a.Type != v.Type || len(a.Bytes) != v.Bytes()) {
			return fmt.Errorf("output %v: got %v of %d bytes", v, a.Type, len(a.Bytes))
		}
	}
	return nil
}

// toWide converts the elements of a.
func toWide(x []float64, a program.Array) {
	switch a.Type {
	case half.F32:
		for i, v := range program.View[float32](a) {
			x[i] = float64(v)
		}
	case half.I32:
		for i, v := range program.View[int32](a) {
			x[i] = float64(v)
		}
	case half.BF16:
		for i, v := range program.View[uint16](a) {
			x[i] = float64(half.FromBF16(v))
		}
	case half.I8:
		for i, v := range program.View[int8](a) {
			x[i] = float64(v)
		}
	default:
		copy(x, program.View[float64](a))
	}
}

// fromWide is the inverse of toWide.
func fromWide(a program.Array, x []float64) {
	switch a.Type {
	case half.F32:
		for i := range program.View[float32](a) {
			program.View[float32](a)[i] = float32(x[i])
		}
	case half.I32:
		for i := range program.View[int32](a) {
			program.View[int32](a)[i] = int32(x[i])
		}
	case half.BF16:
		for i := range program.View[uint16](a) {
			program.View[uint16](a)[i] = half.ToBF16(float32(x[i]))
		}
	case half.I8:
		for i := range program.View[int8](a) {
			program.View[int8](a)[i] = int8(x[i])
		}
	default:
		copy(program.View[float64](a), x)
	}
}
