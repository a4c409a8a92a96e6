// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"pleach/internal/fault"
	"pleach/internal/golden"
	"pleach/program"
)

func TestGenerateGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(golden.Dir("generate"), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			want := golden.ReadJSON[golden.Generation](t, f)
			g := newGenerator(t, golden.Dir(want.Model), 48)
			for i, p := range want.Prompts {
				var each []int32
				got, err := g.Generate(t.Context(), p.IDs, len(p.Want), Sampling{}, nil, func(id int32) bool {
					each = append(each, id)
					return true
				})
				if err != nil || !slices.Equal(got, p.Want) {
					t.Errorf("prompt %d: got %v, %v, want %v", i, got, err, p.Want)
				}
				if !slices.Equal(each, got) {
					t.Errorf("prompt %d: called with %v, returned %v", i, each, got)
				}
			}
		})
	}
}

// long is a prompt that takes pieces of every size.
func long(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((7*i*i + 3*i + 5) % 97)
	}
	return ids
}

// TestPrefill reads a prompt in pieces and one id after the other: the logits
// have the same bits, so what is generated is the same, in f32 and in bf16.
func TestPrefill(t *testing.T) {
	for _, l := range []program.Layout{single, halved} {
		g := newGeneratorIn(t, l, golden.Dir("score/mha"), 600)
		if len(g.steps) != len(pieces) {
			t.Fatalf("got programs for %d sizes of pieces, want %d", len(g.steps), len(pieces))
		}
		for _, n := range []int{1, 7, 8, 9, 63, 64, 73, 90, 521} {
			prompt := long(n)
			logits, err := g.append(t.Context(), prompt, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Clone(logits)
			all := g.steps
			g.steps = all[len(all)-1:]
			logits, err = g.append(t.Context(), prompt, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(logits, want) {
				t.Errorf("%v, %d ids: one by one: other logits than in pieces", l.Compute, n)
			}
			g.steps = all
		}
	}
}

// TestCached compares decoding with the score program, which has no cache.
func TestCached(t *testing.T) {
	for l, tol := range map[program.Layout]float64{single: 1e-4, halved: 0.15} {
		dir, worst := golden.Dir("score/gqa-llama3-tied"), 0.0
		g := newGeneratorIn(t, l, dir, 48)
		ids := rowsOf(t, dir)[6]
		want := golden.ReadLines[golden.Score](t, filepath.Join(dir, "want.jsonl"))[6]
		for n := 1; n < len(ids); n += 5 {
			logits, err := g.append(t.Context(), ids[:n], 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			got := math.Log(softmax(logits, 1)[ids[n]])
			worst = max(worst, math.Abs(got-want.LogProbs[n-1]))
			if err := golden.Near(got, want.LogProbs[n-1], golden.Tol{Abs: tol}); err != nil {
				t.Errorf("%v, after %d ids: %v", l.Compute, n, err)
			}
		}
		t.Logf("%v: log-probabilities are off by %.2g at most", l.Compute, worst)
	}
}

// TestGenerateEnds goes through the ways in which a sequence ends.
func TestGenerateEnds(t *testing.T) {
	g := newGenerator(t, golden.Dir("score/mha"), 24)
	prompt := long(10)
	free, err := g.Generate(t.Context(), prompt, 14, Sampling{}, nil, nil)
	if err != nil || len(free) != 14 {
		t.Fatalf("got %v, %v, want 14 ids", free, err)
	}
	run := func(n int, stop []int32, each func(int32) bool) []int32 {
		t.Helper()
		got, err := g.Generate(t.Context(), prompt, n, Sampling{}, stop, each)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := run(0, nil, nil); len(got) != 0 {
		t.Errorf("n = 0: got %v", got)
	}
	if got := run(3, nil, nil); !slices.Equal(got, free[:3]) {
		t.Errorf("n = 3: got %v, want %v", got, free[:3])
	}
	at := 1 + slices.Index(free, free[4])
	if got := run(14, []int32{-1, free[4]}, nil); !slices.Equal(got, free[:at]) {
		t.Errorf("stop at %d: got %v, want %v", free[4], got, free[:at])
	}
	calls := 0
	if got := run(14, nil, func(int32) bool { calls++; return calls < 2 }); len(got) != 2 {
		t.Errorf("each ends it: got %v, want two ids", got)
	}
	// The id at position T is returned, but nothing can follow it.
	if got := run(1000, nil, nil); len(got) != 15 {
		t.Errorf("a full sequence: got %d ids, want 15", len(got))
	}
	if got, err := g.Generate(t.Context(), long(24), 9, Sampling{}, nil, nil); err != nil || len(got) != 1 {
		t.Errorf("a prompt that fills the sequence: got %v, %v, want one id", got, err)
	}
}

func TestGenerateCancel(t *testing.T) {
	g := newGenerator(t, golden.Dir("score/mha"), 24)
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	got, err := g.Generate(ctx, long(4), 20, Sampling{}, nil, func(int32) bool {
		if calls++; calls == 3 {
			cancel()
		}
		return true
	})
	if err != nil || len(got) != 3 {
		t.Errorf("cancelled after 3 ids: got %v, %v", got, err)
	}
	if got, err := g.Generate(ctx, long(4), 20, Sampling{}, nil, nil); err != nil || len(got) != 0 {
		t.Errorf("cancelled before: got %v, %v, want nothing", got, err)
	}
}

func TestGenerateRefuses(t *testing.T) {
	g := newGenerator(t, golden.Dir("score/mha"), 8)
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		prompt []int32
		how    Sampling
		want   string
		kind   error
	}{
		{"empty", nil, Sampling{}, "infer: generating: a prompt of 0 ids, want 1 to 8", fault.Data},
		{"long", long(9), Sampling{}, "infer: generating: a prompt of 9 ids, want 1 to 8", fault.Data},
		{"negative", []int32{1, -2}, Sampling{}, "infer: generating: id -2 at 1 of the prompt: the vocabulary has 97", fault.Data},
		{"beyond", []int32{97}, Sampling{}, "infer: generating: id 97 at 0 of the prompt: the vocabulary has 97", fault.Data},
		{"cold", []int32{1}, Sampling{Temperature: -1}, "infer: temperature: got -1, want 0 or more", fault.Config},
		{"nan", []int32{1}, Sampling{Temperature: nan}, "infer: temperature: got NaN, want 0 or more", fault.Config},
		{"top-p", []int32{1}, Sampling{TopP: 1.5}, "infer: top-p: got 1.5, want 0 to 1", fault.Config},
		{"top-p nan", []int32{1}, Sampling{TopP: nan}, "infer: top-p: got NaN, want 0 to 1", fault.Config},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := g.Generate(t.Context(), tt.prompt, 4, tt.how, nil, nil)
			if err == nil || err.Error() != tt.want || !errors.Is(err, tt.kind) || got != nil {
				t.Errorf("got %v, %v, want %s", got, err, tt.want)
			}
		})
	}
	s := spec(t, golden.Dir("score/mha"), "config.json")
	for _, T := range []int{0, -1, s.MaxT + 1} {
		want := fmt.Sprintf("infer: generating: sequences of %d ids, want 1 to %d, the model's positions", T, s.MaxT)
		if _, err := Programs(s, single, T, 1); err == nil || err.Error() != want {
			t.Errorf("T = %d: got %v, want %s", T, err, want)
		}
	}
}

// TestOverflow makes a model whose logits are infinite though its weights are
// not: an id of it would mean nothing.
func TestOverflow(t *testing.T) {
	e, s := newCPU(t), spec(t, golden.Dir("score/mha"), "config.json")
	g, err := NewGenerator(e, s, single, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	load[float32](t, e, s, golden.Dir("score/mha"))
	huge := []float32{math.MaxFloat32, math.MaxFloat32}
	if err := e.Write(program.Place{}, "norm", 0, program.ArrayOf(huge)); err != nil {
		t.Fatal(err)
	}
	_, err = g.Generate(t.Context(), []int32{1, 2}, 4, Sampling{}, nil, nil)
	if !errors.Is(err, fault.Data) {
		t.Errorf("got %v, want an error of kind data", err)
	}
}
