// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestPatchConfig(t *testing.T) {
	const config = `{
    "architectures": ["LlamaForCausalLM"],
    "rope_theta": 1e+06, "big": 123456789012345678901234567890,
    "torch_dtype": "float16",
    "text_config": {"vocab_size": 10, "x": 1.0},
    "tie_word_embeddings": true
}
`
	for _, c := range []struct {
		name string
		set  []Change
		want string // what replaces what, in config
	}{
		{"nothing", nil, ""},
		{"a value", []Change{{Key: "torch_dtype", Value: `"bfloat16"`}}, `"float16" -> "bfloat16"`},
		{"only if it is there", []Change{
			{Key: "dtype", Value: `"x"`, Existing: true},
			{Key: "tie_word_embeddings", Value: "false", Existing: true},
		}, "true -> false"},
		{"a new key", []Change{{Key: "vocab_size", Value: "66"}, {Key: "é\"", Value: "{}"}}, "true\n -> true,\n    \"vocab_size\": 66,\n    \"é\\\"\": {}\n"},
		{
			"a key in an object",
			[]Change{{Key: "text_config.vocab_size", Value: "66"}, {Key: "text_config.n", Value: "[]"}},
			`10, "x": 1.0 -> 66, "x": 1.0, "n": []`,
		},
		{"the last counts", []Change{{Key: "torch_dtype", Value: "1"}, {Key: "torch_dtype", Value: "2"}}, `"float16" -> 2`},
		{"an object that is not there", []Change{{Key: "vision.n", Value: "1", Existing: true}}, ""},
	} {
		got, err := patchConfig("config.json", []byte(config), c.set)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		want := config
		if old, now, ok := strings.Cut(c.want, " -> "); ok {
			want = strings.Replace(config, old, now, 1)
		}
		if string(got) != want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, want)
		}
	}
	for _, c := range []struct {
		name, text, err string
		set             []Change
	}{
		{"no JSON", "{", "config.json:1", nil},
		{"no object", "[1]", "want an object", nil},
		{"no object inside", config, "torch_dtype: got the string", []Change{{Key: "torch_dtype.x", Value: "1"}}},
		{"twice", config, "as a whole and in part", []Change{{Key: "text_config", Value: "1"}, {Key: "text_config.x", Value: "1"}}},
		{"a bad value", config, "after changes", []Change{{Key: "big", Value: "no"}}},
	} {
		if _, err := patchConfig("config.json", []byte(c.text), c.set); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.err)
		}
	}
}

// FuzzPatchConfig compares with the same change to what encoding/json reads.
func FuzzPatchConfig(f *testing.F) {
	f.Add(`{"a": 1, "b": {"c": "\u00e9"}}`, "b.c")
	f.Add("{\n}", "x")
	f.Fuzz(func(t *testing.T, text, key string) {
		out, err := patchConfig("x", []byte(text), []Change{{Key: key, Value: "[7]"}})
		if err != nil || strings.ContainsRune(key, '.') || strings.ToValidUTF8(key, "") != key {
			return
		}
		var was, now map[string]any
		if json.Unmarshal([]byte(text), &was) != nil {
			return
		}
		if err := json.Unmarshal(out, &now); err != nil {
			t.Fatalf("%q became %q: %v", text, out, err)
		}
		was[key] = []any{7.0}
		if !reflect.DeepEqual(was, now) {
			t.Fatalf("%q became %q", text, out)
		}
	})
}

func TestDonorFiles(t *testing.T) {
	dir := folder(t, map[string]string{
		"config.json": "", "generation_config.json": "", "tokenizer.json": "", "chat_template.jinja": "",
		"README.md": "", "model.safetensors": "",
	})
	if err := os.Mkdir(filepath.Join(dir, "merges.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := donorFiles(dir)
	want := []string{"tokenizer.json", "chat_template.jinja", "generation_config.json"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
