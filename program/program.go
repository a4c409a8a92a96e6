// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"slices"
)

// Heads describes the heads that one rank holds: H query heads, G key/value
// heads, each K wide. T is the number of tokens in a row, or of positions in a
// cache: positions are below it.
type Heads struct{ H, G, K, T int }

// Width is the width of a fused row: H query heads, G key heads, G value heads.
func (h Heads) Width() int { return (h.H + 2*h.G) * h.K }

// Adam holds the constants of one parameter's update.
type Adam struct{ Beta1, Beta2, Eps, Decay float64 }

// Attr holds what an op needs beside its operands. A field has a meaning only
// for the kinds that name it in their doc comment; the others leave it zero.
type Attr struct {
	Axis     Axis    // collectives; sharded operands whose offset depends on the rank
	Copies   int     // all-reduce: among so many consecutive ranks of the axis, 0 is all
	Step     int     // send, recv: distance to the peer on the axis
	Lo, Hi   int     // all-reduce in place: flat elements [Lo,Hi)
	Sharded  bool    // Lo, Hi, Runs and the elements of Rounding count in the whole of which the operand is the data rank's shard
	Heads    Heads   // rope, attention
	Rope     Rope    // rope
	Inverse  bool    // rope: rotate back
	Eps      float64 // rmsnorm
	C        float64 // scale: the factor; clip: the largest norm
	Adam     Adam    // adamw
	Rounding         // adamw
	Row      int     // sum of squares: row of slots
	Leaf     int     // sum of squares: elements per slot
	Runs     []Run   // sum of squares
}

// Phase says why an op is in the list.
type Phase uint8

// The phases, in their order within a step.
const (
	Forward Phase = iota
	Recompute
	Backward
	Update
)

func (p Phase) String() string { return [...]string{"F", "R", "B", "U"}[p] }

// Op reads In and writes Out. A value that stands in both is updated in place.
type Op struct {
	Kind  Kind
	In    []*Value
	Out   []*Value
	Attr  Attr
	Phase Phase
	Where string // file:line of the model code that asked for it

	grad func() // while building: appends the backward ops
}

// Program is a typed list of ops, run from first to last.
type Program struct {
	Name    string
	Mesh    Mesh
	Values  []*Value
	Ops     []*Op
	Outputs []*Value
	Cut     int // ops before it are the forward half, from it on the backward half
}

// Held lists the values of one role, in order of declaration.
func (p *Program) Held(r Role) []*Value {
	var vs []*Value
	for _, v := range p.Values {
		if v.Role == r {
			vs = append(vs, v)
		}
	}
	return vs
}

// Named is the value of that name which is not a temporary, or nil.
func (p *Program) Named(name string) *Value {
	for _, v := range p.Values {
		if v.Name == name && v.Role != Temp {
			return v
		}
	}
	return nil
}

// Crossing lists the temporaries that the forward half hands to the backward
// half: what a pipeline slot holds, and what two separately compiled halves
// pass as outputs and inputs.
func (p *Program) Crossing() []*Value {
	made := map[*Value]bool{}
	for _, op := range p.Ops[:p.Cut] {
		for _, v := range op.Out {
			made[v] = v.Role == Temp
		}
	}
	var vs []*Value
	for _, op := range p.Ops[p.Cut:] {
		for _, v := range op.In {
			if made[v] {
				vs = append(vs, v)
				made[v] = false // once
			}
		}
	}
	return vs
}

// Check proves what every reader of a program relies on: temporaries are
// written before they are read, and once unless in place; inputs and, outside
// an update, weights are never written; a value that is no temporary has its
// name alone.
func (p *Program) Check() error {
	if err := p.checkNames(); err != nil {
		return err
	}
	made := map[*Value]bool{}
	for i, op := range p.Ops {
		for _, v := range op.In {
			if v.Role == Temp && !made[v] {
				return fmt.Errorf("program: %s op %d %v: reads %s before it is written", p.Name, i, op.Kind, v.Name)
			}
		}
		for _, v := range op.Out {
			switch {
			case v.Role == Temp && made[v] && !slices.Contains(op.In, v):
				return fmt.Errorf("program: %s op %d %v: writes %s again", p.Name, i, op.Kind, v.Name)
			case v.Role == Input, v.Role == Weight && op.Phase != Update:
				return fmt.Errorf("program: %s op %d %v: writes %v %s", p.Name, i, op.Kind, v.Role, v.Name)
			}
			made[v] = true
		}
	}
	return nil
}

func (p *Program) checkNames() error {
	seen := map[string]bool{}
	for _, v := range p.Values {
		if v.Role == Temp {
			continue
		}
		if seen[v.Name] {
			return fmt.Errorf("program: %s: two values are called %s", p.Name, v.Name)
		}
		seen[v.Name] = true
	}
	return nil
}

// Cost is what a program does, summed over its ops.
type Cost struct {
	FLOPs int // of products and attention
	Bytes int // read and written, each operand once
	Wire  int // sent by one rank
}

// Cost adds up the program.
func (p *Program) Cost() Cost {
	var c Cost
	for _, op := range p.Ops {
		c.FLOPs += op.FLOPs()
		c.Bytes += op.Bytes()
		c.Wire += op.Wire(p.Mesh)
	}
	return c
}

// HeldBytes is the memory of values that outlive a run of any of the programs:
// weights and states, shared by name, and separately the inputs.
func HeldBytes(programs ...*Program) (state, input int) {
	seen := map[string]bool{}
	for _, p := range programs {
		for _, v := range p.Values {
			if v.Role == Temp || seen[v.Name] {
				continue
			}
			seen[v.Name] = true
			if v.Role == Input {
				input += v.Bytes()
			} else {
				state += v.Bytes()
			}
		}
	}
	return state, input
}
