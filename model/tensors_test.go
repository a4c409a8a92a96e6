// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pleach/model"
	"pleach/program"
)

// llama2 is Llama 2 7B.
var llama2 = model.Spec{
	L: 32, D: 4096, H: 32, G: 32, K: 128, F: 11008, V: 32000, MaxT: 4096, Eps: 1e-5,
	Rope: program.Rope{Theta: 1e4},
}

// TestCount: the number of parameters of models that people know.
func TestCount(t *testing.T) {
	tests := []struct {
		name string
		spec model.Spec
		want int
	}{
		{"Llama 2 7B", llama2, 6_738_415_616},
		{"Llama 2 13B", with(llama2, func(s *model.Spec) { s.L, s.D, s.H, s.G, s.F = 40, 5120, 40, 40, 13824 }), 13_015_864_320},
		{"Llama 2 70B", with(llama2, func(s *model.Spec) { s.L, s.D, s.H, s.G, s.F = 80, 8192, 64, 8, 28672 }), 68_976_648_192},
		{"Llama 3 8B", with(llama2, func(s *model.Spec) { s.G, s.F, s.V = 8, 14336, 128256 }), 8_030_261_248},
		{"Llama 3.2 1B", with(llama2, func(s *model.Spec) {
			s.L, s.D, s.G, s.K, s.F, s.V, s.Tied = 16, 2048, 8, 64, 8192, 128256, true
		}), 1_235_814_400},
	}
	for _, tt := range tests {
		if got := tt.spec.Count(); got != tt.want {
			t.Errorf("%s: %d parameters, want %d", tt.name, got, tt.want)
		}
	}
}

// TestTensors: the tensors of a model file cover every element of every
// parameter exactly once, have names of their own and the shapes of Hugging
// Face.
func TestTensors(t *testing.T) {
	for _, s := range []model.Spec{narrow, full, with(full, func(s *model.Spec) { s.Tied = false })} {
		covered, names, count := map[string][]int{}, map[string]bool{}, 0
		for _, p := range s.Whole() {
			covered[p.Name] = make([]int, p.Len())
		}
		for _, q := range s.Tensors() {
			if names[q.Name] {
				t.Errorf("two tensors are called %s", q.Name)
			}
			names[q.Name] = true
			if want := dims(s, q.Name); !slices.Equal(q.Shape, want) {
				t.Errorf("%s: shape %v, want %v", q.Name, q.Shape, want)
			}
			for i := range q.Len() {
				covered[q.Param][q.Lo+i]++
			}
			count += q.Len()
		}
		if count != s.Count() {
			t.Errorf("tensors of %d elements, parameters of %d", count, s.Count())
		}
		for name, n := range covered {
			if i := slices.IndexFunc(n, func(n int) bool { return n != 1 }); i >= 0 {
				t.Errorf("%s: element %d is in %d tensors", name, i, n[i])
			}
		}
		if names["lm_head.weight"] == s.Tied {
			t.Errorf("tied %v, and the head is among the tensors: %v", s.Tied, names["lm_head.weight"])
		}
	}
}

// dims is the shape that a tensor has in transformers.
func dims(s model.Spec, name string) []int {
	h, g := s.H*s.K, s.G*s.K
	for suffix, shape := range map[string][]int{
		"embed_tokens.weight": {s.V, s.D}, "lm_head.weight": {s.V, s.D}, "norm.weight": {s.D},
		"q_proj.weight": {h, s.D}, "k_proj.weight": {g, s.D}, "v_proj.weight": {g, s.D}, "o_proj.weight": {s.D, h},
		"q_proj.bias": {h}, "k_proj.bias": {g}, "v_proj.bias": {g}, "o_proj.bias": {s.D},
		"gate_proj.weight": {s.F, s.D}, "up_proj.weight": {s.F, s.D}, "down_proj.weight": {s.D, s.F},
		"gate_proj.bias": {s.F}, "up_proj.bias": {s.F}, "down_proj.bias": {s.D},
	} {
		if strings.HasSuffix(name, suffix) {
			return shape
		}
	}
	return nil
}

// TestStages: the stages of a pipeline hold every parameter once, but for a
// tied embedding, which the ends share.
func TestStages(t *testing.T) {
	for _, s := range []model.Spec{narrow, full} {
		for stages := 1; stages <= 4; stages++ {
			homes := map[string]int{}
			for at := range stages {
				for _, p := range s.Params(at, stages, 2) {
					homes[p.Name]++
				}
			}
			for _, p := range s.Whole() {
				want := 1
				if p.Name == "embed" && s.Tied && stages > 1 {
					want = 2
				}
				if homes[p.Name] != want {
					t.Errorf("%d stages: %s has %d homes, want %d", stages, p.Name, homes[p.Name], want)
				}
			}
		}
	}
}

// TestNormGroups: the rows of norm slots: 0 for the embedding, one for each
// layer, one for the head, so that a row lies in one stage.
func TestNormGroups(t *testing.T) {
	for _, s := range []model.Spec{narrow, full} {
		for _, p := range s.Whole() {
			want := s.L + 1
			if p.Name == "embed" {
				want = 0
			} else if l, _, ok := strings.Cut(p.Name, "."); ok {
				n, err := strconv.Atoi(l)
				must(t, err)
				want = n + 1
			}
			if p.Group != want {
				t.Errorf("%s is in group %d, want %d", p.Name, p.Group, want)
			}
		}
	}
}

