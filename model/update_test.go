// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"math"
	"slices"
	"testing"

	"pleach/optim"
	"pleach/program"
)

// TestSkip: a step without a label, with a norm that is not finite or with
// apply = 0 changes no weight and no moment, on no rank, but clears the sums;
// the step after it is as if there had been none.
func TestSkip(t *testing.T) {
	spoil := func(x float64) func(m *member) {
		return func(m *member) {
			if m.At == (program.Place{}) { // one element on one rank of many
				m.Mem["dembed"][3] = x
			}
		}
	}
	tests := []struct {
		name  string
		apply float64
		spoil func(m *member)
	}{
		{"asked to", 0, func(*member) {}},
		{"NaN", 1, spoil(math.NaN())},
		{"infinite", 1, spoil(math.Inf(-1))},
		{"overflow", 1, spoil(1e200)},
		{"no labels", 1, func(m *member) {
			for _, v := range m.accumulate.Held(program.State) {
				clear(m.Mem[v.Name])
			}
		}},
	}
	for _, l := range []program.Layout{{}, {Mesh: program.Mesh{Data: 2, Pipe: 2, Tensor: 2}, Sequence: true, Zero: true}} {
		for _, master := range []bool{false, true} {
			j := job{spec: full, layout: l, T: 8, B: 1, rows: 4, steps: 1, adam: testAdam}
			j.adam.Master = master
			ms := crew(t, j)
			together(ms, (*member).train)
			together(ms, func(m *member) { m.sum(2); m.finish(2, 1) })
			want := joined(t, ms)
			for _, tt := range tests {
				t.Run(tt.name+" "+layoutName(l), func(t *testing.T) {
					ms := crew(t, j)
					together(ms, (*member).train)
					together(ms, func(m *member) {
						m.sum(3)
						tt.spoil(m)
						skipped(t, m, tt.apply)
						m.sum(2)
						m.finish(2, 1)
					})
					got := joined(t, ms)
					for name := range want.weights {
						near(t, name, got.weights[name], want.weights[name], 0)
					}
				})
			}
		}
	}
}

// skipped runs the update and wants nothing but the sums to change.
func skipped(t *testing.T, m *member, apply float64) {
	before := copyOf(m.Mem)
	report := m.finish(2, apply)
	if report[program.ReportApply] != 0 {
		t.Errorf("rank %+v: report %v, want no apply", m.At, report)
	}
	for _, p := range m.params {
		for _, name := range []string{"", "m.", "v.", "master."} {
			if !slices.Equal(m.Mem[name+p.Name], before[name+p.Name]) {
				t.Errorf("rank %+v: %s%s changed", m.At, name, p.Name)
			}
		}
		if slices.ContainsFunc(m.gradient(p.Name), func(x float64) bool { return x != 0 }) {
			t.Errorf("rank %+v: d%s is not cleared", m.At, p.Name)
		}
	}
	if !slices.Equal(m.Mem["tally"], []float64{0, 0}) {
		t.Errorf("rank %+v: tally %v", m.At, m.Mem["tally"])
	}
}

// TestClip: the coefficient is min(1, limit/(norm+1e-6)), and no limit never
// clips; the norm is that of the mean gradient.
func TestClip(t *testing.T) {
	j := job{spec: full, T: 8, B: 1, rows: 2, adam: testAdam}
	for _, limit := range []float64{0, 1e-3, 0.5, 1e6} {
		j.adam.Clip = limit
		m := crew(t, j)[0]
		m.sum(1)
		count, loss, squares, weights := m.Mem["tally"][1], m.Mem["tally"][0], 0.0, 0.0
		for _, p := range m.params {
			for i, g := range m.gradient(p.Name) {
				squares += g * g
				weights += m.Mem[p.Name][i] * m.Mem[p.Name][i]
			}
		}
		norm, c := math.Sqrt(squares)/count, 1.0
		if limit > 0 {
			c = min(1, limit/(norm+1e-6))
		}
		if (c < 1) != (limit == 1e-3 || limit == 0.5) {
			t.Errorf("limit %g: coefficient %g: the test means to see both sides", limit, c)
		}
		want := []float64{c / count, norm, loss / count, count, 1, math.Sqrt(weights)}
		for i, x := range m.finish(1, 1) {
			if math.Abs(x-want[i]) > 1e-14*want[i] {
				t.Errorf("limit %g: report[%d] = %.17g, want %.17g", limit, i, x, want[i])
			}
		}
	}
}

// TestDecay: the decay that each parameter receives is that of the
// configuration: with no gradient, AdamW multiplies by 1 − lr·decay.
func TestDecay(t *testing.T) {
	tests := []struct {
		except []string
		decays func(program.Class) bool
	}{
		{nil, func(program.Class) bool { return true }},
		{[]string{"norms", "biases"}, func(c program.Class) bool { return c != program.Norm && c != program.Bias }},
		{[]string{"embeddings"}, func(c program.Class) bool { return c != program.Embedding }},
	}
	for _, tt := range tests {
		except, err := optim.ClassesOf(tt.except)
		must(t, err)
		for _, l := range []program.Layout{{}, {Mesh: program.Mesh{Data: 2, Pipe: 2, Tensor: 2}, Zero: true}} {
			j := job{spec: full, layout: l, T: 8, B: 1, rows: 4, adam: testAdam}
			j.adam.Except = except
			ms := crew(t, j)
			together(ms, func(m *member) {
				if m.At.Data == 0 && m.At.Pipe == l.Mesh.Size(program.Pipe)-1 {
					m.Mem["tally"][1] = 1 // a label, and no gradient
				}
				before := copyOf(m.Mem)
				m.finish(1, 1) // lr 0.01
				for _, p := range m.params {
					decay := 0.0
					if tt.decays(p.Class) {
						decay = testAdam.Decay
					}
					if got := j.adam.DecayOf(p.Class); got != decay {
						t.Errorf("except %v: %s: configured decay %g, want %g", tt.except, p.Name, got, decay)
					}
					for i, x := range m.Mem[p.Name] {
						if want := before[p.Name][i] * (1 - 0.01*decay); math.Abs(x-want) > 1e-15 {
							t.Errorf("except %v: %s[%d] = %g, want %g", tt.except, p.Name, i, x, want)
							break
						}
					}
				}
			})
		}
		groupsCover(t, except, tt.decays)
	}
}

// groupsCover: the printed groups name every parameter once, in the group of
// the decay that it receives.
func groupsCover(t *testing.T, except []program.Class, decays func(program.Class) bool) {
	t.Helper()
	a := testAdam
	a.Except = except
	in := map[string]float64{}
	total := 0
	for _, g := range a.Groups(full.Whole()) {
		for _, name := range g.Names {
			if _, twice := in[name]; twice {
				t.Errorf("%s is in two groups", name)
			}
			in[name] = g.Decay
		}
		total += g.Elements
	}
	if total != full.Count() {
		t.Errorf("groups of %d elements, want %d", total, full.Count())
	}
	for _, p := range full.Whole() {
		want := 0.0
		if decays(p.Class) {
			want = a.Decay
		}
		if got, ok := in[p.Name]; !ok || got != want {
			t.Errorf("%s is in the group of decay %g (%v), want %g", p.Name, got, ok, want)
		}
	}
}
