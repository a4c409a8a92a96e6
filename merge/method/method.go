// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"errors"

	"pleach/half"
	"pleach/kernel"
)

// Method is a way to merge tensors.
type Method struct {
	Name      string
	Reference string      // where it comes from: "arXiv:2306.01708", "Shoemake 1985"
	Global    []Parameter // one value for a tensor
	PerModel  []Parameter // one value for each of its inputs
	// Base says whether base_model is needed, allowed or without a part in the formula.
	Base BaseRole
	// Crops says that embeddings of several sizes are cut to the rows and columns
	// that all of them have. The task-arithmetic family cuts to those of the base
	// instead, and a model with other sizes of other tensors can be skipped (ToBase).
	Crops Crop
	// Random says that the result depends on Problem.Seed.
	Random bool

	// New begins a tensor. What cannot be merged is an error of kind fault.Config
	// (a parameter, a count of inputs) that names what it got and what it wants. An
	// optional tensor that too few models have may be [Dropped] instead.
	New func(Problem) (Job, error)
}

// Dropped is the error of Method.New for an optional tensor without which the output
// does: no mistake.
var Dropped = errors.New("too few models have it")

// Warner is a [Job] that may have something to tell the user when it is done.
type Warner interface {
	// Warnings are sentences, none if all is well. It is called after the last pass.
	Warnings() []string
}

// BaseRole is what base_model means to a method.
type BaseRole byte

// Roles of a base.
const (
	BaseInput    BaseRole = iota // an input like the others, if given
	BaseOptional                 // differences are taken from it, if given
	BaseRequired                 // there must be one
)

// Crop is what happens to embeddings of different sizes.
type Crop byte

// Kinds of Crop.
const (
	CropNone   Crop = iota // an error
	CropCommon             // all are cut to what they have in common
	CropToBase             // inputs are cut to the base
)

// Parameter is a setting of a method.
type Parameter struct {
	Name     string
	Default  float64
	Required bool
	// Nullable says that there is no default: a value that is not given is absent.
	Nullable bool
}

// Values are parameters by name. Those without a value are absent.
type Values map[string]float64

// Problem is the merge of one tensor.
type Problem struct {
	Name   string // of the output, for messages
	Shape  []int  // of the output and of every input; empty for a scalar
	Inputs []Input
	Base   int // index of the base among the inputs, −1 for none
	Global Values
	Seed   uint64
	// Optional says that the model may do without this tensor.
	Optional bool
	Level    kernel.Level
}

// Input is one model's part in a problem.
type Input struct {
	Model  string // for messages
	Number int    // among the models that are not the base, in listed order, from 0; −1 for the base
	Params Values
}

// Len is the number of elements.
func (p *Problem) Len() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// Others are the indices of the inputs that are not the base.
func (p *Problem) Others() []int {
	var list []int
	for i := range p.Inputs {
		if i != p.Base {
			list = append(list, i)
		}
	}
	return list
}

// A Job computes a problem in passes over its elements, which it cuts into chunks.
type Job interface {
	// Chunk is the number of elements of a chunk; the last one may have fewer. It
	// follows from the shape and the method alone.
	Chunk() int
	// Scratch is the number of float32 that a call of Pass.Do may use.
	Scratch() int
	// Memory is an upper bound of the bytes that the job itself holds on to.
	Memory() int64
	// Begin prepares the next pass, after all calls of the last one have returned.
	// It returns nil when the last one has written.
	Begin() (*Pass, error)
}

// Pass is one walk over the elements.
type Pass struct {
	// Chunks are the chunks to look at; nil is all of them.
	Chunks []int
	// Writes says that this pass makes the output. It is the last one, and looks at
	// all chunks.
	Writes bool
	// Need says which inputs are read; nil is all. Others are nil in the chunks.
	Need []bool
	// Do computes a chunk. Calls for different chunks may run at the same time.
	Do func(c *Chunk) error
}

// Chunk is elements Lo to Lo+n of all inputs.
type Chunk struct {
	Index   int
	Lo      int
	In      [][]float32 // of every input; not to be changed
	Out     []float32   // in a pass that writes; of no input's memory
	Scratch []float32
}

// Len is the number of elements.
func (c *Chunk) Len() int {
	for _, x := range c.In {
		if x != nil {
			return len(x)
		}
	}
	return len(c.Out)
}

// Chunks is the number of chunks of size elements that n elements make.
func Chunks(n, size int) int { return (n + size - 1) / size }

// Flat is the size of chunks where rows have no meaning.
const Flat = 1 << 14

// Rows is the size of chunks of whole rows of a length.
func Rows(row int) int { return max(1, Flat/max(1, row)) * max(1, row) }

// Result is the type of the output if the configuration says nothing about it:
// the type of the base, or what the types of all inputs promote to.
func Promote(types []half.DType) half.DType {
	t := types[0]
	for _, u := range types[1:] {
		if u == t {
			continue
		}
		if t == half.F64 || u == half.F64 {
			t = half.F64
		} else {
			t = half.F32
		}
	}
	return t
}
