// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"pleach/half"
)

// Builder appends ops to a program. It keeps the first error with the line of
// the model code that caused it, and goes on with values of the wanted shape;
// Build returns the error. Methods that take values want values of this
// builder.
type Builder struct {
	p      Program
	layout Layout
	phase  Phase
	grads  map[*Value]*Value // value → its gradient so far
	sums   map[*Value]*Value // parameter → its gradient sum over the step
	clones map[*Value]*Value // value → its recomputed twin
	names  map[string]int
	where  string // line of the forward op whose gradient is being written
	err    error
}

// New starts a program for every rank of one pipeline stage of l.
func New(name string, l Layout) *Builder {
	return &Builder{
		p: Program{Name: name, Mesh: l.Mesh}, layout: l,
		grads: map[*Value]*Value{}, sums: map[*Value]*Value{},
		clones: map[*Value]*Value{}, names: map[string]int{},
	}
}

// Build returns the program, or the first error.
func (b *Builder) Build(outputs ...*Value) (*Program, error) {
	if b.err != nil {
		return nil, b.err
	}
	b.p.Outputs = outputs
	for _, op := range b.p.Ops {
		op.grad = nil
	}
	if err := b.p.Check(); err != nil {
		return nil, err
	}
	return &b.p, nil
}

// Layout is what the program is being built for.
func (b *Builder) Layout() Layout { return b.layout }

// Input declares a value that the caller writes before each run.
func (b *Builder) Input(name string, t half.DType, shape ...int) *Value {
	return b.value(name, Input, t, Same, shape)
}

// Param declares weights; shape is what one rank holds.
func (b *Builder) Param(name string, t half.DType, s Spread, shape ...int) *Value {
	return b.value(name, Weight, t, b.spread(s), shape)
}

// State declares a value that outlives a run and may be written.
func (b *Builder) State(name string, t half.DType, s Spread, shape ...int) *Value {
	return b.value(name, State, t, b.spread(s), shape)
}

// Keep marks x as a checkpoint: even full recomputation starts from it.
func (b *Builder) Keep(x *Value) *Value {
	x.keep = true
	return x
}

// UpdatePhase says that what follows is the update of a step, which may write
// weights.
func (b *Builder) UpdatePhase() { b.phase = Update }

// spread is s, or Same where there is one tensor rank.
func (b *Builder) spread(s Spread) Spread {
	if b.p.Mesh.Size(Tensor) == 1 {
		return Same
	}
	return s
}

func (b *Builder) value(name string, r Role, t half.DType, s Spread, shape []int) *Value {
	if r == Temp { // temporaries are numbered: x.0, x.1, …
		n := b.names[name]
		b.names[name]++
		name = fmt.Sprintf("%s.%d", name, n)
	}
	v := &Value{ID: len(b.p.Values), Name: name, Role: r, Type: t, Shape: slices.Clone(shape), Spread: s}
	b.p.Values = append(b.p.Values, v)
	return v
}

// op appends an op that has no outputs yet.
func (b *Builder) op(k Kind, a Attr, in ...*Value) *Op {
	op := &Op{Kind: k, In: in, Attr: a, Phase: b.phase, Where: b.line()}
	b.p.Ops = append(b.p.Ops, op)
	return op
}

// out adds a fresh output to op.
func (b *Builder) out(op *Op, name string, t half.DType, s Spread, shape ...int) *Value {
	v := b.value(name, Temp, t, s, shape)
	v.def = op
	op.Out = append(op.Out, v)
	return v
}

// into makes v, which op reads, also its output.
func (b *Builder) into(op *Op, v *Value) { op.Out = append(op.Out, v) }

func (b *Builder) want(ok bool, format string, args ...any) {
	if !ok && b.err == nil {
		b.err = fmt.Errorf("program: %s: %s", b.line(), fmt.Sprintf(format, args...))
	}
}

// line is the line of the model code at work: of the forward op, while its
// gradient rule runs, else the nearest one outside this package.
func (b *Builder) line() string {
	if b.where != "" {
		return b.where
	}
	pc := make([]uintptr, 24)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "pleach/program.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "?"
		}
	}
}
