// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// tokensOf counts the ids of each source in rows, without those that overlap.
func tokensOf(rows []Row, sources int) []int {
	n := make([]int, sources)
	for _, r := range rows {
		for _, s := range r.Docs {
			n[s.Source] += s.To - s.From
		}
	}
	return n
}

// TestStages: a mixture holds from its row on, for the tokens since then, and
// not to make up for those before; a source may begin or end with a stage.
func TestStages(t *testing.T) {
	p := specOf(corpus(t))
	p.Sources[0].Weight, p.Sources[1].Weight = 1, 0
	p.Stages = []Stage{{1000, []float64{1, 3}}, {2000, []float64{9, 1}}, {3000, []float64{0, 1}}}
	rows := next(t, open(t, p), 4000)
	// A document begun before a stage ends in it: rows at the border do not count.
	for i, share := range []float64{1, 0.25, 0.9, 0} {
		n := tokensOf(rows[i*1000+40:(i+1)*1000], 2)
		got := float64(n[0]) / float64(n[0]+n[1])
		if math.Abs(got-share) > 0.01 {
			t.Errorf("stage %d: got %.3f of the first source, want %.3f", i, got, share)
		}
	}
}

// TestStagesResume: a run that is stopped before, at and after the start of a
// stage goes on as if it had not been, with other numbers of ranks too.
func TestStagesResume(t *testing.T) {
	p := specOf(corpus(t))
	p.Stages = []Stage{{101, []float64{1, 3}}, {203, []float64{0, 1}}, {306, []float64{5, 1}}}
	p.Sources[0].Epochs = 1.5
	for _, whole := range []bool{false, true} {
		p.Whole = whole
		want := next(t, open(t, p), 420)
		l, again := open(t, p), open(t, p)
		for k := range 400 {
			if err := again.Restore(throughJSON(t, l.State())); err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("whole %v, resumed after row %d", whole, k), next(t, again, 20), want[k:k+20])
			next(t, l, 1)
		}
	}
}

// TestResumeAfterAnEnd: which sources are exhausted is part of where a run is:
// the mixture of the others goes by it.
func TestResumeAfterAnEnd(t *testing.T) {
	for seed := range uint64(8) {
		var sources []Source
		for i, longest := range []int{2, 50, 40, 3000} { // a long one makes all others due
			docs := lettered(seed*4+uint64(i), []int{6, 40, 40, 40}[i], longest)
			dir := write(t, map[string]string{"a.jsonl": jsonl(docs)})
			sources = append(sources, Source{Paths: []string{dir}, Name: fmt.Sprint(i), Weight: []float64{1, 40, 20, 20}[i]})
		}
		sources[0].Epochs = 1
		p := specOf(sources)
		p.Lanes, p.Seed = 2, seed
		want := next(t, open(t, p), 900)
		l, again := open(t, p), open(t, p)
		for k := 0; k < 880; k += 4 {
			if err := again.Restore(throughJSON(t, l.State())); err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("seed %d, resumed after row %d", seed, k), next(t, again, 20), want[k:k+20])
			next(t, l, 4)
		}
	}
}

func TestStagesRefused(t *testing.T) {
	for want, stages := range map[string][]Stage{
		"want more than the 0":      {{0, []float64{1, 1}}},
		"want more than the 70":     {{70, []float64{1, 1}}, {70, []float64{2, 1}}},
		"one for each of 2":         {{70, []float64{1}}},
		"a sum of 0":                {{70, []float64{0, 0}}},
		"numbers ≥ 0":               {{70, []float64{1, -1}}},
		"got NaN, want numbers":     {{70, []float64{1, math.NaN()}}},
		"row 70 on: got a sum of +": {{70, []float64{math.MaxFloat64, math.MaxFloat64}}},
	} {
		p := specOf(corpus(t))
		p.Stages = stages
		if _, err := Open(p, byteEncoder{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", stages, err, want)
		}
	}
}

// TestOtherStages: a state is of the stages it was made with.
func TestOtherStages(t *testing.T) {
	p := specOf(corpus(t))
	s := open(t, p).State()
	p.Stages = []Stage{{70, []float64{1, 3}}}
	staged := open(t, p)
	for l, s := range map[*Loader]State{staged: s, open(t, specOf(p.Sources)): staged.State()} {
		if err := l.Restore(s); err == nil || !strings.Contains(err.Error(), "stages was") {
			t.Errorf("got %v, want a refusal that names the stages", err)
		}
	}
	bad := staged.State()
	bad.Lanes[0].Stage = 2
	if err := staged.Restore(bad); err == nil || !strings.Contains(err.Error(), "in stage 2") {
		t.Errorf("got %v, want a refusal of stage 2", err)
	}
}
