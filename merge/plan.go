// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"pleach/half"
	"pleach/merge/method"
	"pleach/merge/vocab"
)

// Options is what the command line adds to a configuration.
type Options struct {
	ShardBytes int64 // of tensors in an output file; 0 is one file
	Seed       uint64
	Compat     bool // mergekit's arithmetic
	Crimes     bool // inputs of different architectures are allowed
	Skips      bool // a model whose tensor has another shape is left out of that tensor
	NonFinite  bool // NaN and infinities are allowed

	// Find is the folder of a model or adapter that a configuration names.
	Find func(path, revision string) (dir string, err error)
}

// Plan is a merge before anything large is read. Models are open until Close.
type Plan struct {
	Config  *Config
	Options Options
	Method  *method.Method
	Models  []*Model // each once, in listed order, the base where it is listed or last
	Base    int      // index in Models, −1 for none
	Donor   int      // index of the model that gives config.json and the tokenizer

	Tensors    []Tensor          // in the order in which they are written
	Vocabulary *vocab.Vocabulary // nil if embeddings keep their rows
	Layers     int               // of the output, 0 to keep what the configuration of the donor says
	LayersKey  string            // where config.json has that, empty for nowhere

	// Untied says that the output has an lm_head of its own, other than its donor.
	Untied   bool
	Dropped  []string // tensors of inputs that have no part in the output
	Warnings []string
}

// Tensor is one tensor of the output.
type Tensor struct {
	Name   string
	Shape  []int
	DType  half.DType // in the output
	Cast   half.DType // what inputs are rounded to when they are read, if HasCast
	Global method.Values
	Inputs []Input
	Base   int // index in Inputs, −1 for none
	Line   int // of the configuration, for messages

	HasCast bool
	Embed   bool // rows are tokens
	// Tied is the tensor of the output that this one is as well where models tie
	// them, empty for none.
	Tied string
	// DrawAs is the tensor whose random numbers this one has, empty for its own.
	DrawAs   string
	Optional bool
	// Copy says that elements are no floats: they are copied from the first input,
	// and all inputs must have the same.
	Copy bool
}

// Input is where a tensor of the output comes from.
type Input struct {
	Model  int    // index in Plan.Models
	Number int    // among models that are not the base, in listed order; −1 for the base
	Name   string // in the files of the model
	Shape  []int  // there
	DType  half.DType
	Params method.Values
}
