// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pleach/half"
	"pleach/internal/fault"
)

const head = "merge_method: linear\nmodels: [{model: a}]\n"

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig("c.yml", []byte(`
merge_method: ties
base_model: org/base@v1+lora@v2
dtype: torch.bfloat16
out_dtype: float16
chat_template: auto
models:
  - model: a
    parameters: {weight: 0.5}
  - model:
      model: {path: b, revision: main}
      lora: l@r
      override_architecture: LlamaForCausalLM
parameters:
  density: [0.1, 1e-1, "0.3", yes]
  lambda:
    - {filter: mlp, value: 2}
    - {filter: "*", value: [1, 2]}
  normalize: off
  gamma: {value: 3}
tokenizer:
  source: {model: tok}
  pad_to_multiple_of: "8"
  tokens:
    "<s>": {source: {kind: model_token, model: a, token: x}}
    "</s>": {source: {kind: model_token, model: a, token_id: 7}, force: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	bf16, f16 := half.BF16, half.F16
	x, id := "x", 7
	a := Reference{Path: "a"}
	want := &Config{
		File: "c.yml", Text: c.Text, Method: "ties", MethodLine: 2, ModelsLine: 8, BaseLine: 3,
		Base:  &Reference{Path: "org/base", Revision: "v1", Adapter: "lora", AdapterRevision: "v2"},
		DType: &bf16, OutDType: &f16, ChatTemplate: "auto",
		Models: []Source{
			{Model: a, Line: 8, Parameters: Parameters{
				{"weight", 9, []Case{{"", 9, []float64{0.5}}}},
			}},
			{Model: Reference{
				Path: "b", Revision: "main", Adapter: "l", AdapterRevision: "r", Architecture: "LlamaForCausalLM",
			}, Line: 10},
		},
		Parameters: Parameters{
			{"density", 15, []Case{{"", 15, []float64{0.1, 0.1, 0.3, 1}}}},
			{"lambda", 16, []Case{{"mlp", 17, []float64{2}}, {"*", 18, []float64{1, 2}}}},
			{"normalize", 19, []Case{{"", 19, []float64{0}}}},
			{"gamma", 20, []Case{{"", 20, []float64{3}}}},
		},
		Tokenizer: &Tokenizer{Line: 22, Model: &Reference{Path: "tok"}, Pad: 8, Tokens: []TokenRule{
			{Text: "<s>", Line: 25, Model: &a, Token: &x},
			{Text: "</s>", Line: 26, Model: &a, ID: &id, Force: true},
		}},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c, want)
	}
}

func TestParseSlices(t *testing.T) {
	c, err := ParseConfig("c.yml", []byte(`merge_method: passthrough
slices:
- sources:
  - {model: a, layer_range: [0, "24"]}
- sources:
  - {model: b, layer_range: [20.0, 40], parameters: {scale: 0}}
  base_model: z
  residual_weight: 0.5
  parameters: {t: 1}
models: []
modules:
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Slice{
		{Line: 3, Sources: []Source{{Model: Reference{Path: "a"}, Line: 4, To: 24}}},
		{
			Line: 5, Base: &Reference{Path: "z"},
			Sources: []Source{{
				Model: Reference{Path: "b"}, Line: 6, From: 20, To: 40,
				Parameters: Parameters{{"scale", 6, []Case{{"", 6, []float64{0}}}}},
			}},
			Parameters: Parameters{{"t", 9, []Case{{"", 9, []float64{1}}}}},
		},
	}
	if !reflect.DeepEqual(c.Slices, want) {
		t.Errorf("got %+v, want %+v", c.Slices, want)
	}
	if w := "c.yml:8: slices: residual_weight has no effect, in mergekit neither"; !slices.Contains(c.Warnings, w) {
		t.Errorf("got warnings %q, want %q", c.Warnings, w)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "1: the configuration: got null, want a mapping"},
		{"a: [\n", "2: not YAML: did not find expected node content"},
		{"models: [{model: a}]\n", "1: merge_method: it is missing, want the name of a method"},
		{"merge_method: 7\nmodels: [{model: a}]\n", "1: merge_method: got the number 7, want a string; " +
			"write it in quotes if it is one"},
		{"merge_method: x\n", "1: the inputs: got none of them, want exactly one of models, slices and modules"},
		{
			head + "slices: [{sources: [{model: a, layer_range: [0, 1]}]}]\n",
			"3: the inputs: got models and slices, want exactly one of models, slices and modules",
		},
		{"merge_method: x\nmodels: [{parameters: {}}]\n", "2: models: the key model is missing"},
		{"merge_method: x\nmodels: [a]\n", "2: models: got the string \"a\", want a mapping"},
		{
			"merge_method: x\nmodels: [{model: a+b+c}]\n",
			"2: models: model: got \"a+b+c\", want at most one + (path+adapter)",
		},
		{
			"merge_method: x\nmodels: [{model: a@b@c}]\n",
			"2: models: model: got \"a@b@c\", want at most one @ (path@revision)",
		},
		{"merge_method: x\nmodels: [{model: ''}]\n", "2: models: model: got \"\", want the name or folder of a model"},
		{"merge_method: x\nmodels: [{model: {lora: b}}]\n", "2: models: model: the key model is missing"},
		{
			"merge_method: x\nmodels: [{model: 1.5}]\n",
			"2: models: model: got the number 1.5, want a string; write it in quotes if it is one",
		},
		{"merge_method: x\nslices: [{}]\n", "2: slices: the key sources is missing"},
		{"merge_method: x\nslices: [{sources: []}]\n", "2: slices: sources: got none, want at least one"},
		{"merge_method: x\nslices: [{sources: [{model: a}]}]\n", "2: slices: sources: the key layer_range is missing"},
		{
			"merge_method: x\nslices: [{sources: [{model: a, layer_range: [1]}]}]\n",
			"2: slices: sources: layer_range: got a list of 1, want [first, last+1]",
		},
		{
			"merge_method: x\nslices: [{sources: [{model: a, layer_range: [3, 3]}]}]\n",
			"2: slices: sources: layer_range: got [3, 3], want layers from 0 on, the first before the second",
		},
		{
			"merge_method: x\nslices: [{sources: [{model: a, layer_range: [0, 1.5]}]}]\n",
			"2: slices: sources: layer_range: got the number 1.5, want a whole number",
		},
		{"merge_method: x\nmodules: {default: {}}\n", "2: modules: default: want exactly one of models and slices"},
		{"merge_method: x\nmodules: [a]\n", "2: modules: got a list of 1, want a mapping of names"},
		{head + "dtype: bfloat61\n", "3: dtype: got \"bfloat61\", want float16, bfloat16, float32 or int64; " +
			"did you mean bfloat16?"},
		{head + "out_dtype: f\n", "3: out_dtype: got \"f\", want float16, bfloat16, float32 or int64"},
		{head + "parameters: 3\n", "3: parameters: got the number 3, want a mapping"},
		{head + "parameters: {w: x}\n", "3: parameter w: got the string \"x\", want a number"},
		{head + "parameters: {w: 0x10p}\n", "3: parameter w: got the string \"0x10p\", want a number"},
		{head + "parameters: {w: .nan}\n", "3: parameter w: got NaN, want a number"},
		{head + "parameters: {w: ~}\n", "3: parameter w: got null, want a number"},
		{head + "parameters: {w: [1, {value: 2}]}\n", "3: parameter w: got a mapping, want a number"},
		{
			head + "parameters: {w: [{value: 2}, 1]}\n",
			"3: parameter w: got the number 1 among conditional values, want {filter, value}",
		},
		{head + "parameters: {w: [{filter: a}]}\n", "3: parameter w: the key value is missing"},
		{
			head + "parameters: {w: [{filter: 4, value: 1}]}\n",
			"3: parameter w: filter: got the number 4, want a string; write it in quotes if it is one",
		},
		{head + "parameters: {w: [{value: []}]}\n", "3: parameter w: value: got an empty list, want a number or several"},
		{head + "parameters: {w: 2020-01-01}\n", "3: parameter w: got a date (2020-01-01), want a number"},
		{head + "parameters: {1: 2}\n", "3: parameters: the name of one: got the number 1, want a string; " +
			"write it in quotes if it is one"},
		{
			head + "tokenizer_source: base\ntokenizer: {}\n",
			"4: tokenizer: got both tokenizer_source and tokenizer, want one of them",
		},
		{head + "tokenizer: {tokens: {x: ~}}\n", "3: tokenizer: token \"x\": got null, want a mapping"},
		{
			head + "tokenizer: {tokens: {x: {source: {kind: one}}}}\n",
			"3: tokenizer: token \"x\": source: kind: got the string \"one\", want zero or model_token",
		},
		{
			head + "tokenizer: {tokens: {x: {source: {kind: model_token, model: a}}}}\n",
			"3: tokenizer: token \"x\": source: want exactly one of token and token_id",
		},
		{
			head + "tokenizer: {tokens: {x: {source: {kind: model_token, model: a, token: t, token_id: 1}}}}\n",
			"3: tokenizer: token \"x\": source: want exactly one of token and token_id",
		},
		{
			head + "tokenizer: {tokens: {x: {source: {kind: model_token, token_id: -1}}}}\n",
			"3: tokenizer: token \"x\": source: token_id: got -1, want an id\n" +
				"merge: c.yml:3: tokenizer: token \"x\": source: the key model is missing",
		},
		{
			head + "tokenizer: {tokens: {x: {force: maybe}}}\n",
			"3: tokenizer: token \"x\": force: got the string \"maybe\", want true or false",
		},
		{head + "tokenizer: {tokens: {no: {}}}\n", "3: tokenizer: tokens: a token: got false, want a string; " +
			"write it in quotes if it is one"},
		{head + "tokenizer: {pad_to_multiple_of: -8}\n", "3: tokenizer: pad_to_multiple_of: got -8, want a multiple"},
		{head + "chat_template: llama4\n", "3: chat_template: got \"llama4\" (llama3?), want auto, one of alpaca, " +
			"chatml, exaone, llama3, mistral, or a template of 20 characters or more"},
		{"merge_method: 1\nmodels: 2\n", "1: merge_method: got the number 1, want a string; " +
			"write it in quotes if it is one\nmerge: c.yml:2: models: got the number 2, want a list\n" +
			"merge: c.yml:1: the inputs: got none of them, want exactly one of models, slices and modules"},
	} {
		_, err := ParseConfig("c.yml", []byte(tt.text))
		if err == nil || err.Error() != "merge: c.yml:"+tt.want || !errors.Is(err, fault.Config) || fault.Exit(err) != 2 {
			t.Errorf("%s\ngot  %v\nwant merge: c.yml:%s", tt.text, err, tt.want)
		}
	}
}

