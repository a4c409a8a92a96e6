// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pleach/engine"
	"pleach/engine/oracle"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/golden"
	"pleach/model"
	"pleach/program"
)

// whole scores rows as documents; the results are copies.
func whole(t testing.TB, s *Scorer, rows ...[]int32) []Scored {
	t.Helper()
	var got []Scored
	segments := func(yield func(Segment) bool) {
		for _, ids := range rows {
			if !yield(Whole(ids)) {
				return
			}
		}
	}
	err := s.Score(segments, func(i int, r Scored) error {
		if i != len(got) {
			return fmt.Errorf("got segment %d, want %d", i, len(got))
		}
		got = append(got, Scored{slices.Clone(r.Loss), slices.Clone(r.Top)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func rowsOf(t testing.TB, dir string) [][]int32 {
	t.Helper()
	var rows [][]int32
	for _, r := range golden.ReadLines[golden.Row](t, filepath.Join(dir, "rows.jsonl")) {
		rows = append(rows, r.Tokens)
	}
	return rows
}

// TestScoreGolden compares with transformers in float64: every log-probability
// and the five best ids after every position.
func TestScoreGolden(t *testing.T) {
	for _, dir := range golden.Cases(t, "score") {
		for _, file := range []string{"config.json", "config4.json"} {
			t.Run(filepath.Base(dir)+"/"+file, func(t *testing.T) {
				t.Parallel()
				rows := rowsOf(t, dir)
				want := golden.ReadLines[golden.Score](t, filepath.Join(dir, "want.jsonl"))
				s := newScorer(t, dir, file, model.Batch{B: 2, T: 64}, 5)
				for i, r := range whole(t, s, rows...) {
					checkScored(t, fmt.Sprint("row ", i), r, want[i])
				}
			})
		}
	}
}

func checkScored(t *testing.T, what string, got Scored, want golden.Score) {
	t.Helper()
	n := len(want.LogProbs)
	logprobs := make([]float64, n)
	for i := range n {
		logprobs[i] = -float64(got.Loss[i])
	}
	if err := golden.NearAll(logprobs, want.LogProbs, golden.Tol{Abs: 1e-4}); err != nil {
		t.Errorf("%s: log-probabilities: %v", what, err)
	}
	if got.Loss[n] != 0 {
		t.Errorf("%s: got a loss of %v after the last id, want none", what, got.Loss[n])
	}
	if len(got.Top) != 10*len(want.Top) {
		t.Fatalf("%s: got %d numbers of top, want %d", what, len(got.Top), 10*len(want.Top))
	}
	for p, top := range want.Top {
		for k, c := range top {
			id, logprob := got.Top[10*p+2*k], got.Top[10*p+2*k+1]
			if int32(id) != c.ID {
				t.Errorf("%s: position %d: choice %d: got id %v, want %d", what, p, k, id, c.ID)
			}
			if err := golden.Near(float64(logprob), c.LogProb, golden.Tol{Abs: 1e-4}); err != nil {
				t.Errorf("%s: position %d: choice %d: %v", what, p, k, err)
			}
		}
	}
}

// TestScoreExact compares the model's programs in the oracle with a reference
// that is wholly in float64.
func TestScoreExact(t *testing.T) {
	for _, dir := range golden.Cases(t, "score") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			s := spec(t, dir, "config.json")
			want := golden.ReadLines[golden.Score](t, filepath.Join(dir, "want.jsonl"))
			rows := rowsOf(t, dir)
			p, err := model.Score(s, program.Layout{Compute: half.F64, Sum: half.F64}, 0,
				model.Batch{B: len(rows), T: 48}, 0)
			if err != nil {
				t.Fatal(err)
			}
			e := oracle.New()
			x, err := e.Compile(p, 1)
			if err != nil {
				t.Fatal(err)
			}
			load[float64](t, e, s, dir)
			c := engine.NewCall(p)
			for i, ids := range rows {
				seg, at := Whole(ids), 48*i
				copy(program.View[int32](c.Input(p, "tokens"))[at:], seg.IDs)
				copy(program.View[int32](c.Input(p, "labels"))[at:], seg.Labels)
				for j := range ids {
					program.View[int32](c.Input(p, "positions"))[at+j] = int32(j)
				}
			}
			if err := x.Run(c).Wait(); err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				got := make([]float64, len(w.Exact))
				for j := range got {
					got[j] = -program.View[float64](c.Out[0])[48*i+j]
				}
				if err := golden.NearAll(got, w.Exact, golden.Tol{Abs: 1e-9}); err != nil {
					t.Errorf("row %d: %v", i, err)
				}
			}
		})
	}
}

// TestPacking scores the same documents in batches of many shapes, and with
// other documents beside them: the bits stay.
func TestPacking(t *testing.T) {
	dir := golden.Dir("score/gqa-llama3-tied")
	rows := rowsOf(t, dir)
	shapes := []model.Batch{{B: 1, T: 48}, {B: 1, T: 64}, {B: 3, T: 49}, {B: 5, T: 57}, {B: 16, T: 64}}
	var want []Scored
	for _, b := range shapes {
		got := whole(t, newScorer(t, dir, "config.json", b, 3), rows...)
		if want == nil {
			want = got
		}
		for i := range got {
			if !slices.Equal(got[i].Loss, want[i].Loss) || !slices.Equal(got[i].Top, want[i].Top) {
				t.Errorf("batch %v: row %d: other bits than in batch %v", b, i, shapes[0])
			}
		}
	}
}

// TestNeighbour changes one document and looks at the others of its row.
func TestNeighbour(t *testing.T) {
	dir := golden.Dir("score/mha")
	s := newScorer(t, dir, "config.json", model.Batch{B: 1, T: 64}, 0)
	a, b := []int32{5, 6, 7, 8, 9, 10, 11}, []int32{20, 21, 22, 23, 24, 25}
	before := whole(t, s, b, a, b)
	for i := range a {
		a[i] = 90 - a[i]
	}
	after := whole(t, s, b, a, b)
	for _, i := range []int{0, 2} {
		if !slices.Equal(before[i].Loss, after[i].Loss) {
			t.Errorf("document %d: got %v, want %v as before", i, after[i].Loss, before[i].Loss)
		}
	}
	if slices.Equal(before[1].Loss, after[1].Loss) {
		t.Error("the changed document: got the same losses")
	}
	if !slices.Equal(after[0].Loss, after[2].Loss) {
		t.Error("equal documents at two places of a row: got other losses")
	}
}

func TestScoreRefuses(t *testing.T) {
	dir := golden.Dir("score/mha")
	s := newScorer(t, dir, "config.json", model.Batch{B: 2, T: 16}, 0)
	for _, tt := range []struct {
		name string
		seg  Segment
		want string
	}{
		{"empty", Segment{}, "infer: scoring segment 1: 0 ids with 0 labels, want 1 to 16 of each"},
		{"long", Whole(make([]int32, 17)), "infer: scoring segment 1: 17 ids with 17 labels, want 1 to 16 of each"},
		{"labels", Segment{[]int32{1, 2}, []int32{2}}, "infer: scoring segment 1: 2 ids with 1 labels, want 1 to 16 of each"},
		{"negative", Whole([]int32{1, -5}), "infer: scoring segment 1: id -5 at 1: the vocabulary has 97"},
		{"beyond", Whole([]int32{97, 1}), "infer: scoring segment 1: id 97 at 0: the vocabulary has 97"},
		{"label", Segment{[]int32{1}, []int32{97}}, "infer: scoring segment 1: label 97 at 0: the vocabulary has 97"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := s.Score(slices.Values([]Segment{Whole([]int32{1, 2}), tt.seg}), func(int, Scored) error { return nil })
			if err == nil || err.Error() != tt.want || !errors.Is(err, fault.Data) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if len(whole(t, s)) != 0 {
		t.Error("no segment: got some result")
	}
}

// TestScoreStops checks that the error of a callback ends the work.
func TestScoreStops(t *testing.T) {
	s := newScorer(t, golden.Dir("score/mha"), "config.json", model.Batch{B: 1, T: 16}, 0)
	enough := errors.New("enough")
	calls := 0
	segments := slices.Repeat([]Segment{Whole(make([]int32, 16))}, 8)
	err := s.Score(slices.Values(segments), func(int, Scored) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("got %v after %d calls, want %v after one", err, calls, enough)
	}
}
