// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"pleach/half"
	"pleach/kernel"
	"pleach/merge/method"
)

// randomWorld is models that differ in whatever they can: types, rows of embeddings,
// tensors that they lack, tokenizers.
func randomWorld(t testing.TB) *world {
	llama := tinyLlama(2)
	more := llama.change(map[string]any{"vocab_size": 8}, map[string][]int{
		"model.embed_tokens.weight": {8, 4}, "lm_head.weight": {8, 4},
	})
	tied := llama.change(map[string]any{"tie_word_embeddings": true}, map[string][]int{"lm_head.weight": nil})
	short := tinyLlama(1)
	odd := &tiny{Config: map[string]any{"architectures": []string{"Odd"}, "vocab_size": 6}, Tensors: map[string][]int{
		"embed_tokens.weight": {6, 4}, "none": {0, 4}, "nothing": {4, 0}, "one": {}, "cube": {2, 3, 4}, "ids": {5},
		"h.0.w": {3}, "h.1.w": {3}, "h.1.extra": {2, 2},
	}, types: map[string]half.DType{"ids": half.I64, "cube": half.F64, "embed_tokens.weight": half.F16}}
	other := odd.change(nil, map[string][]int{"h.1.extra": nil, "embed_tokens.weight": {7, 5}})
	other.types = map[string]half.DType{"ids": half.I64, "one": half.BF16}
	models := map[string]*tiny{
		"a": llama, "b": llama.change(nil, nil), "more": more, "tied": tied, "short": short, "odd": odd, "other": other,
	}
	models["b"].types = map[string]half.DType{}
	for name := range llama.Tensors {
		models["b"].types[name] = half.BF16
		if len(name)%2 == 0 {
			models["b"].types[name] = half.F16
		}
	}
	w := newWorld(t, models)
	tokens := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for i, name := range []string{"a", "b", "more", "tied", "short", "odd", "other"} {
		dir := filepath.Join(w.dir, name)
		fill(t, dir, uint64(i))
		n := 6
		if name == "more" {
			n = 8
		}
		text := bpe(append(tokens[i%3:], "x", "y")[:n]...)
		if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// randomText is a configuration that is more or less sound.
func randomText(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	number := func() string {
		return pick("0", "1", "0.5", "-0.3", "1e-3", "[0, 1]", "[0.2, 0.9, 0.4]", "[{filter: mlp, value: 0.5}, {value: 0.25}]")
	}
	m := method.Methods()[r.IntN(len(method.Methods()))]
	params := func(list []method.Parameter) string {
		s := "{"
		for _, p := range list {
			v := number()
			switch {
			case p.Name == "density" || p.Name == "select_topk":
				v = pick("0.5", "1", "0.9", "0.3")
			case p.Name == "epsilon" || p.Name == "gamma" || p.Name == "max_iter" || p.Name == "tol":
				v = pick("0.1", "0.05", "3")
			}
			if p.Required || r.IntN(3) == 0 {
				s += p.Name + ": " + v + ", "
			}
		}
		return s + "}"
	}
	models := [][]string{{"a", "b", "more", "tied"}, {"odd", "other"}, {"short", "a"}}[r.IntN(9)*r.IntN(9)%3]
	text := "merge_method: " + m.Name + "\n"
	if r.IntN(5) > 0 {
		text += "base_model: " + pick(models...) + "\n"
	}
	text += "parameters: " + params(append(m.Global, m.PerModel...)) + "\n"
	source := func() string { return "model: " + pick(models...) + ", parameters: " + params(m.PerModel) }
	if r.IntN(3) == 0 {
		text += "slices:\n"
		for range 1 + r.IntN(3) {
			text += "- sources:\n"
			from := r.IntN(2)
			for range 1 + r.IntN(3) {
				text += fmt.Sprintf("  - {%s, layer_range: [%d, %d]}\n", source(), from, from+1)
			}
		}
	} else {
		text += "models:\n"
		for range 1 + r.IntN(3) {
			text += "- {" + source() + "}\n"
		}
	}
	if r.IntN(3) == 0 {
		text += "dtype: " + pick("float16", "bfloat16", "float32") + "\n"
	}
	if r.IntN(4) == 0 {
		text += "out_dtype: " + pick("float16", "bfloat16", "float32") + "\n"
	}
	if r.IntN(3) == 0 {
		text += "tokenizer: {source: " + pick("union", "base", "a", "more") + ", pad_to_multiple_of: " + pick("1", "4") +
			", tokens: {" + pick("", "q: {source: {kind: zero}}", "a: {source: b, force: true}", "h: {}") + "}}\n"
	}
	return text
}

// TestRandom makes random merges with blocks and memory of two sizes, and in the
// other mode. A plan that is made can be run, unless a method refuses the elements.
func TestRandom(t *testing.T) {
	w := randomWorld(t)
	r := rand.New(rand.NewPCG(7, 7))
	const n = 500
	made, ran, whole := 0, 0, 0
	for range n {
		text := randomText(r)
		w.options.Skips = r.IntN(2) == 0
		w.options.Crimes = r.IntN(4) == 0
		w.options.Compat = false
		p, err := w.realPlan(t, text)
		if err != nil {
			continue
		}
		made++
		a, err := runs(t, p, 1<<30, 3)
		if err == nil {
			ran++
			b, err := runs(t, p, 0, 1)
			if err != nil {
				t.Fatalf("%s\nwith little memory: %v", text, err)
			}
			for i := range a.bytes {
				if !bytes.Equal(a.bytes[i], b.bytes[i]) {
					t.Errorf("%s\ntensor %s: got other bytes with little memory", text, p.Tensors[i].Name)
				}
			}
			if err := p.Tie(t.Context(), Limits{Memory: 1 << 30, Threads: 2, Level: kernel.Best()}); err != nil {
				t.Errorf("%s\n%v", text, err)
			}
			from, err := p.Provenance("")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Files(FileOptions{Tokenizer: true, Card: &from}); err != nil {
				t.Errorf("%s\n%v", text, err)
			}
		}
		p.Close()
		w.options.Compat = true
		if p, err = w.realPlan(t, text); err != nil {
			continue
		}
		if _, err := runs(t, p, 1<<30, 2); err == nil {
			whole++
		}
		p.Close()
	}
	if made < n/10 || ran < made*9/10 || whole < ran/2 {
		t.Errorf("of %d configurations %d are plans, %d are merged, %d in the other mode", n, made, ran, whole)
	}
}

// runs merges into memory. Without memory it reads small blocks and holds nothing.
func runs(t testing.TB, p *Plan, memory int64, threads int) (*Memory, error) {
	m := NewMemory(p)
	if memory > 0 {
		return m, p.Run(t.Context(), m, Limits{Memory: memory, Threads: threads, Level: kernel.Best()}, nil)
	}
	lim := Limits{Memory: Base + 64<<20, Threads: threads, Level: kernel.Portable}
	r := &runner{plan: p, sink: m, level: lim.Level, warns: map[int][]string{}}
	if err := r.measure(lim); err != nil {
		return nil, err
	}
	r.block, r.arena = 1, newArena(0)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	r.ctx, r.stop = ctx, stop
	return m, r.run(threads)
}
