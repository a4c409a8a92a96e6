// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"

	"pleach/half"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
)

// ragged has widths that four chunks do not divide, so that leaves are padded,
// and biases.
var ragged = with(narrow, func(s *model.Spec) { s.D, s.AttnBias, s.MLPBias = 6, true, true })

// TestBitwise: with a fixed number of chunks and a fixed tensor degree, the bits
// of losses, norms and weights do not depend on the data degree, ZeRO-1, the
// pipeline, the rows of a micro-batch, recomputation or planned memory, whether
// the head is tied or not. Under sequence parallelism the micro-batch decides which rank
// sees which token, so there it stays as it is.
func TestBitwise(t *testing.T) {
	tied := with(ragged, func(s *model.Spec) { s.Tied = true })
	for _, tt := range []struct {
		spec model.Spec
		base program.Layout
	}{
		{ragged, program.Layout{Mesh: program.Mesh{Tensor: 1}, Chunks: 4}},
		{ragged, program.Layout{Mesh: program.Mesh{Tensor: 2}, Chunks: 4}},
		{ragged, program.Layout{Mesh: program.Mesh{Tensor: 4}, Chunks: 4}},
		{ragged, program.Layout{Mesh: program.Mesh{Tensor: 2}, Chunks: 4, Sequence: true}},
		{tied, program.Layout{Mesh: program.Mesh{Tensor: 2}, Chunks: 4}},
	} {
		spec, base := tt.spec, tt.base
		want := run(t, job{spec: spec, layout: base, T: 8, B: 1, rows: 16, steps: 3, adam: testAdam})
		for _, l := range siblings(base) {
			for _, B := range []int{1, 2, 4} {
				if l.Sequence && B > 1 {
					continue
				}
				t.Run(fmt.Sprintf("%s_B%d_tied=%v", layoutName(l), B, spec.Tied), func(t *testing.T) {
					t.Parallel()
					j := job{spec: spec, layout: l, T: 8, B: B, rows: 16, steps: 3, adam: testAdam}
					if B != 2 {
						j.memory = planned
					}
					compare(t, run(t, j), want, 0)
				})
			}
		}
	}
}

// siblings are the layouts that promise the bits of l. Every policy is in each
// mesh of few ranks; in the larger ones they take turns, to save time.
func siblings(l program.Layout) (ls []program.Layout) {
	turn := program.KeepAll
	for _, d := range []int{1, 2, 4} {
		for p := 1; p <= 4; p++ {
			m := program.Mesh{Data: d, Pipe: p, Tensor: l.Mesh.Tensor}
			for _, v := range variants(m) {
				if v.Sequence != l.Sequence || m.Ranks() > 16 || m.Ranks() > 4 && v.Recompute != turn {
					continue
				}
				v.Chunks = l.Chunks
				ls = append(ls, v)
			}
			turn = (turn + 1) % (program.Full + 1)
		}
	}
	return ls
}

// TestNotBitwise shows that the promise is not vacuous, and where it ends: each
// pair agrees to rounding, but not in its last bits.
func TestNotBitwise(t *testing.T) {
	plain := job{
		spec: ragged, layout: program.Layout{Chunks: 4}, T: 8, B: 1, rows: 16, steps: 3, adam: testAdam,
	}
	change := func(j job, f func(*job)) job { f(&j); return j }
	two := change(plain, func(j *job) { j.layout.Mesh.Tensor = 2 })
	sequence := change(two, func(j *job) { j.layout.Sequence = true })
	tests := []struct {
		name string
		a, b job
	}{
		{"number of chunks", plain, change(plain, func(j *job) { j.layout.Chunks = 1 })},
		{"tensor degree", plain, two},
		{"sequence parallel or not", two, sequence},
		{"micro-batch under sequence parallelism", sequence, change(sequence, func(j *job) { j.B = 2 })},
	}
	for _, tt := range tests {
		a, b := run(t, tt.a), run(t, tt.b)
		compare(t, b, a, 1e-10)
		if sameBits(a, b) {
			t.Errorf("%s: equal bits", tt.name)
		}
	}
}

// TestBitwisePrecision: the same in types of bf16, where moments are rounded
// stochastically too: an element draws the same random number wherever it lies,
// and copies of norm weights stay equal.
func TestBitwisePrecision(t *testing.T) {
	for _, p := range []optim.Precision{optim.Mixed, optim.BF16SR, optim.BF16} {
		base := p.Layout()
		base.Mesh, base.Chunks = program.Mesh{Tensor: 2}, 4
		adam := testAdam
		adam.Seed, adam.HalfMoments = 5, p == optim.BF16SR
		adam = p.Apply(adam)
		j := job{spec: ragged, layout: base, T: 8, B: 1, rows: 16, steps: 3, adam: adam}
		want := run(t, j)
		for i, m := range []program.Mesh{{Data: 2, Tensor: 2}, {Data: 4, Tensor: 2, Pipe: 2}, {Tensor: 2, Pipe: 3}} {
			l := base
			l.Mesh, l.Zero, l.Recompute = m, i < 2, program.Policy(i)
			for _, B := range []int{1, 4} {
				t.Run(fmt.Sprintf("%v_%s_B%d", p, layoutName(l), B), func(t *testing.T) {
					t.Parallel()
					k := j
					k.layout, k.B = l, B
					compare(t, run(t, k), want, 0)
				})
			}
		}
		for name, w := range want.weights {
			for i, x := range w {
				if x != float64(half.FromBF16(half.ToBF16(float32(x)))) {
					t.Fatalf("%v: %s[%d] = %v, want a number of bf16", p, name, i, x)
				}
			}
		}
		other := j // j is still needed
		other.adam.Seed++
		if sameBits(run(t, other), want) != (p != optim.BF16SR) {
			t.Errorf("%v: another seed: the same bits: %v", p, p == optim.BF16SR)
		}
	}
}
