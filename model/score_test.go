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

// TestScore: the losses of single tokens add up to the tally of Accumulate, and
// Score does not know the tally.
func TestScore(t *testing.T) {
	batch := model.Batch{B: 2, T: 8}
	score, err := model.Score(full, program.Layout{}, 0, batch, 0)
	must(t, err)
	if score.Named("tally") != nil {
		t.Error("Score declares a tally")
	}
	if n := len(score.Held(program.State)); n != 0 {
		t.Errorf("Score holds %d states, want none", n)
	}
	m := single(t, full, batch)
	m.feed(0)
	f := oracle.Heap{}
	m.Run(score, program.Whole, f)
	plan := program.MakePlan(score, 1)
	a := oracle.NewArena(plan).Slot(0)
	m.Run(score, program.Whole, a)
	near(t, "losses in planned memory", a.At(score.Outputs[0]), f.At(score.Outputs[0]), 0)
	if !slices.ContainsFunc(score.Ops, func(op *program.Op) bool {
		return op.Kind == program.OpRMSNorm && plan.Spots[op.In[0]] == plan.Spots[op.Out[0]]
	}) {
		t.Error("no norm of Score works in place")
	}
	tally := []float64{0, 0}
	for n, x := range f.At(score.Outputs[0]) {
		if m.Mem["labels"][n] < 0 {
			if x != 0 {
				t.Errorf("masked token %d has loss %g", n, x)
			}
			continue
		}
		tally[0] += x
		tally[1]++
	}
	m.Run(m.accumulate, program.Whole, oracle.Heap{})
	near(t, "tally", m.Mem["tally"], tally, 0)
}

// TestTops: the most probable words are sorted, their probabilities sum to one
// and that of the label is its loss.
func TestTops(t *testing.T) {
	batch := model.Batch{B: 1, T: 8}
	score, err := model.Score(full, program.Layout{}, 0, batch, full.V)
	must(t, err)
	m := single(t, full, batch)
	m.feed(0)
	f := oracle.Heap{}
	m.Run(score, program.Whole, f)
	loss, top := f.At(score.Outputs[0]), f.At(score.Outputs[1])
	for n, label := range m.Mem["labels"] {
		words := top[2*full.V*n:][:2*full.V]
		for i := 2; i < len(words); i += 2 {
			if words[i+1] > words[i-1] {
				t.Errorf("token %d: word %d is more probable than the one before", n, i/2)
			}
		}
		if label >= 0 {
			near(t, "log-probability of the label", []float64{-logProb(words, label)}, loss[n:][:1], 1e-13)
		}
	}
}

// logProb is the log-probability of a word in a list of pairs.
func logProb(pairs []float64, word float64) float64 {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == word {
			return pairs[i+1]
		}
	}
	panic(fmt.Sprintf("no word %g", word))
}

// TestMasked: a micro-batch without a label adds nothing to the sums, not even
// a bit, whatever they were.
func TestMasked(t *testing.T) {
	m := single(t, full, model.Batch{B: 1, T: 8})
	m.feed(0)
	m.Run(m.accumulate, program.Whole, oracle.Heap{})
	before := copyOf(m.Mem)
	m.feed(1)
	for n := range m.Mem["labels"] {
		m.Mem["labels"][n] = -1
	}
	m.Run(m.accumulate, program.Whole, oracle.Heap{})
	for _, v := range m.accumulate.Held(program.State) {
		near(t, v.Name, m.Mem[v.Name], before[v.Name], 0)
	}
}

// single is one rank, ready to run.
func single(t testing.TB, s model.Spec, batch model.Batch) *member {
	t.Helper()
	return crew(t, job{spec: s, T: batch.T, B: batch.B, rows: batch.B, adam: testAdam})[0]
}

func copyOf(mem map[string][]float64) map[string][]float64 {
	c := map[string][]float64{}
	for name, x := range mem {
		c[name] = append([]float64(nil), x...)
	}
	return c
}
