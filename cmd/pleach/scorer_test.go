// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pleach/engine/cpu"
	"pleach/infer"
	"pleach/internal/fault"
	"pleach/internal/golden"
	"pleach/model"
)

func newTestScorer(t *testing.T, name string) *scorer {
	t.Helper()
	m, err := openModel(golden.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	s := &scorer{compute: compute{threads: 1}, source: m}
	t.Cleanup(func() { s.close(); m.close() })
	return s
}

// losses scores documents of so many ids; the ids are a function of the place.
func losses(t *testing.T, s *scorer, lengths ...int) [][]float32 {
	t.Helper()
	var got [][]float32
	err := s.Score(func(yield func(infer.Segment) bool) {
		for i, n := range lengths {
			ids := make([]int32, n)
			for j := range ids {
				ids[j] = int32((31*i + j*j + 7*j) % s.Vocabulary())
			}
			if !yield(infer.Whole(ids)) {
				return
			}
		}
	}, func(i int, r infer.Scored) error {
		if i != len(got) {
			return fmt.Errorf("got segment %d, want %d", i, len(got))
		}
		got = append(got, slices.Clone(r.Loss))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestScorerGrows scores rows that become longer after the first ones decided a
// shape: as many programs as doublings, and the bits of one program for all.
func TestScorerGrows(t *testing.T) {
	lengths := slices.Repeat([]int{7, 16, 1, 12}, 60) // 2160 ids, more than are read ahead
	lengths = append(lengths, 17, 3, 40, 64, 2, 9)
	s := newTestScorer(t, "score/mha")
	got := losses(t, s, lengths...)
	if len(s.programs) != 3 || s.shape.T != 64 {
		t.Errorf("got %d programs, the last for rows of %d, want 3 and 64", len(s.programs), s.shape.T)
	}
	one := newTestScorer(t, "score/mha")
	if err := one.grow(model.Batch{B: 3, T: 64}); err != nil {
		t.Fatal(err)
	}
	want := losses(t, one, lengths...)
	if len(got) != len(lengths) || len(one.programs) != 1 {
		t.Fatalf("got %d rows of %d, %d programs", len(got), len(lengths), len(one.programs))
	}
	for i := range got {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("row %d of %d ids: other bits than in rows of 64", i, lengths[i])
		}
	}
	if again := losses(t, s, 5, 5); len(again) != 2 || len(s.programs) != 3 {
		t.Errorf("short rows afterwards: got %d rows, %d programs", len(again), len(s.programs))
	}
}

func TestShapeFor(t *testing.T) {
	for _, tt := range []struct {
		longest, total, before, most int
		want                         model.Batch
	}{
		{3, 3, 0, 4096, model.Batch{B: 1, T: 16}},
		{16, 40, 0, 4096, model.Batch{B: 3, T: 16}},
		{17, 5000, 0, 4096, model.Batch{B: 64, T: 32}},
		{33, 5000, 32, 4096, model.Batch{B: 32, T: 64}},
		{3000, 6000, 16, 4096, model.Batch{B: 1, T: 3008}},
		{4090, 6000, 3008, 4096, model.Batch{B: 1, T: 4096}},
		{5, 5, 0, 6, model.Batch{B: 1, T: 6}},
	} {
		if got := shapeFor(tt.longest, tt.total, tt.before, tt.most); got != tt.want {
			t.Errorf("longest %d of %d, before %d, most %d: got %v, want %v",
				tt.longest, tt.total, tt.before, tt.most, got, tt.want)
		}
	}
}

// TestMemory checks that a model which no machine holds is refused with figures,
// in a moment: nothing of it is allocated.
func TestMemory(t *testing.T) {
	if available() == 0 {
		t.Skip("this system does not say how much memory is free")
	}
	s, err := model.Preset("llama-70b", 0)
	if err != nil {
		t.Fatal(err)
	}
	s.L = 2000
	p, err := model.Score(s, plain(), 0, model.Batch{B: 1, T: 16}, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = fitsMemory("model huge", cpu.Options{Threads: 1}, p)
	if !errors.Is(err, fault.Config) || !strings.HasPrefix(err.Error(), "model huge does not fit into memory: it needs 6.") ||
		!strings.Contains(err.Error(), "TiB (weights 6.") || !strings.HasSuffix(err.Error(), " free") {
		t.Errorf("got %v", err)
	}
	small := newTestScorer(t, "score/mha")
	losses(t, small, 4)
	if err := fitsBeside(small.engine, "model huge", append(small.programs, p)...); !errors.Is(err, fault.Config) {
		t.Errorf("beside a small one: got %v, want an error of kind configuration", err)
	}
	small.where = func(i int) string { return fmt.Sprint("rows.jsonl:", i+1) }
	small.source.config.Spec = s
	err = small.fit([]infer.Segment{infer.Whole([]int32{1}), infer.Whole(make([]int32, 20))})
	if err == nil || !strings.HasPrefix(err.Error(), "rows.jsonl:2: model ") {
		t.Errorf("a row for which there is no room: got %v, want its line", err)
	}
}

// execute runs a verb whose context is done: as after Ctrl-C.
func execute(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	return out.String(), root.ExecuteContext(ctx)
}

func TestInterrupted(t *testing.T) {
	dir := golden.Dir("score/mha")
	held := filepath.Join(t.TempDir(), "held.jsonl")
	if err := os.WriteFile(held, []byte(`{"text":[1,2]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"score", dir, filepath.Join(dir, "rows.jsonl")},
		{"eval", dir, "--perplexity", "a=" + held},
		{"tokenizer", "train", tokenTestdata("corpus.txt"), "--size", "300", "--out", filepath.Join(t.TempDir(), "out")},
		{"tokenizer", "decode", tokenTestdata("llama3.json"), "--jsonl", held},
	} {
		if _, err := execute(t, args...); !errors.Is(err, fault.Machine) || !strings.HasSuffix(err.Error(), "interrupted") {
			t.Errorf("%v: got %v, want interrupted", args, err)
		}
	}
	if _, err := execute(t, "generate", dir, "--ids", "1"); err != nil {
		t.Errorf("generate: got %v, want what there is so far and no error", err)
	}
}

// FuzzRow reads lines of any bytes: each is refused with its place, or its ids
// are ones that the model can take.
func FuzzRow(f *testing.F) {
	for _, s := range []string{
		`{"tokens":[1,2,3]}`, `{"text":"a"}`, `{"tokens":[1e400]}`, `{"tokens":[-1,97]}`, `{"tokens":null,"text":null}`,
		`{"tokens":[1],"tokens":[2]}`, "{\"text\":\"\xff\"}", `[]`, `{"text":"\ud800"}`, `{"tokens":{}}`, ``,
	} {
		f.Add([]byte(s))
	}
	m, err := openModel(golden.Dir("score/mha"))
	if err != nil {
		f.Fatal(err)
	}
	defer m.close()
	r := &rowReader{source: m}
	f.Fuzz(func(t *testing.T, text []byte) {
		ids, err := r.ids(line{text, "rows.jsonl:7"})
		if err != nil {
			if !errors.Is(err, fault.Data) || !strings.HasPrefix(err.Error(), "rows.jsonl:7: ") {
				t.Errorf("got %v, want an error of kind data with the line", err)
			}
			return
		}
		if len(ids) < 1 || len(ids) > m.config.MaxT || m.inVocabulary(ids) != nil {
			t.Errorf("got %v", ids)
		}
	})
}

func FuzzIDs(f *testing.F) {
	for _, s := range []string{"1,2,3", "[1, 2]", "1 2", "", "[", "-1", "1.5", "99999999999", "1,,2", "\"1\"", "null"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids, err := parseIDs(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(ids)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := parseIDs(string(again)); err != nil || !slices.Equal(back, ids) {
			t.Errorf("%q: got %v, and from %s %v, %v", text, ids, again, back, err)
		}
	})
}
