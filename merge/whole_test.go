// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pleach/half"
	"pleach/kernel"
	"pleach/weights"
)

// fill gives the floats of a tiny model that was written random values; integers are
// those of every other model.
func fill(t testing.TB, dir string, seed uint64) {
	t.Helper()
	s, err := weights.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	file := filepath.Join(dir, "model.safetensors")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for _, x := range s.Tensors() {
		at := b[x.Offset:][:x.Size]
		if !x.DType.IsFloat() {
			for i := range at {
				at[i] = byte(i)
			}
			continue
		}
		v := make([]float32, x.Len())
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		if err := half.FromF32(at, x.DType, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// realPlan plans with the methods and vocabularies of the program.
func (w *world) realPlan(t testing.TB, text string) (*Plan, error) {
	t.Helper()
	c, err := ParseConfig("c.yml", []byte(text))
	if err != nil {
		return nil, err
	}
	p, err := NewPlan(c, w.options)
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

// merged runs a plan into memory.
func merged(t testing.TB, p *Plan) *Memory {
	t.Helper()
	m := NewMemory(p)
	if err := p.Run(t.Context(), m, Limits{Memory: 1 << 30, Threads: 2, Level: kernel.Best()}, nil); err != nil {
		t.Fatal(err)
	}
	return m
}

// bpe is a tokenizer.json of these tokens.
func bpe(tokens ...string) string {
	var b strings.Builder
	for i, s := range tokens {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`"` + s + `": ` + string(rune('0'+i)))
	}
	return `{"model": {"type": "BPE", "vocab": {` + b.String() + `}, "merges": []}}`
}

// TestTokenizerOfAnother merges with the tokenizer of a model that is not merged.
func TestTokenizerOfAnother(t *testing.T) {
	w := newWorld(t, map[string]*tiny{"a": tinyLlama(1), "b": tinyLlama(1), "other": tinyLlama(1)})
	for i, name := range []string{"a", "b", "other"} {
		dir := filepath.Join(w.dir, name)
		fill(t, dir, uint64(i))
		tokens := []string{"a", "b", "c", "d", "e", "f"}
		if name == "other" {
			tokens = []string{"f", "e", "d"}
		}
		if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(bpe(tokens...)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p, err := w.realPlan(t, "merge_method: linear\nparameters: {weight: 1}\nmodels: [{model: a}]\ntokenizer_source: other\n")
	if err != nil {
		t.Fatal(err)
	}
	m := merged(t, p)
	got, want := make([]float32, 12), make([]float32, 24)
	if err := m.ReadFinite("model.embed_tokens.weight", 0, 12, got); err != nil {
		t.Fatal(err)
	}
	if err := p.Models[0].Read("model.embed_tokens.weight", 0, 24, want); err != nil {
		t.Fatal(err)
	}
	if want := slices.Concat(want[20:], want[16:20], want[12:16]); !slices.Equal(got, want) {
		t.Errorf("rows of f, e, d: got %v, want %v", got, want)
	}
}

// TestMethodWarns: what a method has to tell about many tensors is told once. Random
// models point away from each other as seen from zero in about every second tensor.
func TestMethodWarns(t *testing.T) {
	w := newWorld(t, map[string]*tiny{"zero": tinyLlama(1), "b": tinyLlama(1), "c": tinyLlama(1)})
	for i, name := range []string{"b", "c"} {
		fill(t, filepath.Join(w.dir, name), uint64(i))
	}
	p, err := w.realPlan(t, "merge_method: model_stock\nbase_model: zero\nmodels: [{model: b}, {model: c}]\n")
	if err != nil {
		t.Fatal(err)
	}
	merged(t, p)
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "want 0 to 1") ||
		!strings.Contains(p.Warnings[0], "more)") {
		t.Errorf("got warnings %q", p.Warnings)
	}
}