// TestIgnored: what old and tied model files hold besides.
func TestIgnored(t *testing.T) {
	for name, want := range map[string]bool{
		"lm_head.weight": true,
		"model.layers.0.self_attn.rotary_emb.inv_freq":   true,
		"model.layers.3.self_attn.rotary_emb.inv_freq":   true,
		"model.layers.4.self_attn.rotary_emb.inv_freq":   false, // no such layer
		"model.layers.-1.self_attn.rotary_emb.inv_freq":  false,
		"model.layers.00.self_attn.rotary_emb.inv_freq":  false,
		"model.layers.0.self_attn.rotary_emb.inv_freqs":  false,
		"model.layers.0.self_attn.rotary_emb.inv_freq.x": false,
		"model.layers.0.self_attn.q_proj.weight":         false,
		"model.layers.0.self_attn.q_proj.lora":           false,
	} {
		if got := full.Ignored(name); got != want {
			t.Errorf("Ignored(%q) = %v, want %v", name, got, want)
		}
	}
	if narrow.Ignored("lm_head.weight") {
		t.Error("an untied head is ignored")
	}
}

// TestCheckLayout: what cannot be laid out is refused with the reason.
func TestCheckLayout(t *testing.T) {
	tests := []struct {
		want   string
		change func(s *model.Spec, l *program.Layout, b *model.Batch)
	}{
		{"", func(*model.Spec, *program.Layout, *model.Batch) {}},
		{"tensor degree 3 does not divide 8 heads", func(_ *model.Spec, l *program.Layout, _ *model.Batch) { l.Mesh.Tensor = 3 }},
		{
			"tensor degree 4 and 6 key/value heads: one must divide the other",
			func(s *model.Spec, l *program.Layout, _ *model.Batch) { s.H, s.G, l.Mesh.Tensor = 12, 6, 4 },
		},
		{
			"tensor degree 4 does not divide 6 tokens",
			func(_ *model.Spec, l *program.Layout, b *model.Batch) { l.Mesh.Tensor, l.Sequence, b.T = 4, true, 6 },
		},
		{"5 stages for 4 layers", func(_ *model.Spec, l *program.Layout, _ *model.Batch) { l.Mesh.Pipe = 5 }},
		{"micro-batch of 0 rows", func(_ *model.Spec, _ *program.Layout, b *model.Batch) { b.B = 0 }},
		{"3 chunks for 2 data ranks", func(_ *model.Spec, l *program.Layout, _ *model.Batch) { l.Mesh.Data, l.Chunks = 2, 3 }},
		{"layers: got 0", func(s *model.Spec, _ *program.Layout, _ *model.Batch) { s.L = 0 }},
		{"layers: got 1000000000000", func(s *model.Spec, _ *program.Layout, _ *model.Batch) { s.L = 1e12 }},
		{"8 query heads and 3 key/value heads", func(s *model.Spec, _ *program.Layout, _ *model.Batch) { s.G = 3 }},
		{"head width 3", func(s *model.Spec, _ *program.Layout, _ *model.Batch) { s.K = 3 }},
		{"eps of the norms", func(s *model.Spec, _ *program.Layout, _ *model.Batch) { s.Eps = 0 }},
		{"rope: theta", func(s *model.Spec, _ *program.Layout, _ *model.Batch) { s.Rope.Theta = 0 }},
		{"rope: factor", func(s *model.Spec, _ *program.Layout, _ *model.Batch) { s.Rope.Scaling = program.LinearScaling }},
	}
	for _, tt := range tests {
		s, l, b := narrow, program.Layout{}, model.Batch{B: 1, T: 8}
		tt.change(&s, &l, &b)
		err := s.CheckLayout(l, b)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

// TestBadPrograms: stages and windows that cannot be.
func TestBadPrograms(t *testing.T) {
	one, batch := program.Layout{}, model.Batch{B: 1, T: 8}
	ok := model.Window{N: 2, M: 1, Slots: 1, T: 8}
	extend := func(at int, w model.Window) error {
		_, err := model.Extend("decode", narrow, one, at, w)
		return err
	}
	_, accumulate := model.Accumulate(narrow, one, 1, batch)
	_, score := model.Score(narrow, one, -1, batch, 0)
	_, top := model.Score(narrow, one, 0, batch, narrow.V+1)
	for _, tt := range []struct {
		want string
		err  error
	}{
		{"model: stage 1 of 1", accumulate},
		{"model: stage -1 of 1", score},
		{"head top: 25 of 24 words", top},
		{"model: stage 3 of 1", extend(3, ok)},
		{"model: decode: window of 0 tokens, 1 logits, 1 slots of 8", extend(0, model.Window{M: 1, Slots: 1, T: 8})},
		{"model: decode: window of 2 tokens, -1 logits", extend(0, model.Window{N: 2, M: -1, Slots: 1, T: 8})},
		{"model: decode: window of 2 tokens, 1 logits, 0 slots", extend(0, model.Window{N: 2, M: 1, T: 8})},
		{"model: decode: window of 2 tokens, 1 logits, 1 slots of 0", extend(0, model.Window{N: 2, M: 1, Slots: 1})},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("got %v, want %q", tt.err, tt.want)
		}
	}
	must(t, extend(0, ok))
}

// TestNoOverflow: parameters can be counted, whatever Check lets pass.
func TestNoOverflow(t *testing.T) {
	s := model.Spec{
		L: 10_000, D: 1 << 20, H: 1 << 14, G: 1 << 14, K: 1 << 14, F: 1 << 22, V: 1 << 24, MaxT: 1, Eps: 1e-5,
		Rope: program.Rope{Theta: 1e4},
	}
	if s.Check() == nil {
		t.Error("query heads 2²⁸ wide in all are accepted")
	}
	s.K = 1 << 12
	must(t, s.Check())
	want := float64(s.L)*float64(4*s.H*s.K+3*s.F+2)*float64(s.D) + 2*float64(s.V)*float64(s.D)
	if got := float64(s.Count()); got < 0.999*want || got > 1.001*want {
		t.Errorf("Count() = %g, want %g", got, want)
	}
}
