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

// tieHead makes the lm_head of a model that was filled its embedding.
func tieHead(t testing.TB, dir string) {
	t.Helper()
	s, err := weights.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	embed, _ := s.Lookup("model.embed_tokens.weight")
	head, _ := s.Lookup("lm_head.weight")
	file := filepath.Join(dir, "model.safetensors")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[head.Offset:][:head.Size], b[embed.Offset:][:embed.Size])
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestTie: an lm_head that is the embedding is left out where the configuration of
// the output, or its silence, says that it is; another one is written, and the
// configuration says so.
func TestTie(t *testing.T) {
	for _, tt := range []struct {
		class  string
		ties   any // tie_word_embeddings of the donor, nil for none
		equal  bool
		heads  int
		untied bool
	}{
		{"LlamaForCausalLM", nil, true, 1, false},
		{"LlamaForCausalLM", false, true, 1, false},
		{"LlamaForCausalLM", true, true, 0, false},
		{"LlamaForCausalLM", true, false, 1, true},
		{"GemmaForCausalLM", nil, true, 0, false},
		{"GemmaForCausalLM", nil, false, 1, true},
		{"GemmaForCausalLM", false, false, 1, false},
		{"Unheard", nil, true, 1, false},
		{"Unheard", true, true, 0, false},
		{"Unheard", true, false, 1, true},
	} {
		config := map[string]any{"architectures": []string{tt.class}}
		if tt.ties != nil {
			config["tie_word_embeddings"] = tt.ties
		}
		m := tinyLlama(1).change(config, nil)
		w := newWorld(t, map[string]*tiny{"a": m, "b": m})
		for i, name := range []string{"a", "b"} {
			dir := filepath.Join(w.dir, name)
			fill(t, dir, uint64(i))
			if tt.equal {
				tieHead(t, dir)
			}
		}
		method := "merge_method: slerp\nparameters: {t: 0.3}\n"
		if tt.heads == 0 { // chance must not come between them
			method = "merge_method: dare_linear\nparameters: {weight: 1, density: 0.5}\n"
		}
		p, err := w.realPlan(t, method+"base_model: a\nmodels: [{model: b}]\n")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Tie(t.Context(), Limits{Memory: 1 << 30, Threads: 2, Level: kernel.Best()}); err != nil {
			t.Fatal(err)
		}
		files, err := p.Files(FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		heads := 0
		for i := range p.Tensors {
			if p.Tensors[i].Name == "lm_head.weight" {
				heads++
			}
		}
		said := strings.Contains(strings.ReplaceAll(string(files["config.json"]), ": ", ":"), `"tie_word_embeddings":false`)
		if heads != tt.heads || p.Untied != tt.untied || tt.untied && (!said || len(p.Warnings) != 1) {
			t.Errorf("%+v: got %d heads, untied %t, warnings %q, config %s",
				tt, heads, p.Untied, p.Warnings, files["config.json"])
		}
	}
}

// TestVocabularySize: config.json says how many rows there are, also where it is
// that of a model that is not merged.
func TestVocabularySize(t *testing.T) {
	more := tinyLlama(1).change(map[string]any{"vocab_size": 8}, map[string][]int{
		"model.embed_tokens.weight": {8, 4}, "lm_head.weight": {8, 4},
	})
	w := newWorld(t, map[string]*tiny{"a": tinyLlama(1), "more": more})
	for text, want := range map[string]string{
		"merge_method: passthrough\nbase_model: a\nslices: [{sources: [{model: more, layer_range: [0, 1]}]}]\n": `"vocab_size":8`,
		"merge_method: passthrough\nbase_model: more\nslices: [{sources: [{model: a, layer_range: [0, 1]}]}]\n": `"vocab_size":6`,
		"merge_method: linear\nparameters: {weight: 1}\nmodels: [{model: more}, {model: a}]\n":                  `"vocab_size":6`,
		"merge_method: linear\nparameters: {weight: 1}\nmodels: [{model: a}, {model: more}]\n":                  `"vocab_size":6`,
		"merge_method: task_arithmetic\nparameters: {weight: 1}\nbase_model: more\nmodels: [{model: a}]\n":      `"vocab_size":8`,
	} {
		p, err := w.realPlan(t, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		files, err := p.Files(FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(files["config.json"]); !strings.Contains(strings.ReplaceAll(got, ": ", ":"), want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestChatWithoutTokenizer: a chat template that has no place is not lost in silence.
func TestChatWithoutTokenizer(t *testing.T) {
	w := newWorld(t, map[string]*tiny{"a": tinyLlama(1)})
	p, err := w.realPlan(t, "merge_method: passthrough\nmodels: [{model: a}]\nchat_template: chatml\n")
	if err != nil {
		t.Fatal(err)
	}
	files, err := p.Files(FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "no tokenizer") {
		t.Errorf("got %d files, warnings %q", len(files), p.Warnings)
	}
}

// TestManyLayers: a damaged config.json does not make a plan of a million layers.
func TestManyLayers(t *testing.T) {
	w := newWorld(t, map[string]*tiny{"a": tinyLlama(1).change(map[string]any{"num_hidden_layers": 1<<20 - 1}, nil)})
	_, err := w.realPlan(t, "merge_method: passthrough\nmodels: [{model: a}]\n")
	const want = "merge: c.yml:2: model a: config.json: num_hidden_layers: got 1048575 layers, but the files have 12 tensors"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