func TestConfigWarnings(t *testing.T) {
	c, err := ParseConfig("c.yml", []byte(`merge_method: linear
models:
- {model: a, weight: 1}
- {model: b, parameters: {weight: [{value: 1, filtre: x}, {filter: y, value: 2}]}}
tokeniser_source: union
parameters: {normalize: []}
parameters: {normalize: []}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"c.yml:7: the key parameters stands twice in this mapping; the last one counts",
		"c.yml:3: models: the key weight means nothing here and is ignored; settings of the method belong below parameters",
		"c.yml:4: parameter weight: the key filtre means nothing here and is ignored; did you mean filter?",
		"c.yml:4: parameter weight: this value is never used: the one at line 4 is for all tensors",
		"c.yml:5: the configuration: the key tokeniser_source means nothing here and is ignored; " +
			"did you mean tokenizer_source?",
		"c.yml:7: parameter normalize: an empty list sets nothing",
	}
	slices.Sort(want)
	slices.Sort(c.Warnings)
	if !slices.Equal(c.Warnings, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(c.Warnings, "\n"), strings.Join(want, "\n"))
	}
}

func TestReference(t *testing.T) {
	for s, want := range map[string]Reference{
		"a":                    {Path: "a"},
		"org/a@main":           {Path: "org/a", Revision: "main"},
		"a+b":                  {Path: "a", Adapter: "b"},
		"org/a@1+org/b@2":      {Path: "org/a", Revision: "1", Adapter: "org/b", AdapterRevision: "2"},
		"/abs path/a":          {Path: "/abs path/a"},
		"a+":                   {},
		"+b":                   {},
		"a@b@c":                {},
		"a+b+c":                {},
		"":                     {},
		"a+b@c@d":              {},
		"./relative/folder@v2": {Path: "./relative/folder", Revision: "v2"},
	} {
		got, err := ParseReference(s)
		if (err != nil) != (want == Reference{}) {
			t.Errorf("%q: got error %v", s, err)
		}
		if err == nil && (got != want || got.String() != s) {
			t.Errorf("%q: got %+v, written %q, want %+v", s, got, got, want)
		}
	}
}

func TestSetting(t *testing.T) {
	mlp := &Parameter{Cases: []Case{{Filter: "mlp", Values: []float64{1, 2}}, {Filter: "norm", Values: []float64{5}}}}
	all := &Parameter{Cases: []Case{{Filter: "*", Values: []float64{0, 0.5, 0.3, 0.7, 1}}}}
	for _, tt := range []struct {
		p    *Parameter
		name string
		t    float64
		want float64 // NaN: none
	}{
		{mlp, "layers.0.mlp.up", 0, 1},
		{mlp, "layers.0.mlp.up", 1, 2},
		{mlp, "layers.0.mlp.up", 0.25, 1.25},
		{mlp, "mlp_norm", 0.5, 1.5}, // the first that applies
		{mlp, "norm", 1, 5},
		{mlp, "MLP", 1, math.NaN()},
		{all, "x", 0, 0},
		{all, "x", 0.25, 0.5},
		{all, "x", 0.125, 0.25},
		{all, "x", 0.5, 0.3},
		{all, "x", 0.75, 0.7},
		{all, "x", 1, 1},
		{all, "x", 1.0 / 3, (1-1.0/3*4+1)*0.5 + (1.0/3*4-1)*0.3},
		{&Parameter{}, "x", 1, math.NaN()},
		{nil, "x", 1, math.NaN()},
	} {
		got, ok := tt.p.Value(tt.name, tt.t)
		if ok == math.IsNaN(tt.want) || ok && got != tt.want {
			t.Errorf("%+v of %s at %v: got %v, %v, want %v", tt.p, tt.name, tt.t, got, ok, tt.want)
		}
	}
}

// TestResolve: the nearest setting that has a value for a tensor decides.
func TestResolve(t *testing.T) {
	one := func(filter string, x float64) Parameters {
		return Parameters{{Name: "w", Cases: []Case{{Filter: filter, Values: []float64{x}}}}}
	}
	source, slice, module, top := one("q", 1), one("k", 2), one("v", 3), one("*", 4)
	for name, want := range map[string]float64{"q": 1, "k": 2, "v": 3, "o": 4, "qkv": 1, "kv": 2} {
		if got, ok := resolve("w", name, 0, source, slice, module, top); !ok || got != want {
			t.Errorf("%s: got %v, %v, want %v", name, got, ok, want)
		}
	}
	if got, ok := resolve("w", "o", 0, source, nil, module); ok {
		t.Errorf("no setting applies: got %v", got)
	}
	if got, ok := resolve("x", "o", 0, source, top); ok {
		t.Errorf("no setting of the name: got %v", got)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte(head + "parameters: {t: [{filter: a, value: [1, 2]}, {value: 1e-1}]}\nbase_model: a@b+c\n"))
	f.Add([]byte("slices: [{sources: [{model: {model: {path: a}}, layer_range: [0, 1]}]}]\nmerge_method: x\n"))
	f.Add([]byte("modules: {default: {models: [{model: a}]}}\nmerge_method: x\ntokenizer: {tokens: {a: {source: {kind: zero}}}}\n"))
	if b, err := os.ReadFile("testdata/plans.json"); err == nil {
		f.Add(b[:min(len(b), 2000)])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConfig("c.yml", text)
		if err != nil {
			if fault.Exit(err) != 2 {
				t.Fatalf("got an error of another kind: %v", err)
			}
			return
		}
		n := 0
		for _, k := range []int{len(c.Models), len(c.Slices), len(c.Modules)} {
			if k > 0 {
				n++
			}
		}
		if n != 1 || c.Method == "" && c.MethodLine == 0 {
			t.Fatalf("got %d kinds of input and method %q", n, c.Method)
		}
		for _, p := range c.Parameters {
			for _, k := range p.Cases {
				if len(k.Values) == 0 || math.IsNaN(k.At(0.5)) && !math.IsInf(k.At(0), 0) {
					t.Fatalf("parameter %s: got %v", p.Name, k)
				}
			}
		}
	})
}
