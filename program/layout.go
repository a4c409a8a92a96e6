// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"

	"pleach/half"
)

// Axis is one direction of the mesh of ranks.
type Axis uint8

// The axes. Ends joins the first and the last pipeline stage, the two homes of
// a tied embedding.
const (
	Tensor Axis = iota + 1
	Pipe
	Data
	Ends
)

func (a Axis) String() string { return [...]string{"", "tensor", "pipe", "data", "ends"}[a] }

// Mesh is the number of ranks on each axis. The zero value is one rank.
type Mesh struct{ Data, Pipe, Tensor int }

// Size is the number of ranks on axis a.
func (m Mesh) Size(a Axis) int {
	switch a {
	case Tensor:
		return max(m.Tensor, 1)
	case Pipe:
		return max(m.Pipe, 1)
	case Data:
		return max(m.Data, 1)
	}
	return min(m.Size(Pipe), 2)
}

// Ranks is the number of ranks in all.
func (m Mesh) Ranks() int { return m.Size(Data) * m.Size(Pipe) * m.Size(Tensor) }

// Place is the position of a rank on each axis of a mesh.
type Place struct{ Data, Pipe, Tensor int }

// On is the position on axis a; on Ends, 0 is the first stage.
func (p Place) On(a Axis) int {
	switch a {
	case Tensor:
		return p.Tensor
	case Pipe:
		return p.Pipe
	case Data:
		return p.Data
	}
	return min(p.Pipe, 1)
}

// Policy says which forward values survive until the backward pass.
type Policy uint8

// The recomputation policies.
const (
	KeepAll   Policy = iota // none is recomputed
	Selective               // norms, SwiGLU, casts, scales and gathers are recomputed
	Full                    // only what the model marks with Keep survives
)

func (p Policy) String() string { return [...]string{"none", "selective", "full"}[p] }

// ParsePolicy is the inverse of String.
func ParsePolicy(s string) (Policy, error) {
	for p := KeepAll; p <= Full; p++ {
		if p.String() == s {
			return p, nil
		}
	}
	return 0, fmt.Errorf("program: recomputation policy %q: want none, selective or full", s)
}

// Layout says how a run is spread over ranks and stored. The zero value is one
// rank in float64, which only the oracle runs.
type Layout struct {
	Mesh      Mesh
	Sequence  bool       // sequence parallelism: tokens outside of blocks are split over tensor
	Zero      bool       // ZeRO-1: moments are split over data
	Chunks    int        // leaves of the summation trees, a multiple of the data degree; 0 is equal to it
	Recompute Policy     // what the backward half computes again
	Compute   half.DType // weights, activations, their gradients, caches
	Int8      bool       // matrices and the head are weights of int8, see [Builder.Int8]: no gradients
	Sum       half.DType // gradient sums, statistics, and moments unless they are bf16
}

// Quantized reports whether parameters of a class are weights of int8.
func (l Layout) Quantized(c Class) bool { return l.Int8 && c == Matrix }

// Leaves is the number of chunks of rows that a step's sums are trees over.
func (l Layout) Leaves() int {
	if l.Chunks == 0 {
		return l.Mesh.Size(Data)
	}
	return l.Chunks
}

// Sharded reports whether optimizer states are split over data ranks.
func (l Layout) Sharded() bool { return l.Zero && l.Mesh.Size(Data) > 1 }

// Check says whether sums are wide enough and the summation tree fits the data
// axis. Chunks that are not
// one for each data rank are powers of two, so that a rank's own are a subtree
// and the sum has the same bits for every data degree that divides them.
func (l Layout) Check() error {
	if l.Int8 && l.Compute != half.BF16 {
		return fmt.Errorf("program: weights of int8 with %v: want bf16", l.Compute)
	}
	if l.Sum != half.F32 && l.Sum != half.F64 {
		return fmt.Errorf("program: sums in %v: want f32 or f64", l.Sum)
	}
	d, c := l.Mesh.Size(Data), l.Leaves()
	if c != d && (c < 1 || c&(c-1) != 0 || c%d != 0) {
		return fmt.Errorf("program: %d chunks for %d data ranks: want as many, or a power of two each", c, d)
	}
	return nil
}
