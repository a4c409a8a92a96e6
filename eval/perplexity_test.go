// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pleach/engine/cpu"
	"pleach/half"
	"pleach/infer"
	"pleach/internal/fault"
	"pleach/internal/golden"
	"pleach/model"
	"pleach/program"
	"pleach/weights"

	"pgregory.net/rapid"
)

// newScorer is the model of a golden directory for batches of one shape.
func newScorer(t testing.TB, dir string, batch model.Batch) *infer.Scorer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	e := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { e.Close() })
	s, err := infer.NewScorer(e, c.Spec, program.Layout{Compute: half.F32, Sum: half.F32}, batch, 0)
	if err != nil {
		t.Fatal(err)
	}
	set, err := weights.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	err = c.Transfer(func(w model.Tensor, lo int, dst []float32) error {
		return set.ReadFinite(w.Name, lo, lo+len(dst), dst)
	}, func(name string, lo int, x []float32) error {
		return e.Write(program.Place{}, name, lo, program.ArrayOf(x))
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// of makes documents of ids.
func of(ids ...[]int32) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		for _, d := range ids {
			if !yield(Document{IDs: d, Bytes: 3 * len(d)}, nil) {
				return
			}
		}
	}
}

// TestPerplexityGolden compares with transformers in the windows of
// lm-evaluation-harness, document by document and together, in batches of
// several shapes, whose bits must be the same.
func TestPerplexityGolden(t *testing.T) {
	want := golden.ReadJSON[golden.Perplexity](t, golden.Dir("perplexity.json"))
	var first Result
	for i, batch := range []model.Batch{{B: 1, T: 32}, {B: 4, T: 32}, {B: 3, T: 50}} {
		s := newScorer(t, golden.Dir(want.Model), batch)
		for d, ids := range want.Documents {
			r, err := Perplexity(s, want.Sequence, want.BOS, of(ids))
			if err != nil {
				t.Fatal(err)
			}
			if err := golden.Near(r.NLL, want.NLL[d], golden.Tol{Abs: 1e-4 * float64(len(ids))}); err != nil {
				t.Errorf("document %d: %v", d, err)
			}
		}
		r, err := Perplexity(s, want.Sequence, want.BOS, of(want.Documents...))
		if err != nil {
			t.Fatal(err)
		}
		if r.Tokens != int64(want.Tokens) || r.Documents != int64(len(want.Documents)) || r.Bytes != 3*r.Tokens {
			t.Errorf("got %+v, want %d tokens of %d documents", r, want.Tokens, len(want.Documents))
		}
		if err := golden.Near(r.Perplexity(), want.Perplexity, golden.Tol{Rel: 1e-5}); err != nil {
			t.Errorf("perplexity: %v", err)
		}
		if i == 0 {
			first = r
		}
		if r != first {
			t.Errorf("batch %v: got %+v, want %+v, which another batch gave", batch, r, first)
		}
	}
}

// TestWindowsGolden compares the windows alone.
func TestWindowsGolden(t *testing.T) {
	want := golden.ReadJSON[golden.Perplexity](t, golden.Dir("perplexity.json"))
	for d, ids := range want.Documents {
		var got [][2]int
		for w := range Windows(ids, want.Sequence, want.BOS) {
			scored := 0
			for _, l := range w.Labels {
				if l >= 0 {
					scored++
				}
			}
			got = append(got, [2]int{len(w.IDs), scored})
		}
		if !slices.Equal(got, want.Windows[d]) {
			t.Errorf("document %d: got %v, want %v", d, got, want.Windows[d])
		}
	}
}

// TestWindows checks what windows are for documents and lengths drawn at random:
// every id is a label once, in order, after as many ids before it as the window
// has.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, T := rapid.IntRange(1, 100).Draw(t, "n"), rapid.IntRange(1, 20).Draw(t, "T")
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(i) + 1
		}
		next := int32(1)
		for w := range Windows(ids, T, 0) {
			if len(w.IDs) != len(w.Labels) || len(w.IDs) != min(T, n) {
				t.Fatalf("a window of %d ids with %d labels, want %d", len(w.IDs), len(w.Labels), min(T, n))
			}
			for i, id := range w.IDs {
				if i > 0 && id != w.IDs[i-1]+1 {
					t.Fatalf("window %v: got a gap", w.IDs)
				}
				if l := w.Labels[i]; l >= 0 {
					if l != next || l != id+1 {
						t.Fatalf("window %v: got label %d, want %d", w, l, next)
					}
					next++
				}
			}
		}
		if int(next) != n+1 {
			t.Fatalf("got %d labels, want %d", next-1, n)
		}
	})
}

func TestRatios(t *testing.T) {
	r := Result{NLL: 10 * math.Ln2, Tokens: 5, Bytes: 20}
	if err := golden.Near(r.Perplexity(), 4, golden.Tol{Rel: 1e-15}); err != nil {
		t.Errorf("perplexity: %v", err)
	}
	if err := golden.Near(r.BitsPerByte(), 0.5, golden.Tol{Rel: 1e-15}); err != nil {
		t.Errorf("bits per byte: %v", err)
	}
	r.Bytes = 0
	if got := r.BitsPerByte(); got != 0 {
		t.Errorf("bits per byte of ids: got %v, want 0", got)
	}
}

func TestPerplexityRefuses(t *testing.T) {
	s := newScorer(t, golden.Dir("score/mha"), model.Batch{B: 1, T: 16})
	broken := fault.Dataf("data: held.txt: broken")
	bad := func(yield func(Document, error) bool) {
		_ = yield(Document{IDs: []int32{1, 2}}, nil) && yield(Document{}, broken)
	}
	for _, tt := range []struct {
		name string
		T    int
		docs iter.Seq2[Document, error]
		want string
	}{
		{"none", 16, of(), "eval: perplexity: the text has no tokens"},
		{"empty", 16, of(nil, nil), "eval: perplexity: the text has no tokens"},
		{"broken", 16, bad, "data: held.txt: broken"},
		{"beyond", 16, of([]int32{1, 2}, []int32{5, 97}), "eval: perplexity: document 1: id 97 at 1: the vocabulary has 97"},
		{"negative", 16, of([]int32{-3}), "eval: perplexity: document 0: id -3 at 0: the vocabulary has 97"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Perplexity(s, tt.T, 1, tt.docs)
			if err == nil || err.Error() != tt.want || !errors.Is(err, fault.Data) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if _, err := Perplexity(s, 0, 1, of([]int32{1})); !errors.Is(err, fault.Config) {
		t.Errorf("windows of no id: got %v, want an error of kind configuration", err)
	}
	if _, err := Perplexity(s, 16, -1, of([]int32{1})); !errors.Is(err, fault.Data) {
		t.Errorf("no first id: got %v, want an error of kind data", err)
	}
}

// Example shows that a document is scored in windows, its first id too.
func ExampleWindows() {
	for w := range Windows([]int32{11, 12, 13, 14, 15}, 3, 1) {
		fmt.Println(w.IDs, w.Labels)
	}
	// Output:
	// [1 11 12] [11 12 13]
	// [12 13 14] [-1 14 15]
}
