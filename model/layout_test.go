// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"slices"
	"testing"

	"pleach/engine/oracle"
	"pleach/model"
	"pleach/program"
)

// What is proved where:
//
//	program/builder_test     wrong spreads and shapes are refused, with the model's line; Check
//	program/plan_test        no two live values overlap; slots; arena ≤ 1.05 × live peak; what a layer keeps
//	program/cost_test        FLOPs and bytes on the wire = closed forms; what crosses the cut; bytes held
//	program/print_test       the printed form
//	program/schedule_test    1F1B ends with one message per link; slots are as few as can be
//	program/param_test       pieces, copies and weights of every parameter at every degree
//	program/rope_test        frequencies = transformers'
//	engine/oracle/grad_test  every gradient rule = central differences, 1e-7
//	                         in place = apart, bit for bit
//	engine/oracle/run_test   the ops without a gradient = other loops; no kind of op is untested
//	model/golden_test        loss, gradients, 3 AdamW steps = PyTorch float64, 1e-11 and 1e-10
//	model/layout_test        every layout of 1…8 ranks, and some larger ones, = one rank, 1e-10
//	model/bitwise_test       what is equal bit for bit, and that the rest is not
//	model/plan_test          planned memory, halves apart: equal bits; every early free is felt
//	model/score_test         losses add up to the tally; masked micro-batches add nothing
//	model/extend_test        prefill and decode = one forward pass over the whole row
//	model/update_test        skipped steps change nothing; clipping; decay by class
//	model/tensors_test       tensors of model files cover every parameter once; counts; what cannot be laid out
//	optim/schedule_test      schedules = closed forms
//	optim/update_test        the order of an update; its states; groups of decay

// narrow has key/value heads that 4 and 8 tensor ranks hold 2 and 4 times.
var narrow = model.Spec{
	L: 4, D: 8, H: 8, G: 2, K: 2, F: 16, V: 24, MaxT: 8, Eps: 1e-5,
	Rope: program.Rope{Theta: 100},
}

// full is narrow with all that a spec can have besides.
var full = with(narrow, func(s *model.Spec) {
	s.Tied, s.AttnBias, s.MLPBias = true, true, true
	s.Rope = program.Rope{
		Theta: 100, Scaling: program.Llama3Scaling, Factor: 4, LowFreq: 1, HighFreq: 4, Original: 16,
	}
})

func with(s model.Spec, change func(*model.Spec)) model.Spec {
	change(&s)
	return s
}

// TestLayouts: every way to spread three steps over up to 8 ranks gives the
// loss, the norms and the weights of one rank.
func TestLayouts(t *testing.T) {
	for name, spec := range map[string]model.Spec{"narrow": narrow, "full": full} {
		base := job{spec: spec, T: 8, B: 1, rows: 8, steps: 3, adam: testAdam}
		want := run(t, base)
		for _, m := range meshes(8) {
			for _, l := range variants(m) {
				t.Run(name+"_"+layoutName(l), func(t *testing.T) {
					t.Parallel() // so that no core waits while ranks wait for each other
					j := base
					j.layout, j.adam.Master = l, l.Recompute == program.Selective
					compare(t, run(t, j), want, 1e-10)
				})
			}
		}
	}
}

// TestOddLayouts: degrees 3 and 6: shards with padding, a tree of three, three
// copies of a head, vocabularies and widths that are no power of two.
func TestOddLayouts(t *testing.T) {
	spec := model.Spec{
		L: 3, D: 6, H: 12, G: 2, K: 2, F: 12, V: 18, MaxT: 6, Eps: 1e-5,
		Rope: program.Rope{Theta: 100}, Tied: true, AttnBias: true, MLPBias: true,
	}
	three := with(spec, func(s *model.Spec) { s.G, s.Tied = 3, false })
	tests := []struct {
		spec  model.Spec
		mesh  program.Mesh
		reach string
	}{
		{spec, program.Mesh{Tensor: 6}, "three copies"},
		{spec, program.Mesh{Data: 3, Pipe: 2}, "tied over stages"},
		{spec, program.Mesh{Data: 6}, "padding"},
		{spec, program.Mesh{Data: 3, Pipe: 3, Tensor: 2}, "all axes"},
		{spec, program.Mesh{Data: 3, Tensor: 6}, "copies cut by shards"},
		{three, program.Mesh{Tensor: 3}, "a head for each rank"},
		{three, program.Mesh{Data: 3, Tensor: 6}, "two copies of three heads"},
		{three, program.Mesh{Pipe: 3, Tensor: 3}, "no power of two"},
	}
	for _, tt := range tests {
		base := job{spec: tt.spec, T: 6, B: 1, rows: 6, steps: 3, adam: testAdam}
		want := run(t, base)
		for _, l := range variants(tt.mesh) {
			t.Run(fmt.Sprintf("%s G=%d %s", tt.reach, tt.spec.G, layoutName(l)), func(t *testing.T) {
				t.Parallel()
				j := base
				j.layout = l
				compare(t, run(t, j), want, 1e-10)
			})
		}
	}
}

