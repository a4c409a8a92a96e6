// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pleach/internal/fault"
	"pleach/internal/golden"
)

// TestGenerateAll: each of many prompts becomes what it becomes alone, in every
// precision, however many slots there are.
func TestGenerateAll(t *testing.T) {
	dir := golden.Dir("score/gqa-llama3-tied")
	var prompts [][]int32
	for _, n := range []int{1, 9, 40, 3, 12, 24, 2, 39, 8} {
		prompts = append(prompts, long(n))
	}
	how, stop := Sampling{Temperature: 1, Seed: 3}, []int32{5, 6, 7}
	for name, l := range layouts {
		var want [][]int32
		for _, slots := range []int{1, 2, 4, 30} {
			e, s := newCPU(t), spec(t, dir, "config.json")
			s.MaxT = max(s.MaxT, 40)
			g, err := NewGenerator(e, s, l, 40, slots)
			if err != nil {
				t.Fatal(err)
			}
			loadIn(t, e, s, l, dir, nil)
			if slots == 1 {
				for _, p := range prompts {
					ids, err := g.Generate(t.Context(), p, 12, how, stop, nil)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, ids)
				}
			}
			i := 0
			err = g.GenerateAll(t.Context(), prompts, 12, how, stop, func(at int, ids []int32) error {
				if at != i || !slices.Equal(ids, want[i]) {
					t.Errorf("%s, %d slots, prompt %d: got %d, %v, want %v", name, slots, i, at, ids, want[i])
				}
				i++
				return nil
			})
			if err != nil || i != len(prompts) {
				t.Errorf("%s, %d slots: got %d of %d, %v", name, slots, i, len(prompts), err)
			}
		}
	}
}

// TestGenerateAllEnds: no ids wanted, no prompts, a callback that fails, a context that
// is done, and prompts and slots that are refused.
func TestGenerateAllEnds(t *testing.T) {
	g := newGenerator(t, golden.Dir("score/mha"), 24)
	prompts := [][]int32{{1}, {2, 3}, {4}}
	count := func(n int) func(int, []int32) error {
		return func(_ int, ids []int32) error {
			if len(ids) != n {
				t.Errorf("got %d ids, want %d", len(ids), n)
			}
			return nil
		}
	}
	for _, p := range [][][]int32{nil, prompts} {
		if err := g.GenerateAll(t.Context(), p, 0, Sampling{}, nil, count(0)); err != nil {
			t.Error(err)
		}
	}
	full := errors.New("full")
	err := g.GenerateAll(t.Context(), prompts, 3, Sampling{}, nil, func(int, []int32) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("a callback that fails: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err = g.GenerateAll(ctx, prompts, 3, Sampling{}, nil, func(int, []int32) error {
		calls++
		cancel()
		return nil
	})
	if err != nil || calls != 1 {
		t.Errorf("cancelled after one: got %v after %d", err, calls)
	}
	err = g.GenerateAll(t.Context(), [][]int32{{1}, {97}}, 3, Sampling{}, nil, count(3))
	want := "prompt 1: infer: generating: id 97 at 0 of the prompt: the vocabulary has 97"
	if !errors.Is(err, fault.Data) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, slots := range []int{0, 5000} {
		want := fmt.Sprintf("infer: generating: %d sequences at a time, want 1 to 4096", slots)
		_, err := Programs(g.spec, single, 8, slots)
		if err == nil || err.Error() != want || !errors.Is(err, fault.Config) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
