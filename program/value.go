// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"slices"

	"pleach/half"
)

// Spread says how the ranks of the tensor axis hold a value together. It is
// part of a value's type: the builder refuses an op whose operands are spread
// in a way that would make its result wrong.
type Spread uint8

// With one tensor rank everything is Same.
const (
	Same    Spread = iota // every rank holds the whole value, equal on all
	Rows                  // split along the first dimension
	Cols                  // split along the last dimension
	Partial               // every rank holds one term; the value is their sum
)

func (s Spread) String() string { return [...]string{"same", "rows", "cols", "partial"}[s] }

// Role says who owns the memory of a value.
type Role uint8

// Weights and states are named buffers that all programs of a run share.
const (
	Temp   Role = iota // lives inside one run; the memory plan places it
	Input              // written by the caller before a run: tokens, learning rate
	Weight             // parameters: only an update writes them
	State              // kept between runs: gradient sums, moments, the tally, caches
)

func (r Role) String() string { return [...]string{"temp", "input", "weight", "state"}[r] }

// Value is a dense row-major array that ops read or write. Shape is what one
// rank holds.
type Value struct {
	ID     int
	Name   string
	Role   Role
	Type   half.DType
	Shape  []int
	Spread Spread

	def   *Op    // the op that made it; nil unless Temp
	scale *Value // of the rows of weights of int8
	keep  bool   // a checkpoint: no policy recomputes it
}

// Dim is the size of dimension i, 0 where there is none, so that a builder that
// has failed can go on without a panic.
func (v *Value) Dim(i int) int {
	if i >= len(v.Shape) {
		return 0
	}
	return v.Shape[i]
}

// Len is the number of elements.
func (v *Value) Len() int { return product(v.Shape) }

// Bytes is the size in memory, without alignment.
func (v *Value) Bytes() int { return v.Len() * v.Type.Size() }

func (v *Value) String() string { return fmt.Sprintf("%s %s%v", v.Name, v.Type, v.Shape) }

// like reports whether v and w have one shape and element type.
func (v *Value) like(w *Value) bool { return v.Type == w.Type && slices.Equal(v.Shape, w.Shape) }

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