// TestEveryMesh: the meshes of up to 8 ranks that TestLayouts leaves out, with
// degrees of 3, 5, 6 and 7 on any axis and up to 8 stages; with one key/value
// head that all tensor ranks hold, and with one for each.
func TestEveryMesh(t *testing.T) {
	done := map[program.Mesh]bool{}
	for _, m := range meshes(8) {
		done[m] = true
	}
	for n := range 8 * 8 * 8 {
		m := program.Mesh{Data: n/64 + 1, Pipe: n/8%8 + 1, Tensor: n%8 + 1}
		if m.Ranks() > 8 || done[m] {
			continue
		}
		i := m.Tensor
		for _, G := range slices.Compact([]int{1, i}) {
			spec := model.Spec{
				L: 8, D: 4, H: 2 * i, G: G, K: 2, F: 3 * i, V: 5 * i, MaxT: i, Eps: 1e-5,
				Rope: program.Rope{Theta: 100}, Tied: G == 1, AttnBias: true,
			}
			base := job{spec: spec, T: i, B: 1, rows: 2 * m.Data, steps: 2, adam: testAdam}
			want := run(t, base)
			for _, l := range variants(m) {
				t.Run(fmt.Sprintf("G=%d %s", G, layoutName(l)), func(t *testing.T) {
					t.Parallel()
					j := base
					j.layout = l
					compare(t, run(t, j), want, 1e-10)
				})
			}
		}
	}
}

// TestScoreLayouts: the loss of each token and its most probable words are the
// same in every layout.
func TestScoreLayouts(t *testing.T) {
	for name, spec := range map[string]model.Spec{"narrow": narrow, "full": full} {
		var want [][]float64
		for _, m := range meshes(8) {
			if m.Data > 1 {
				continue
			}
			for _, sequence := range []bool{false, m.Tensor > 1} {
				l := program.Layout{Mesh: m, Sequence: sequence}
				got := scores(t, spec, l, 5)
				if want == nil {
					want = got
				}
				for i, what := range []string{"loss", "top"} {
					near(t, fmt.Sprintf("%s %s: %s", name, layoutName(l), what), got[i], want[i], 1e-12)
				}
			}
		}
	}
}

// scores runs Score on two rows and returns what the ranks of the last stage
// agree on: losses, and the top words.
func scores(t testing.TB, spec model.Spec, l program.Layout, top int) [][]float64 {
	t.Helper()
	ms := crew(t, job{spec: spec, layout: l, T: 8, B: 2, rows: 2, adam: testAdam})
	found := make(chan [][]float64, len(ms))
	stages := l.Mesh.Size(program.Pipe)
	for _, m := range ms {
		score, err := model.Score(spec, l, m.At.Pipe, model.Batch{B: 2, T: 8}, top)
		must(t, err)
		m.accumulate = score
	}
	together(ms, func(m *member) {
		m.feed(0)
		f := oracle.Heap{}
		m.Run(m.accumulate, program.Whole, f)
		if m.At.Pipe == stages-1 {
			var out [][]float64
			for _, v := range m.accumulate.Outputs {
				out = append(out, f.At(v))
			}
			found <- out
		}
	})
	first := <-found
	for range len(found) {
		for i, x := range <-found {
			near(t, "a rank's output", x, first[i], 0)
		}
	}
	return first
}

func meshes(ranks int) (ms []program.Mesh) {
	for _, t := range []int{1, 2, 4, 8} {
		for p := 1; p <= 4; p++ {
			for _, d := range []int{1, 2, 4, 8} {
				if t*p*d <= ranks {
					ms = append(ms, program.Mesh{Data: d, Pipe: p, Tensor: t})
				}
			}
		}
	}
	return ms
}

// variants are the layouts of a mesh.
func variants(m program.Mesh) (ls []program.Layout) {
	for _, r := range []program.Policy{program.KeepAll, program.Selective, program.Full} {
		for _, seq := range []bool{false, true} {
			for _, zero := range []bool{false, true} {
				if seq && m.Tensor <= 1 || zero && m.Data <= 1 {
					continue
				}
				ls = append(ls, program.Layout{Mesh: m, Sequence: seq, Zero: zero, Recompute: r})
			}
		}
	}
	return ls
}
