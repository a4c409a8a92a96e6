// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"math"
	"slices"
	"testing"

	"pleach/engine/oracle"
	"pleach/model"
	"pleach/program"
)

// TestMemory runs on planned memory whose free parts are NaN, and with nothing
// but Crossing passed between the halves, and wants the bits of a run in which
// every value has memory of its own.
func TestMemory(t *testing.T) {
	for _, m := range []program.Mesh{{}, {Pipe: 2, Tensor: 2}, {Data: 2, Pipe: 4}} {
		for _, l := range variants(m) {
			j := job{spec: full, layout: l, T: 8, B: 1, rows: 8, steps: 2, adam: testAdam}
			want := run(t, j)
			j.memory = planned
			compare(t, run(t, j), want, 0)
			j.memory = halved
			compare(t, run(t, j), want, 0)
		}
	}
}

// TestEarlyFree shows that poison is felt: a value freed one op too early makes
// a loss, a norm or a weight NaN, whatever the op that still wanted it.
func TestEarlyFree(t *testing.T) {
	felt := map[program.Kind]bool{}
	for _, l := range []program.Layout{
		{},
		{Recompute: program.Full},
		{Mesh: program.Mesh{Tensor: 2}},
		{Mesh: program.Mesh{Tensor: 2}, Sequence: true, Recompute: program.Selective},
		{Mesh: program.Mesh{Pipe: 2}},
		{Mesh: program.Mesh{Data: 2}, Zero: true},
	} {
		j := job{spec: with(full, func(s *model.Spec) { s.L = 2 }), layout: l, T: 4, B: 1, rows: 2, steps: 1, adam: testAdam}
		j.memory, j.adam.Master = planned, l.Recompute == program.Selective
		for _, m := range crew(t, j) {
			if m.At.Tensor > 0 || m.At.Data > 0 {
				continue // one rank of each stage is enough
			}
			for _, p := range []*program.Program{m.accumulate, m.update} {
				for i, v := range dying(p) {
					if !feltEarly(t, j, p.Name, m.At.Pipe, i, v.ID) {
						t.Errorf("%s: %s op %d %v: %s freed before it, and nothing felt it",
							layoutName(l), p.Name, i, p.Ops[i].Kind, v.Name)
					}
					felt[p.Ops[i].Kind] = true
				}
			}
		}
	}
	// Not among them: bias, rope and all.reduce, which write over what dies at
	// them, and bias.grad, which never is the last reader.
	for _, k := range []program.Kind{
		program.OpLinear, program.OpLinearGradX, program.OpLinearGradW, program.OpRMSNormGrad, program.OpAttention,
		program.OpAttentionGrad, program.OpSwiGLU, program.OpSwiGLUGrad, program.OpAdd, program.OpEmbedGrad,
		program.OpHeadLoss, program.OpHeadGrad, program.OpAllGather, program.OpReduceScatter, program.OpSend,
		program.OpClip, program.OpAdamW,
	} {
		if !felt[k] {
			t.Errorf("no operand of %v was freed early", k)
		}
	}
}

// dying lists for each op an operand of it that is free once it has run. A
// value that nothing reads is not among them.
func dying(p *program.Program) map[int]*program.Value {
	at := map[int]*program.Value{}
	for i, vs := range program.MakePlan(p, 1).Frees[:len(p.Ops)] {
		for _, v := range vs {
			if slices.Contains(p.Ops[i].In, v) {
				at[i] = v
			}
		}
	}
	return at
}

// feltEarly runs j with value id of a stage's program freed before op i, its
// last reader, and reports whether anything became NaN.
func feltEarly(t *testing.T, j job, name string, stage, i, id int) bool {
	t.Helper()
	j.plan = func(at int, p *program.Program, slots int) *program.Plan {
		plan := program.MakePlan(p, slots)
		if p.Name == name && at == stage {
			plan.Frees[i-1] = append(plan.Frees[i-1], p.Values[id])
		}
		return plan
	}
	ms := crew(t, j)
	together(ms, (*member).train)
	for _, m := range ms {
		for _, w := range m.Mem {
			if slices.ContainsFunc(w, math.IsNaN) {
				return true
			}
		}
		if slices.ContainsFunc(slices.Concat(m.out.loss, m.out.norm, m.out.weightNorm), math.IsNaN) {
			return true
		}
	}
	return false
}

// TestEarlyFreeForward is TestEarlyFree for the programs without a gradient.
func TestEarlyFreeForward(t *testing.T) {
	score, err := model.Score(full, program.Layout{}, 0, model.Batch{B: 1, T: 8}, 3)
	must(t, err)
	extend, err := model.Extend("decode", full, program.Layout{}, 0, model.Window{N: 2, M: 2, Slots: 2, T: 4})
	must(t, err)
	for _, p := range []*program.Program{score, extend} {
		if slices.ContainsFunc(onArena(t, p, program.MakePlan(p, 1)), math.IsNaN) {
			t.Fatalf("%s: NaN without an early free", p.Name)
		}
		for i, v := range dying(p) {
			plan := program.MakePlan(p, 1)
			plan.Frees[i-1] = append(plan.Frees[i-1], v)
			if !slices.ContainsFunc(onArena(t, p, plan), math.IsNaN) {
				t.Errorf("%s op %d %v: %s freed before it, and nothing felt it", p.Name, i, p.Ops[i].Kind, v.Name)
			}
		}
	}
}

// onArena runs p on one rank with made-up inputs and returns all its outputs.
func onArena(t *testing.T, p *program.Program, plan *program.Plan) (out []float64) {
	t.Helper()
	r := oracle.Rank{World: oracle.NewWorld(p.Mesh, 1), Mem: map[string][]float64{}}
	for _, v := range p.Values {
		if v.Role != program.Temp {
			r.Mem[v.Name] = make([]float64, v.Len())
		}
		if v.Role == program.Weight {
			copy(r.Mem[v.Name], initial(full, v.Name))
		}
	}
	copy(r.Mem["slots"], []float64{0, 1})
	f := oracle.NewArena(plan).Slot(0)
	r.Run(p, program.Whole, f)
	for _, v := range p.Outputs {
		out = append(out, f.At(v)...)
	}
	return out
}
