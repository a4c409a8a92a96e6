// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"math"
	"testing"

	"pleach/engine/oracle"
	"pleach/model"
	"pleach/program"
)

// TestExtend: a prompt in one run and then token by token gives the logits of
// one forward pass over the whole row, for sequences of different lengths in
// slots that are not in order, and in every layout.
func TestExtend(t *testing.T) {
	mha := with(narrow, func(s *model.Spec) { s.G = s.H })
	biases := with(narrow, func(s *model.Spec) { s.AttnBias, s.MLPBias = true, true })
	tied := with(narrow, func(s *model.Spec) { s.Tied = true })
	one := with(full, func(s *model.Spec) { s.G = 1 })
	specs := map[string]model.Spec{
		"multi-head": mha, "grouped": narrow, "biases": biases, "tied": tied, "full": full, "multi-query": one,
	}
	for name, spec := range specs {
		want := rowLogProbs(t, spec)
		for _, m := range []program.Mesh{{}, {Tensor: 2}, {Tensor: 4}, {Tensor: 8}, {Pipe: 3}, {Pipe: 2, Tensor: 2}} {
			t.Run(fmt.Sprintf("%s_p%d_t%d", name, m.Pipe, m.Tensor), func(t *testing.T) {
				t.Parallel()
				testExtend(t, spec, m, want)
			})
		}
	}
}

// prompts are two sequences: the first tokens of rows 0 and 1, with the slot
// that each is put in.
var prompts = []struct{ slot, length int }{{2, 5}, {0, 3}}

// rowLogProbs is the log-probability [2,8,V] of every word after every token of
// rows 0 and 1, by Score.
func rowLogProbs(t *testing.T, s model.Spec) []float64 {
	t.Helper()
	batch := model.Batch{B: 2, T: 8}
	score, err := model.Score(s, program.Layout{}, 0, batch, s.V)
	must(t, err)
	m := single(t, s, batch)
	m.source = wholeRow
	m.feed(0)
	f := oracle.Heap{}
	m.Run(score, program.Whole, f)
	top := f.At(score.Outputs[1])
	out := make([]float64, batch.N()*s.V)
	for i := 0; i < len(top); i += 2 {
		n := i / 2 / s.V
		out[n*s.V+int(top[i])] = top[i+1]
	}
	return out
}

// wholeRow is a row of one document.
func wholeRow(s model.Spec, T, row int) sample {
	x := randomRow(s, T, row)
	for n := range x.positions {
		x.positions[n] = float64(n)
	}
	return x
}

func testExtend(t *testing.T, s model.Spec, mesh program.Mesh, want []float64) {
	t.Helper()
	l := program.Layout{Mesh: mesh, Sequence: mesh.Tensor > 1} // Extend does without
	e := extension{spec: s, members: crew(t, job{spec: s, layout: l, T: 8, B: 2, rows: 2, adam: testAdam})}
	expect := func(row, n int, got []float64) {
		t.Helper()
		near(t, fmt.Sprintf("row %d token %d", row, n), got, want[(row*8+n)*s.V:][:s.V], 1e-12)
	}

	var in extInput
	for row, p := range prompts {
		for n := range p.length {
			in.add(wholeRow(s, 8, row).tokens[n], n, p.slot)
		}
		in.pick = append(in.pick, float64(len(in.tokens)-1), float64(len(in.tokens)-2))
	}
	got := e.run(t, "prefill", in)
	for row, p := range prompts {
		expect(row, p.length-1, got[2*row])
		expect(row, p.length-2, got[2*row+1])
	}
	for step := range 3 {
		in := extInput{pick: []float64{0, 1}}
		for row, p := range prompts {
			n := p.length + step
			in.add(wholeRow(s, 8, row).tokens[n], n, p.slot)
		}
		for row, logProbs := range e.run(t, "decode", in) {
			expect(row, prompts[row].length+step, logProbs)
		}
	}
}

// extInput is what goes into an Extend program.
type extInput struct{ tokens, positions, slots, pick []float64 }

func (in *extInput) add(token float64, position, slot int) {
	in.tokens = append(in.tokens, token)
	in.positions = append(in.positions, float64(position))
	in.slots = append(in.slots, float64(slot))
}

// extension runs Extend programs on ranks that keep a cache.
type extension struct {
	spec    model.Spec
	members []*member
}

// run returns the log-probabilities of each picked token.
func (e extension) run(t *testing.T, name string, in extInput) [][]float64 {
	t.Helper()
	l := e.members[0].layout
	w := model.Window{N: len(in.tokens), M: len(in.pick), Slots: 3, T: 8}
	for _, m := range e.members {
		p, err := model.Extend(name, e.spec, l, m.At.Pipe, w)
		must(t, err)
		m.accumulate = p
		for _, v := range p.Held(program.State) {
			if m.Mem[v.Name] == nil {
				m.Mem[v.Name] = make([]float64, v.Len())
				for i := range m.Mem[v.Name] {
					m.Mem[v.Name][i] = math.NaN() // what nobody wrote must not be read
				}
			}
		}
		m.Mem["tokens"], m.Mem["positions"], m.Mem["slots"], m.Mem["pick"] = in.tokens, in.positions, in.slots, in.pick
	}
	frames := make([]oracle.Heap, len(e.members))
	index := map[*member]int{}
	for i, m := range e.members {
		frames[i], index[m] = oracle.Heap{}, i
	}
	together(e.members, func(m *member) { m.Run(m.accumulate, program.Whole, frames[index[m]]) })

	out := make([][]float64, w.M)
	for i, m := range e.members { // ranks in order, so pieces of the vocabulary too
		if m.At.Pipe < l.Mesh.Size(program.Pipe)-1 {
			continue
		}
		y := m.accumulate.Outputs[0]
		if want := e.spec.V / l.Mesh.Size(program.Tensor); y.Dim(0) != w.M || y.Dim(1) != want {
			t.Fatalf("logits %v, want [%d %d]", y.Shape, w.M, want)
		}
		for n := range out {
			out[n] = append(out[n], frames[i].At(y)[n*y.Dim(1):][:y.Dim(1)]...)
		}
	}
	for n := range out {
		logSoftmax(out[n])
	}
	return out
}

func logSoftmax(z []float64) {
	sum := 0.0
	for _, x := range z {
		sum += math.Exp(x)
	}
	for i := range z {
		z[i] -= math.Log(sum)
	}
}
