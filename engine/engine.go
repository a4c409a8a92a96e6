// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"pleach/program"
)

// Engine runs programs for one or more ranks of this process.
//
// Weights and states are buffers with names, zero at first, that all programs of
// an engine share: the gradient sums that accumulate adds to are those that
// update reads. A buffer exists from the first Compile of a program that names
// it; a later program must agree about type and shape.
//
// Methods may be called from one goroutine at a time for each rank.
type Engine interface {
	// Info says what this engine is, for the record of a run.
	Info() Info
	// Compile lowers p for a schedule that keeps up to slots micro-batches
	// between their halves. It refuses what the engine cannot run, naming the op.
	Compile(p *program.Program, slots int) (Executable, error)
	// Read copies elements [lo, lo+n) of what rank at holds of a weight or
	// state, n being the length of dst, which has its element type.
	Read(at program.Place, name string, lo int, dst program.Array) error
	// Write is the inverse of Read.
	Write(at program.Place, name string, lo int, src program.Array) error
	// Memory is what the engine has allocated.
	Memory() Memory
	// Close frees everything. Executables are of no use afterwards.
	Close() error
}

// Executable is a compiled program.
type Executable interface {
	// Program is what was compiled.
	Program() *program.Program
	// Run runs a half of the program, or all of it. It may return before the
	// work is done; c and its arrays belong to the engine until Wait has
	// returned. It checks what would make it read or write outside of its
	// buffers (ids, labels, positions), and an error names the op and the place.
	Run(c *Call) Event
}

// Call is one run. Arrays are in the order of p.Held(program.Input) and
// p.Outputs. Inputs are given for each half; outputs are written by a run that
// includes the last op, and skipped where an array has no bytes.
type Call struct {
	At   program.Place
	Half program.Half
	Slot int
	In   []program.Array
	Out  []program.Array
}

// Event is work under way.
type Event interface {
	// Wait blocks until the work is done and its outputs are written.
	Wait() error
}

// Info describes an engine.
type Info struct {
	Engine  string // cpu, oracle
	Level   string // the set of kernels: portable
	Threads int
	Device  string // the processor's name
}

// Memory is an engine's allocations in bytes.
type Memory struct {
	State   int // weights and states
	Input   int // copies of inputs
	Arena   int // temporaries of all executables
	Scratch int // working memory of kernels
}

// Total is the sum.
func (m Memory) Total() int { return m.State + m.Input + m.Arena + m.Scratch }

// NewCall allocates a call of the whole of p.
func NewCall(p *program.Program) *Call {
	c := &Call{Half: program.Whole}
	for _, v := range p.Held(program.Input) {
		c.In = append(c.In, program.NewArray(v))
	}
	for _, v := range p.Outputs {
		c.Out = append(c.Out, program.NewArray(v))
	}
	return c
}

// Input is the array of a call of p for the input of a name. It panics if there
// is none: whoever asks wrote the program.
func (c *Call) Input(p *program.Program, name string) program.Array {
	for i, v := range p.Held(program.Input) {
		if v.Name == name {
			return c.In[i]
		}
	}
	panic(fmt.Sprintf("engine: program %s has no input %s", p.Name, name))
}

// Done is the event of work that is already done, with this error.
type Done struct{ Err error }

// Wait returns the error.
func (d Done) Wait() error { return d.Err }
