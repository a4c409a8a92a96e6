// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"encoding/json"
	"errors"
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

func TestConfigMessages(t *testing.T) {
	for _, tt := range []struct{ add, want string }{
		{`"hidden_act": "gelu"`, `model: config.json: key "hidden_act": got "gelu", want "silu" or "swish"`},
		{`"num_key_value_heads": 3`, `model: config.json: key "num_key_value_heads": got 3, want a divisor of num_attention_heads, which is 4`},
		{`"sliding_window": 4096`, `model: config.json: key "sliding_window": got 4096: attention is over all earlier tokens of a document`},
		{`"num_local_experts": 8`, `model: config.json: key "num_local_experts": got 8: layers are dense`},
		{`"use_qk_norm": true`, `model: config.json: key "use_qk_norm": got true: unknown key: it may change the mathematics`},
		{`"rope_scaling": {"type": "yarn", "factor": 2, "beta": 3}`, `model: config.json: key "rope_scaling.type": got "yarn", want "default" or "linear" or "llama3"`},
		{`"rope_scaling": {"type": "default", "mrope_section": [16, 24, 24]}`, `model: config.json: key "rope_scaling.mrope_section": got [16,24,24], but it is not a key of rope_type "default"`},
		{`"rope_scaling": {"type": "linear", "rope_type": "llama3", "factor": 2}`, `model: config.json: key "rope_scaling.type": got "linear", but "rope_type" is "llama3"`},
		{`"rope_scaling": {"rope_type": "llama3", "factor": 0.5}`, `model: config.json: key "rope_scaling.factor": got 0.5, want a number from 1 to 10⁶` + "\n" +
			`model: config.json: key "rope_scaling.low_freq_factor": missing, want a number above 0` + "\n" +
			`model: config.json: key "rope_scaling.high_freq_factor": missing, want a number above low_freq_factor` + "\n" +
			`model: config.json: key "rope_scaling.original_max_position_embeddings": missing, want an integer`},
		{`"rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "linear", "factor": 4}`, `model: config.json: key "rope_scaling": means θ 10000, linear ÷ 2, but "rope_parameters" means θ 10000, linear ÷ 4`},
		{`"rope_theta": 5e5, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}`, `model: config.json: key "rope_theta": got 500000, but "rope_parameters.rope_theta" is 10000`},
		{`"rope_parameters": {"rope_theta": 1e4, "rope_theta": 2e4}`, `model: config.json: key "rope_parameters.rope_theta": occurs twice`},
		{`"torch_dtype": "float16", "dtype": "bfloat16"`, `model: config.json: key "torch_dtype": got "float16", but "dtype" is "bfloat16"`},
		{`"layer_types": ["full_attention", "sliding_attention"]`, `model: config.json: key "layer_types": got ["full_attention","sliding_attention"], want a list of "full_attention"`},
		{`"bos_token_id": -1`, `model: config.json: key "bos_token_id": got -1, want an id, a list of ids, or null`},
		{`"eos_token_id": [2, 2147483648]`, `model: config.json: key "eos_token_id": got [2,2147483648], want an id, a list of ids, or null`},
		{`"pad_token_id": 1.5`, `model: config.json: key "pad_token_id": got 1.5, want an id, a list of ids, or null`},
		{`"eos_token_id": {"a": 1}`, `model: config.json: key "eos_token_id": got {"a":1}, want an id, a list of ids, or null`},
		{`"attention_dropout": 0.1`, `model: config.json: key "attention_dropout": got 0.1, want 0`},
		{`"rms_norm_eps": 1e999`, `model: config.json: key "rms_norm_eps": got 1e999, want a number between 0 and 1`},
		{`"head_dim": 8.0`, `model: config.json: key "head_dim": got 8.0, want an integer from 1 to 16384`},
		{`"max_position_embeddings": 1e3`, `model: config.json: key "max_position_embeddings": got 1e3, want an integer from 1 to 1073741824`},
		{`"rms_norm_eps": NaN`, `model: config.json:3: not valid JSON: invalid character 'N' looking for beginning of value`},
		{`"tie_word_embeddings": 1, "mlp_bias": "no"`, `model: config.json: key "tie_word_embeddings": got 1, want true or false` + "\n" +
			`model: config.json: key "mlp_bias": got "no", want true or false`},
		{`"b` + strings.Repeat("ad", 3) + `": "` + strings.Repeat("x", 200) + `"`, `model: config.json: key "badadad": got "` + strings.Repeat("x", 79) + `…: unknown key: it may change the mathematics`},
	} {
		_, err := ParseConfig([]byte("{" + base + ",\n" + tt.add + "}"))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.add, err, tt.want)
		}
	}
	for text, want := range map[string]string{
		"":              "model: config.json:1: not valid JSON: unexpected end of JSON input",
		"null":          "model: config.json: want a JSON object {…}",
		"[1]":           "model: config.json: want a JSON object {…}",
		"{}\n{}":        "model: config.json:2: not valid JSON: invalid character '{' after top-level value",
		"{\"a\xff\":1}": "model: config.json: not valid UTF-8",
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
