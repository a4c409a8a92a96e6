// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import "slices"

// Class sorts parameters by what they are for; weight decay is chosen by it.
type Class uint8

// The classes.
const (
	Matrix    Class = iota
	Embedding       // the input embedding, and the head tied to it
	Norm
	Bias
)

func (c Class) String() string { return [...]string{"matrix", "embedding", "norm", "bias"}[c] }

// Param describes a parameter: the whole array, how the tensor ranks hold it,
// and which tensors of a model file it is made of. It is split along Dim, part
// by part: a fused matrix has a part for each matrix in it.
type Param struct {
	Name  string
	Class Class
	Shape []int // of the whole
	Dim   int
	Parts []Part
	Group int  // its row of norm slots: 0 the embedding, l+1 layer l, L+1 the head
	Ends  bool // held by the first and the last stage: a tied embedding
}

// Part is Size rows (or columns) cut into Ways pieces. Rank i of t holds piece
// ⌊i·Ways/t⌋, so t/Ways consecutive ranks hold copies. Tensor is the name of
// the part in model files.
type Part struct {
	Tensor string
	Size   int
	Ways   int
}

// Len is the number of elements of the whole.
func (p Param) Len() int { return product(p.Shape) }

// Local is the shape that one rank holds.
func (p Param) Local() []int {
	shape := slices.Clone(p.Shape)
	shape[p.Dim] = 0
	for _, q := range p.Parts {
		shape[p.Dim] += q.Size / q.Ways
	}
	return shape
}

// Row is the number of elements of one row of what a rank holds.
func (p Param) Row() int { return product(p.Local()[1:]) }

// Spread is how tensor ranks hold p together.
func (p Param) Spread() Spread {
	switch {
	case p.Parts[0].Ways == 1:
		return Same
	case p.Dim == 0:
		return Rows
	}
	return Cols
}

// Slice calls f for every run of consecutive elements that rank i of t holds:
// n elements at offset whole of the whole array, at offset local of its own.
func (p Param) Slice(i, t int, f func(whole, local, n int)) {
	outer, inner := product(p.Shape[:p.Dim]), product(p.Shape[p.Dim+1:])
	at := 0
	for o := range outer {
		base := o * p.Shape[p.Dim] * inner
		for _, q := range p.Parts {
			n := q.Size / q.Ways * inner
			f(base+i*q.Ways/t*n, at, n)
			base, at = base+q.Size*inner, at+n
		}
	}
}

// Runs lists the parts as ranges of the flat elements that one of t ranks
// holds: weight is the inverse of the number of ranks that hold each element,
// so that a sum over all ranks counts it once, and copies the number of
// consecutive tensor ranks among them.
func (p Param) Runs(t int) []Run {
	homes := 1
	if p.Ends {
		homes = 2
	}
	if p.Dim != 0 { // one part, cut in columns
		copies := t / p.Parts[0].Ways
		return []Run{{0, product(p.Local()), copies, 1 / float64(copies*homes)}}
	}
	var runs []Run
	lo := 0
	for _, q := range p.Parts {
		hi, copies := lo+q.Size/q.Ways*p.Row(), t/q.Ways
		runs = append(runs, Run{lo, hi, copies, 1 / float64(copies*homes)})
		lo = hi
	}
	return runs
}

// Run is a range [Lo,Hi) of flat elements of a parameter, see [Param.Runs].
type Run struct {
	Lo, Hi int
	Copies int
	Weight float64
}
