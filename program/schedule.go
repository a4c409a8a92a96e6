// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

// Half is one half of a micro-batch's program, or all of it.
type Half uint8

// The halves.
const (
	Fore  Half = iota // forward, up to the cut
	Back              // backward, from the cut on
	Whole             // both, one after the other
)

func (h Half) String() string { return [...]string{"forward", "backward", "whole"}[h] }

// Range is the ops of a half of p.
func (h Half) Range(p *Program) (lo, hi int) {
	switch h {
	case Fore:
		return 0, p.Cut
	case Back:
		return p.Cut, len(p.Ops)
	}
	return 0, len(p.Ops)
}

// Turn is one run of half a program: which micro-batch, and in which slot its
// saved activations lie.
type Turn struct {
	Half  Half
	Micro int
	Slot  int
}

// Slots is the number of micro-batches that a stage keeps between their halves:
// one for each stage from it to the end.
func Slots(stage, stages, micros int) int { return min(stages-stage, micros) }

// Schedule orders the halves of all micro-batches of a step on one stage, one
// forward one backward (Narayanan et al., "Efficient Large-Scale Language Model
// Training on GPU Clusters", 2021, arXiv:2104.04473, §2.2). Backward halves run
// in the order of the micro-batches, so gradient sums have the same bits with
// and without a pipeline. A link needs room for one message each way.
func Schedule(stage, stages, micros int) []Turn {
	slots := Slots(stage, stages, micros)
	turns := make([]Turn, 0, 2*micros)
	f := 0
	fore := func() { turns = append(turns, Turn{Fore, f, f % slots}); f++ }
	for f < slots-1 {
		fore()
	}
	for i := range micros {
		if f < micros {
			fore()
		}
		turns = append(turns, Turn{Back, i, i % slots})
	}
	return turns
}
