// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/golden"
	"pleach/program"
)

func readConfig(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestConfigAccepted(t *testing.T) {
	for name, want := range golden.ReadJSON[map[string]golden.Meaning](t, golden.Dir("accept/want.json")) {
		c, err := ParseConfig(readConfig(t, golden.Dir("accept/"+name)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := golden.Meaning{
			V: c.V, D: c.D, F: c.F, L: c.L, H: c.H, G: c.G, K: c.K, Eps: c.Eps,
			Theta: c.Rope.Theta, Rope: c.Rope.Scaling.String(), Factor: c.Rope.Factor,
			Low: c.Rope.LowFreq, High: c.Rope.HighFreq, Original: int(c.Rope.Original),
			Tied: c.Tied, AttentionBias: c.AttnBias, MLPBias: c.MLPBias, EOS: c.EOS,
		}
		for name, d := range dtypes {
			if d == c.DType {
				got.DType = name
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		again(t, name, c)
	}
}

// again reads and writes what c writes.
func again(t *testing.T, name string, c *Config) {
	t.Helper()
	text := c.JSON()
	d, err := ParseConfig(text)
	if err != nil {
		t.Errorf("%s: written and read again: %v", name, err)
		return
	}
	if d.Spec != c.Spec || d.DType != c.DType || !slices.Equal(d.BOS, c.BOS) ||
		!slices.Equal(d.EOS, c.EOS) || !slices.Equal(d.PAD, c.PAD) {
		t.Errorf("%s: written and read again: got %+v, want %+v", name, d, c)
	}
	if !bytes.Equal(text, d.JSON()) {
		t.Errorf("%s: written twice:\n%s\n%s", name, text, d.JSON())
	}
}

// TestConfigStyles reads each model of the reference numbers in both styles.
func TestConfigStyles(t *testing.T) {
	for _, dir := range golden.Cases(t, "score") {
		five, err := ParseConfig(readConfig(t, filepath.Join(dir, "config.json")))
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		four, err := ParseConfig(readConfig(t, filepath.Join(dir, "config4.json")))
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if five.Spec != four.Spec || five.DType != four.DType {
			t.Errorf("%s: %+v in the keys of 5, %+v in those of 4", dir, five, four)
		}
	}
}

func TestConfigRefused(t *testing.T) {
	for name, key := range golden.ReadJSON[map[string]string](t, golden.Dir("refuse/want.json")) {
		_, err := ParseConfig(readConfig(t, golden.Dir("refuse/"+name)))
		switch {
		case err == nil:
			t.Errorf("%s: accepted, want a refusal that names %q", name, key)
		case !strings.Contains(err.Error(), key) || !errors.Is(err, fault.Data):
			t.Errorf("%s: got %v, want one of kind data that names %q", name, err, key)
		case strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: more than one error: %v", name, err)
		}
	}
}

// base is the least config.json.
const base = `"model_type": "llama", "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48,
	"num_hidden_layers": 2, "num_attention_heads": 4`

// TestConfigMessages compares whole messages. testdata/config-refused.txt holds
// blocks of a line that is added to base and the lines of the message, less
// their common beginning.
func TestConfigMessages(t *testing.T) {
	n := 0
	for block := range strings.SplitSeq(string(readConfig(t, "testdata/config-refused.txt")), "\n\n") {
		if strings.HasPrefix(block, "#") {
			continue
		}
		add, want, _ := strings.Cut(strings.TrimSpace(block), "\n")
		_, err := ParseConfig([]byte("{" + base + ",\n" + add + "}"))
		got := strings.ReplaceAll(fmt.Sprint(err), "model: config.json:", "")
		got = strings.ReplaceAll(strings.TrimPrefix(got, " "), "\n ", "\n")
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", add, got, want)
		}
		if n++; strings.Count(fmt.Sprint(err), "model: config.json:") != 1+strings.Count(want, "\n") {
			t.Errorf("%s: a line does not begin as it should:\n%v", add, err)
		}
	}
	if n < 20 {
		t.Errorf("got %d blocks, want 20 and more", n)
	}
}

func TestConfigNotJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":       "model: config.json:1: the text ends, want a value",
		"null":   "model: config.json: got null, want an object",
		"[1]":    "model: config.json: got an array, want an object",
		"{}\n{}": "model: config.json:2: text after the end of the document",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || err.Error() != want || !errors.Is(err, fault.Data) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestConfigDefaults: those of transformers' LlamaConfig.
func TestConfigDefaults(t *testing.T) {
	c, err := ParseConfig([]byte("{" + base + `, "sliding_window": null, "use_sliding_window": false,
		"pad_token_id": -1, "rope_scaling": {}, "num_local_experts": 0, "top_p": 0.9}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{
		L: 2, D: 32, H: 4, G: 4, K: 8, F: 48, V: 96, MaxT: 2048, Eps: 1e-6,
		Rope: program.Rope{Theta: 10_000},
	}
	if c.Spec != want || c.DType != half.F32 {
		t.Errorf("got %+v in %v, want %+v in f32", c.Spec, c.DType, want)
	}
	if !slices.Equal(c.BOS, []int32{1}) || !slices.Equal(c.EOS, []int32{2}) || c.PAD != nil {
		t.Errorf("ids: got %v, %v, %v", c.BOS, c.EOS, c.PAD)
	}
	again(t, "defaults", c)
}

// TestConfigKeeps: what has no meaning here is written as it came.
func TestConfigKeeps(t *testing.T) {
	c, err := ParseConfig([]byte("{" + base + `, "_name_or_path": "a<b>&c ü", "initializer_range": 0.010,
		"unsloth_version": "2024.9", "eos_token_id": [3, 9], "pad_token_id": 0, "bos_token_id": null,
		"transformers.js_config": {"b": [1.50, {"z": null}], "a": 1e+2}, "tie_word_embeddings": true}`))
	if err != nil {
		t.Fatal(err)
	}
	c.Tied, c.DType = false, half.BF16 // as a user of the weights might
	want := readConfig(t, "testdata/config-kept.json")
	if got := c.JSON(); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again(t, "kept", c)
}

// TestConfigPublished: files as the models were published with mean the presets
// of their names.
func TestConfigPublished(t *testing.T) {
	files := golden.ReadJSON[map[string]json.RawMessage](t, "testdata/config-published.json")
	for name, text := range files {
		c, err := ParseConfig(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want, err := Preset(name, 0); err != nil || c.Spec != want {
			t.Errorf("%s: got %+v, want %+v, %v", name, c.Spec, want, err)
		}
		again(t, name, c)
	}
}

func TestConfigOfPresets(t *testing.T) {
	for _, p := range Presets() {
		s, err := Preset(p.Name, 32_000)
		if err != nil {
			t.Fatal(err)
		}
		again(t, p.Name, &Config{Spec: s, DType: half.BF16, BOS: []int32{1}, EOS: []int32{2, 3}})
	}
}

// validSpec draws a Spec that Check accepts, in the form that ParseConfig gives.
func validSpec(t *rapid.T) Spec {
	n := func(name string, hi int) int { return rapid.IntRange(1, hi).Draw(t, name) }
	x := func(name string, lo, hi float64) float64 { return rapid.Float64Range(lo, hi).Draw(t, name) }
	s := Spec{
		L: n("L", 10_000), D: n("D", 1<<20), G: n("G", 64), K: 2 * n("K/2", 1<<13),
		F: n("F", 1<<22), V: n("V", 1<<24), MaxT: n("MaxT", 1<<30), Eps: x("eps", 1e-320, 0.999),
		Tied: rapid.Bool().Draw(t, "tied"), AttnBias: rapid.Bool().Draw(t, "attention bias"),
		MLPBias: rapid.Bool().Draw(t, "mlp bias"),
	}
	s.H = s.G * n("H/G", 64)
	s.Rope.Theta = x("theta", 1.001, 9e11)
	s.Rope.Scaling = program.Scaling(rapid.IntRange(0, 2).Draw(t, "scaling"))
	if s.Rope.Scaling != program.NoScaling {
		s.Rope.Factor = x("factor", 1, 9e5)
	}
	if s.Rope.Scaling == program.Llama3Scaling {
		s.Rope.LowFreq = x("low", 1e-9, 1e4)
		s.Rope.HighFreq = s.Rope.LowFreq + x("band", 1e-3, 1e4)
		s.Rope.Original = float64(n("original", 1<<29))
	}
	return s
}

func TestConfigRandom(t *testing.T) {
	all := []half.DType{half.F32, half.BF16, half.F16, half.F64}
	rapid.Check(t, func(r *rapid.T) {
		c := &Config{Spec: validSpec(r), DType: rapid.SampledFrom(all).Draw(r, "dtype")}
		c.EOS = rapid.SliceOfN(rapid.Int32Range(0, 1<<31-1), 1, 4).Draw(r, "eos")
		if err := c.Check(); err != nil {
			r.Fatalf("not valid: %v", err)
		}
		again(t, "random", c)
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("{" + base + "}"))
	f.Add([]byte("{" + base + `, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
		"high_freq_factor": 4, "original_max_position_embeddings": 64}, "eos_token_id": [1, 2]}`))
	f.Add([]byte("{" + base + `, "rope_parameters": {"type": "linear", "factor": 2}, "x": [{"a": 1, "a": {}}]}`))
	f.Add([]byte(`{"a": [[{"b": "c"}, "d"], null], "a": 1}`))
	f.Add([]byte(strings.Repeat("[", 20_000)))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConfig(text)
		if err != nil {
			if !errors.Is(err, fault.Data) {
				t.Errorf("not of kind data: %v", err)
			}
			return
		}
		if !json.Valid(text) || c.Check() != nil {
			t.Errorf("accepted")
		}
		again(t, "fuzz", c)
	})
}
