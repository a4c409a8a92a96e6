// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/strictjson"
	"pleach/merge/method"
	"pleach/merge/vocab"
	"pleach/weights"
)

// tiny is a model to be written: shapes of tensors, and their type where it is not
// float32.
type tiny struct {
	Config  map[string]any   `json:"config"`
	Tensors map[string][]int `json:"tensors"`
	types   map[string]half.DType
}

// write makes the folder of a model whose elements are zeros.
func (m *tiny) write(t testing.TB, dir string) {
	t.Helper()
	header := map[string]any{}
	size := int64(0)
	for _, name := range slices.Sorted(maps.Keys(m.Tensors)) {
		dtype := half.F32
		if d, ok := m.types[name]; ok {
			dtype = d
		}
		n := elements(m.Tensors[name]) * int64(dtype.Size())
		header[name] = map[string]any{
			"dtype": dtype.Safetensors(), "shape": m.Tensors[name], "data_offsets": []int64{size, size + n},
		}
		size += n
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	b = append(append(b, text...), make([]byte, size)...)
	config, err := json.Marshal(m.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"config.json": config, "model.safetensors": b} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// change is a copy with other fields of config.json and other tensors; a nil shape
// takes one away.
func (m *tiny) change(config map[string]any, tensors map[string][]int) *tiny {
	c := &tiny{maps.Clone(m.Config), maps.Clone(m.Tensors), map[string]half.DType{}}
	maps.Copy(c.Config, config)
	for name, shape := range tensors {
		if c.Tensors[name] = shape; shape == nil {
			delete(c.Tensors, name)
		}
	}
	return c
}

// tinyLlama has 2 layers of width 4, and 6 tokens.
func tinyLlama(layers int) *tiny {
	m := &tiny{map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "num_hidden_layers": layers, "vocab_size": 6,
	}, map[string][]int{
		"model.embed_tokens.weight": {6, 4}, "model.norm.weight": {4}, "lm_head.weight": {6, 4},
	}, nil}
	for i := range layers {
		for name, shape := range map[string][]int{
			"self_attn.q_proj": {4, 4}, "self_attn.k_proj": {4, 4}, "self_attn.v_proj": {4, 4},
			"self_attn.o_proj": {4, 4}, "mlp.gate_proj": {8, 4}, "mlp.up_proj": {8, 4}, "mlp.down_proj": {4, 8},
			"input_layernorm": {4}, "post_attention_layernorm": {4},
		} {
			m.Tensors[fmt.Sprintf("model.layers.%d.%s.weight", i, name)] = shape
		}
	}
	return m
}

// methodTable has the parameters of methods, as far as planning sees them:
// their own packages have the arithmetic. A ! is required, a ? has no default.
const methodTable = `
linear           input     common  weight!                          normalize=1
slerp            required  common  -                                t!
nuslerp          optional  common  weight!                          nuslerp_row_wise=0,nuslerp_flatten=1
multislerp       optional  none    weight!                          normalize_weights=1,eps=1e-8
karcher          input     common  -                                max_iter=10,tol=1e-5
task_arithmetic  required  base    weight!,density=1                normalize=0,rescale=0,lambda=1,int8_mask=0
ties             required  base    weight!,density=1                normalize=1,rescale=0,lambda=1,int8_mask=0
dare_linear      required  base    weight!,density=1                normalize=0,rescale=1,lambda=1,int8_mask=0
dare_ties        required  base    weight!,density=1                normalize=0,rescale=1,lambda=1,int8_mask=0
model_stock      required  common  -                                filter_wise=0
breadcrumbs      required  base    weight!,density=1,gamma=0.01     normalize=0,rescale=0,lambda=1,int8_mask=0
breadcrumbs_ties required  base    weight!,density=1,gamma=0.01     normalize=0,rescale=0,lambda=1,int8_mask=0
della            required  base    weight!,density=1,epsilon=0.15   normalize=1,rescale=1,lambda=1,int8_mask=0
della_linear     required  base    weight!,density=1,epsilon=0.15   normalize=0,rescale=1,lambda=1,int8_mask=0
ram              required  none    -                                epsilon=1e-5
ramplus_tl       required  none    -                                r=0.1,alpha=0.2,epsilon=1e-5
sce              required  base    -                                select_topk=1,int8_mask=0
nearswap         required  none    -                                t!
arcee_fusion     required  common  -                                -
passthrough      input     none    scale?                           -`

func testMethods() []*method.Method {
	var list []*method.Method
	for line := range strings.SplitSeq(strings.TrimSpace(methodTable), "\n") {
		f := strings.Fields(line)
		m := &method.Method{Name: f[0], PerModel: parametersOf(f[3]), Global: parametersOf(f[4])}
		m.Base = map[string]method.BaseRole{
			"input": method.BaseInput, "optional": method.BaseOptional, "required": method.BaseRequired,
		}[f[1]]
		m.Crops = map[string]method.Crop{
			"none": method.CropNone, "common": method.CropCommon, "base": method.CropToBase,
		}[f[2]]
		m.New = func(p method.Problem) (method.Job, error) {
			if m.Name == "passthrough" && len(p.Inputs) != 1 {
				return nil, fault.Configf("merge: passthrough: tensor %s: got %d inputs, want 1", p.Name, len(p.Inputs))
			}
			if m.Name == "model_stock" && len(p.Inputs) < 3 {
				if p.Optional {
					return nil, method.Dropped
				}
				return nil, errors.Join(fault.Configf("merge: stock of %q: few models", p.Name), errors.New("merge: so few"))
			}
			for _, in := range p.Inputs {
				if d, ok := in.Params["density"]; ok && d < 0 {
					return nil, fault.Configf("merge: %s: density of model %s: got %v, want 0 to 1", m.Name, in.Model, d)
				}
			}
			return nil, nil
		}
		list = append(list, m)
	}
	return list
}

func parametersOf(s string) []method.Parameter {
	var list []method.Parameter
	for _, f := range strings.Split(s, ",") {
		name, value, _ := strings.Cut(f, "=")
		p := method.Parameter{Name: strings.TrimRight(name, "!?")}
		p.Required, p.Nullable = strings.HasSuffix(name, "!"), strings.HasSuffix(name, "?")
		if _, err := fmt.Sscan(value, &p.Default); err != nil && value != "" {
			panic(err)
		}
		if name != "-" {
			list = append(list, p)
		}
	}
	return list
}

// world is models in a folder, and how to plan with them.
type world struct {
	dir     string
	options Options
	build   builder
}

func newWorld(t testing.TB, models map[string]*tiny) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), build: vocab.Build}
	for name, m := range models {
		m.write(t, filepath.Join(w.dir, name))
	}
	w.options.Find = func(path, revision string) (string, error) {
		dir := filepath.Join(w.dir, path)
		if _, err := os.Stat(dir); err != nil || revision != "" {
			return "", fault.Configf("model %s: there is none", pathText(path, revision))
		}
		return dir, nil
	}
	return w
}

// plan plans a configuration, which is called c.yml.
func (w *world) plan(t testing.TB, text string) (*Plan, error) {
	t.Helper()
	c, err := ParseConfig("c.yml", []byte(text))
	if err != nil {
		return nil, err
	}
	p, err := newPlan(c, w.options, testMethods(), w.build)
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

func (w *world) mustPlan(t testing.TB, text string) *Plan {
	t.Helper()
	p, err := w.plan(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// find is a tensor of a plan.
func (p *Plan) find(t testing.TB, name string) *Tensor {
	t.Helper()
	for i := range p.Tensors {
		if p.Tensors[i].Name == name {
			return &p.Tensors[i]
		}
	}
	t.Fatalf("there is no tensor %s in the plan", name)
	return nil
}

// goldenPlans is testdata/plans.json.
type goldenPlans struct {
	Models map[string]*tiny `json:"models"`
	Cases  map[string]struct {
		Text    string `json:"text"`
		Tensors []struct {
			Name   string              `json:"name"`
			Inputs []goldenInput       `json:"inputs"`
			Base   string              `json:"base"`
			Global map[string]*float64 `json:"global"`
		} `json:"tensors"`
	} `json:"cases"`
}

// goldenInput is [model, name in its files, parameters].
type goldenInput struct {
	model, name string
	params      map[string]*float64
}

func (in *goldenInput) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&in.model, &in.name, &in.params})
}

// TestPlanGolden: plans are those that mergekit makes, in the same order and with
// the same parameters to the bit.
func TestPlanGolden(t *testing.T) {
	b, err := os.ReadFile("testdata/plans.json")
	if err != nil {
		t.Fatal(err)
	}
	var g goldenPlans
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, g.Models)
	if len(g.Cases) < 18 {
		t.Fatalf("got %d cases, want at least 18", len(g.Cases))
	}
	for name, c := range g.Cases {
		t.Run(name, func(t *testing.T) {
			config, err := ParseConfig("c.yml", []byte(c.Text))
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPlan(config, w.options)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for i, want := range c.Tensors {
				if i >= len(p.Tensors) {
					t.Fatalf("got %d tensors, want %d: %s is missing", i, len(c.Tensors), want.Name)
				}
				got := &p.Tensors[i]
				if got.Name != want.Name {
					t.Fatalf("tensor %d: got %s, want %s", i, got.Name, want.Name)
				}
				sameValues(t, got.Name, got.Global, want.Global)
				if len(got.Inputs) != len(want.Inputs) {
					t.Fatalf("tensor %s: got %d inputs, want %d", got.Name, len(got.Inputs), len(want.Inputs))
				}
				for k, in := range want.Inputs {
					mine := &got.Inputs[k]
					model := p.Models[mine.Model].Name
					if model != in.model || mine.Name != in.name {
						t.Errorf("tensor %s: got %s of %s, want %s of %s", got.Name, mine.Name, model, in.name, in.model)
					}
					if base := k == got.Base; base != (in.model == want.Base) {
						t.Errorf("tensor %s: model %s is the base: got %v", got.Name, model, base)
					} else if !base || len(in.params) > 0 {
						sameValues(t, got.Name+" of "+model, mine.Params, in.params)
					}
				}
			}
			if len(p.Tensors) > len(c.Tensors) {
				t.Errorf("got %d tensors, want %d", len(p.Tensors), len(c.Tensors))
			}
		})
	}
}

// sameValues compares parameters; null is absent.
func sameValues(t *testing.T, what string, got method.Values, want map[string]*float64) {
	t.Helper()
	n := 0
	for name, x := range want {
		if x == nil {
			continue
		}
		n++
		if y, ok := got[name]; !ok || math.Float64bits(y) != math.Float64bits(*x) {
			t.Errorf("%s: %s: got %v (%v), want %v", what, name, y, ok, *x)
		}
	}
	if len(got) != n {
		t.Errorf("%s: got parameters %v, want %d", what, got, n)
	}
}

func TestRefusals(t *testing.T) {
	llama := tinyLlama(2)
	qwen := llama.change(map[string]any{"architectures": []string{"Qwen2ForCausalLM"}}, map[string][]int{
		"model.layers.0.self_attn.q_proj.bias": {4}, "model.layers.0.self_attn.k_proj.bias": {4},
		"model.layers.0.self_attn.v_proj.bias": {4}, "model.layers.1.self_attn.q_proj.bias": {4},
		"model.layers.1.self_attn.k_proj.bias": {4}, "model.layers.1.self_attn.v_proj.bias": {4},
	})
	ints := llama.change(nil, map[string][]int{"model.norm.weight": {4}})
	ints.types["model.norm.weight"] = half.I64
	w := newWorld(t, map[string]*tiny{
		"a": llama, "b": llama, "deep": tinyLlama(3), "qwen": qwen, "ints": ints,
		"wide": llama.change(nil, map[string][]int{
			"model.layers.0.mlp.up_proj.weight": {9, 4}, "model.layers.1.mlp.up_proj.weight": {9, 4},
		}),
		"tokens":  llama.change(nil, map[string][]int{"model.embed_tokens.weight": {8, 4}}),
		"broken":  llama.change(nil, map[string][]int{"model.layers.1.mlp.up_proj.weight": nil}),
		"nothing": llama.change(map[string]any{"num_hidden_layers": "two"}, nil),
		"two": {map[string]any{"architectures": []string{"Odd"}}, map[string][]int{
			"vision.layers.0.w": {1}, "text.layers.0.w": {1},
		}, nil},
		"fused": llama.change(map[string]any{"architectures": []string{"MixtralForCausalLM"}}, map[string][]int{
			"model.layers.0.mlp.experts.gate_up_proj": {1, 2, 3},
		}),
		"apart": llama.change(map[string]any{"architectures": []string{"MixtralForCausalLM"}}, map[string][]int{
			"model.layers.0.block_sparse_moe.experts.0.w1.weight": {2, 3},
		}),
	})
	const layered = "slices:\n- sources:\n  - {model: a, layer_range: [0, 2]}\n"
	for _, tt := range []struct {
		text, want string
		kind       error
	}{
		{
			"merge_method: linaer\nmodels: [{model: a}]\n",
			"merge: c.yml:1: merge_method: got \"linaer\", want one of linear, slerp, nuslerp, multislerp, karcher, " +
				"task_arithmetic, ties, dare_linear, dare_ties, model_stock, breadcrumbs, breadcrumbs_ties, della, " +
				"della_linear, ram, ramplus_tl, sce, nearswap, arcee_fusion, passthrough; " +
				"did you mean linear?", fault.Config,
		},
		{
			"merge_method: linear\nmodels:\n- {model: x}\n- {model: y@r}\n",
			"merge: c.yml:3: model x: there is none\nmerge: c.yml:4: model y@r: there is none", fault.Config,
		},
		{
			"merge_method: linear\nmodels:\n- {model: a, parameters: {weight: 1}}\n- {model: b}\n",
			"merge: c.yml:4: tensor model.embed_tokens.weight: model b: method linear needs the parameter weight, " +
				"which has no value for it (and so for 20 more)", fault.Config,
		},
		{
			"merge_method: linear\nbase_model: b\nmodels:\n- {model: a, parameters: {weight: 1}}\n",
			"merge: c.yml:2: tensor model.embed_tokens.weight: method linear counts the base_model b as an input, " +
				"which needs the parameter weight (and so for 20 more)", fault.Config,
		},
		{
			"merge_method: slerp\nmodels: [{model: a}, {model: b}]\nbase_model: a\nparameters: {t: [{filter: mlp, value: 1}]}\n",
			"merge: c.yml:2: tensor model.embed_tokens.weight: method slerp needs the parameter t, " +
				"which has no value for it (and so for 14 more)", fault.Config,
		},
		{
			"merge_method: ties\nmodels: [{model: a}, {model: b}]\nparameters: {weight: 1}\n",
			"merge: c.yml:1: merge_method ties: it needs a base_model, and there is none", fault.Config,
		},
		{
			"merge_method: ties\nbase_model: b\nparameters: {weight: 1}\n" + layered,
			"merge: c.yml:5: slices: method ties needs the base_model, b, among the sources of each slice", fault.Config,
		},
		{
			"merge_method: ties\nmodels: [{model: a, parameters: {density: -1}}]\nbase_model: b\nparameters: {weight: 1}\n",
			"merge: c.yml:2: tensor lm_head.weight: ties: density of model a: got -1, want 0 to 1 (and so for 20 more)",
			fault.Config,
		},
		{
			"merge_method: passthrough\nmodels:\n- {model: a}\n- {model: b}\n",
			"merge: c.yml:3: passthrough: tensor lm_head.weight: got 2 inputs, want 1 (and so for 20 more)", fault.Config,
		},
		{
			"merge_method: karcher\nmodels:\n- {model: a}\n- {model: deep}\n",
			"merge: c.yml:4: model deep: got 3 layers, want 2 as of a in the same slice", fault.Config,
		},
		{
			"merge_method: karcher\n" + layered + "  - {model: deep, layer_range: [2, 4]}\n",
			"merge: c.yml:5: model deep: layer_range: got [2, 4], but it has 3 layers", fault.Config,
		},
		{
			"merge_method: karcher\n" + layered + "  - {model: a, layer_range: [0, 2]}\n",
			"merge: c.yml:5: model a: it is in this slice already, at line 4; want each once", fault.Config,
		},
		{
			"merge_method: karcher\nmodels:\n- {model: a}\n- {model: qwen}\n",
			"merge: c.yml:4: model qwen: got the architecture Qwen2ForCausalLM, want LlamaForCausalLM as in a " +
				"(--allow-crimes merges different ones)", fault.Config,
		},
		{
			"merge_method: karcher\nmodels:\n- {model: a}\n- {model: broken}\n",
			"merge: c.yml:4: model broken: it has no tensor model.layers.1.mlp.up_proj.weight, " +
				"which models of LlamaForCausalLM need", fault.Data,
		},
		{
			"merge_method: karcher\nmodels:\n- {model: a}\n- {model: nothing}\n",
			"merge: c.yml:4: model nothing: config.json: want a number of layers at num_hidden_layers", fault.Data,
		},
		{
			"merge_method: karcher\nmodels:\n- {model: a}\n- {model: wide}\n",
			"merge: c.yml:4: tensor model.layers.0.mlp.up_proj.weight: got shape [8 4] in model a, [9 4] in model wide, " +
				"want one shape (and so for 1 more)", fault.Config,
		},
		{
			"merge_method: ties\nmodels:\n- {model: wide}\nbase_model: a\nparameters: {weight: 1}\n",
			"merge: c.yml:3: tensor model.layers.0.mlp.up_proj.weight: got shape [9 4] in model wide, [8 4] in model a, " +
				"want one shape; --allow-skips leaves out models that differ from the base (and so for 1 more)", fault.Config,
		},
		{
			"merge_method: multislerp\nmodels:\n- {model: a}\n- {model: tokens}\nparameters: {weight: 1}\n",
			"merge: c.yml:4: tensor model.embed_tokens.weight: got shape [6 4] in model a, [8 4] in model tokens, " +
				"want one shape; tokenizer_source: union makes one vocabulary", fault.Config,
		},
		{
			"merge_method: karcher\nmodels:\n- {model: a}\n- {model: ints}\n",
			"merge: c.yml:3: tensor model.norm.weight: got type f32 in model a and i64 in model ints, " +
				"want floats, or one type that is copied", fault.Data,
		},
		{
			"merge_method: karcher\nmodels:\n- {model: two}\n",
			"merge: c.yml:3: the architecture Odd has no table, and its models have layers in several modules " +
				"(text.layers, vision.layers), which cannot be merged", fault.Config,
		},
		{
			"merge_method: karcher\nmodels:\n- {model: fused}\n- {model: apart}\n",
			"merge: c.yml:4: model apart: its experts are stored apart, those of fused fused; want one layout", fault.Config,
		},
		{
			"merge_method: karcher\nmodules:\n  vision: {models: [{model: a}]}\n",
			"merge: c.yml:3: modules: got \"vision\", want default alone: models of several modules are not merged",
			fault.Config,
		},
		{
			"merge_method: karcher\ndtype: int64\nmodels: [{model: a}]\n",
			"merge: c.yml: dtype and out_dtype: got int64, want float16, bfloat16 or float32: models are merged in floats",
			fault.Config,
		},
		{
			"merge_method: karcher\nmodels: [{model: a}]\ntokenizer:\n  tokens:\n    x: {source: b}\n",
			"merge: c.yml:5: tokenizer: token \"x\": got the model b, want one that is merged", fault.Config,
		},
		{
			"merge_method: karcher\nmodels: [{model: a}]\ntokenizer_source: y\n",
			"merge: c.yml:3: model y: there is none", fault.Config,
		},
	} {
		_, err := w.plan(t, tt.text)
		if err == nil || err.Error() != tt.want || !errors.Is(err, tt.kind) {
			t.Errorf("%s\ngot  %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

// TestManyProblems: a user is told some of them, and how many more there are.
func TestManyProblems(t *testing.T) {
	w := newWorld(t, nil)
	text := "merge_method: linear\nmodels:\n"
	for i := range 30 {
		text += fmt.Sprintf("- {model: m%d}\n", i)
	}
	_, err := w.plan(t, text)
	if err == nil {
		t.Fatal("got no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != told+1 || lines[told] != "merge: c.yml: and 10 more problems" || fault.Exit(err) != 2 {
		t.Errorf("got %d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestShapes(t *testing.T) {
	llama := tinyLlama(2)
	w := newWorld(t, map[string]*tiny{
		"a": llama, "b": llama,
		"more": llama.change(nil, map[string][]int{"model.embed_tokens.weight": {8, 4}, "lm_head.weight": {8, 4}}),
		"less": llama.change(nil, map[string][]int{"model.embed_tokens.weight": {5, 4}, "lm_head.weight": {5, 4}}),
		"wide": llama.change(nil, map[string][]int{"model.layers.0.mlp.up_proj.weight": {9, 4}}),
		"thin": llama.change(nil, map[string][]int{"model.embed_tokens.weight": {6, 3}}),
	})
	const embed = "model.embed_tokens.weight"
	p := w.mustPlan(t, "merge_method: karcher\nmodels: [{model: a}, {model: more}, {model: less}]\n")
	e := p.find(t, embed)
	if !slices.Equal(e.Shape, []int{5, 4}) || !slices.Equal(e.Inputs[1].Shape, []int{8, 4}) {
		t.Errorf("cut to what all have: got %v of %v, want [5 4] of [8 4]", e.Shape, e.Inputs[1].Shape)
	}
	if want := "c.yml:2: tensor model.embed_tokens.weight: got shape [6 4] in model a, [8 4] in model more, " +
		"[5 4] in model less; it is cut to [5 4], what all have " +
		"(tokenizer_source: union keeps the tokens of all)"; !slices.Contains(p.Warnings, want) {
		t.Errorf("got warnings %q, want %q", p.Warnings, want)
	}
	const ties = "merge_method: ties\nparameters: {weight: 1}\nbase_model: a\nmodels:\n"
	p = w.mustPlan(t, ties+"- {model: more}\n- {model: less}\n")
	if e := p.find(t, embed); !slices.Equal(e.Shape, []int{6, 4}) || e.Base != 2 {
		t.Errorf("as the base: got %v, base %d, want [6 4], 2", e.Shape, e.Base)
	}
	w.options.Compat = true
	if _, err := w.plan(t, ties+"- {model: less}\n"); err == nil || !strings.Contains(err.Error(), "the base has the most") {
		t.Errorf("fewer rows than the base, as mergekit: got %v, want an error", err)
	}
	w.options.Compat = false
	if _, err := w.plan(t, ties+"- {model: thin}\n"); err == nil || !strings.Contains(err.Error(), "[6 3] in model thin") {
		t.Errorf("fewer columns than the base: got %v, want an error", err)
	}
	w.options.Skips = true
	p = w.mustPlan(t, ties+"- {model: wide}\n- {model: b}\n")
	up := p.find(t, "model.layers.0.mlp.up_proj.weight")
	if len(up.Inputs) != 2 || p.Models[up.Inputs[0].Model].Name != "b" || up.Base != 1 || up.Inputs[0].Number != 1 {
		t.Errorf("--allow-skips: got inputs %+v, base %d, want b (number 1) and the base", up.Inputs, up.Base)
	}
	if want := "c.yml:5: tensor model.layers.0.mlp.up_proj.weight: model wide has shape [9 4], the base [8 4]: " +
		"it has no part in this tensor"; !slices.Contains(p.Warnings, want) {
		t.Errorf("got warnings %q, want %q", p.Warnings, want)
	}
}

func TestTypes(t *testing.T) {
	llama := tinyLlama(1)
	typed := func(d half.DType) *tiny {
		m := llama.change(nil, nil)
		for name := range m.Tensors {
			m.types[name] = d
		}
		return m
	}
	w := newWorld(t, map[string]*tiny{
		"bf16": typed(half.BF16), "f16": typed(half.F16), "f16 too": typed(half.F16), "f32": typed(half.F32), "i64": typed(half.I64), "i64 too": typed(half.I64),
	})
	for _, tt := range []struct {
		config string
		compat bool
		want   half.DType
	}{
		{"merge_method: karcher\nmodels: [{model: bf16}, {model: f16}]\n", false, half.F32},
		{"merge_method: karcher\nmodels: [{model: bf16}]\n", false, half.BF16},
		{"merge_method: karcher\nmodels: [{model: bf16}, {model: f16}]\nout_dtype: torch.float16\n", false, half.F16},
		{"merge_method: karcher\nmodels: [{model: bf16}, {model: f32}]\ndtype: bfloat16\n", false, half.BF16},
		{"merge_method: slerp\nmodels: [{model: bf16}, {model: f32}]\nbase_model: bf16\nparameters: {t: 1}\n", false, half.F32},
		{"merge_method: slerp\nmodels: [{model: bf16}, {model: f32}]\nbase_model: f32\nparameters: {t: 1}\n", false, half.F32},
		{"merge_method: ties\nmodels: [{model: f32}]\nbase_model: f16\nparameters: {weight: 1}\n", false, half.F32},
		{"merge_method: sce\nmodels: [{model: f32}]\nbase_model: f16\n", false, half.F32},
		{"merge_method: arcee_fusion\nmodels: [{model: f32}]\nbase_model: bf16\n", false, half.F32},
		{"merge_method: arcee_fusion\nmodels: [{model: f16}]\nbase_model: f16 too\n", false, half.F16},
		{"merge_method: arcee_fusion\nmodels: [{model: f16}]\nbase_model: f16 too\n", true, half.F32},
		{"merge_method: karcher\nmodels: [{model: i64}, {model: i64 too}]\ndtype: bfloat16\n", false, half.I64},
	} {
		w.options.Compat = tt.compat
		p := w.mustPlan(t, tt.config)
		for i := range p.Tensors {
			if x := &p.Tensors[i]; x.DType != tt.want || x.Copy != (tt.want == half.I64) {
				t.Errorf("%scompat %v: %s: got %v, want %v", tt.config, tt.compat, x.Name, x.DType, tt.want)
				break
			}
		}
		cast := strings.Contains(tt.config, "\ndtype: bfloat16") && tt.want != half.I64
		if x := &p.Tensors[0]; x.HasCast != cast || cast && x.Cast != half.BF16 {
			t.Errorf("%s: inputs are rounded: got %v, %v", tt.config, x.HasCast, x.Cast)
		}
	}
}

// TestTables: every table names the tensors of its class, no name twice, and finds
// counts in config.json.
func TestTables(t *testing.T) {
	config, err := strictjson.Parse(`{"num_local_experts": 3, "num_experts": 2, "num_attention_heads": 2,
		"num_key_value_heads": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	for class, want := range map[string]struct {
		perLayer int
		some     string
	}{
		"LlamaForCausalLM":         {16, "self_attn.q_proj.bias"},
		"LLaMaForCausalLM":         {16, "mlp.down_proj.bias"},
		"MistralForCausalLM":       {9, "mlp.down_proj.weight"},
		"Qwen2ForCausalLM":         {12, "self_attn.v_proj.bias"},
		"Qwen3ForCausalLM":         {15, "self_attn.k_norm.weight"},
		"GemmaForCausalLM":         {13, "mlp.up_proj.weight"},
		"Gemma2ForCausalLM":        {15, "post_feedforward_layernorm.weight"},
		"Gemma3ForCausalLM":        {17, "self_attn.q_norm.weight"},
		"Phi3ForCausalLM":          {6, "self_attn.qkv_proj.weight"},
		"Olmo2ForCausalLM":         {15, "self_attn.q_norm.weight"},
		"GraniteForCausalLM":       {16, "mlp.up_proj.bias"},
		"StableLmForCausalLM":      {18, "self_attn.q_layernorm.norms.1.weight"},
		"StableLMEpochForCausalLM": {18, "input_layernorm.bias"},
		"MixtralForCausalLM":       {19, "block_sparse_moe.experts.2.w3.weight"},
		"Qwen3MoeForCausalLM":      {24, "mlp.experts.1.down_proj.weight"},
		"GPTNeoXForCausalLM":       {15, "attention.query_key_value.weight"},
		"GPT2LMHeadModel":          {12, "mlp.c_fc.bias"},
	} {
		a, ok := tableOf(class, config)
		if !ok {
			t.Errorf("%s: there is no table", class)
			continue
		}
		seen := map[string]bool{}
		found := false
		for _, list := range [][]weight{a.before, a.layer, a.after} {
			for _, w := range list {
				if seen[w.name] {
					t.Errorf("%s: %s stands twice", class, w.name)
				}
				seen[w.name] = true
				found = found || strings.HasSuffix(w.name, "*."+want.some)
			}
		}
		if len(a.layer) != want.perLayer || !found {
			t.Errorf("%s: got %d tensors per layer, %s among them: %v, want %d", class, len(a.layer), want.some, found,
				want.perLayer)
		}
		if head := a.after[len(a.after)-1]; !head.embed || !head.optional || !a.before[0].embed ||
			head.tied[0] != a.before[0].name {
			t.Errorf("%s: got head %+v", class, head)
		}
	}
	if _, ok := tableOf("T5ForConditionalGeneration", config); ok {
		t.Error("a class without a table has one")
	}
}

func TestUnknownArchitecture(t *testing.T) {
	odd := &tiny{map[string]any{"architectures": []string{"OddModel"}}, map[string][]int{
		"net.wte.weight": {6, 4}, "net.h.0.w": {4}, "net.h.1.w": {4}, "net.h.1.more": {4}, "lm_head.weight": {6, 4},
		"net.norm": {4},
	}, nil}
	w := newWorld(t, map[string]*tiny{
		"a": odd, "b": odd.change(nil, map[string][]int{"lm_head.weight": nil, "net.h.1.more": nil}),
		"c": odd.change(map[string]any{"architectures": []string{"Other"}}, nil),
	})
	p := w.mustPlan(t, "merge_method: karcher\nmodels: [{model: a}, {model: b}]\n")
	var names []string
	for _, x := range p.Tensors {
		names = append(names, x.Name)
	}
	if want := []string{
		"net.h.0.w", "net.h.1.more", "net.h.1.w", "net.norm", "lm_head.weight", "net.wte.weight",
	}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	head := p.find(t, "lm_head.weight")
	if len(head.Inputs) != 2 || head.Inputs[1].Name != "net.wte.weight" || !head.Embed || !head.Optional {
		t.Errorf("a head that one model ties: got %+v", head)
	}
	if more := p.find(t, "net.h.1.more"); len(more.Inputs) != 1 || !more.Optional {
		t.Errorf("a tensor that one model lacks: got %+v", more)
	}
	if want := "c.yml:2: model b: it has no tensor net.h.1.more and no part in it"; !slices.Contains(p.Warnings, want) {
		t.Errorf("got warnings %q, want %q", p.Warnings, want)
	}
	p = w.mustPlan(t, "merge_method: passthrough\nslices:\n- sources: [{model: a, layer_range: [1, 2]}]\n"+
		"- sources: [{model: a, layer_range: [0, 2]}]\n")
	if p.Layers != 3 || p.find(t, "net.h.2.w").Inputs[0].Name != "net.h.1.w" {
		t.Errorf("stacked layers: got %d layers and %+v", p.Layers, p.find(t, "net.h.2.w").Inputs)
	}
	const crimes = "merge_method: karcher\nmodels: [{model: a}, {model: c}]\n"
	if _, err := w.plan(t, crimes); err == nil {
		t.Error("two unknown architectures: got no error")
	}
	w.options.Crimes = true
	w.mustPlan(t, crimes)
}

func TestDropped(t *testing.T) {
	w := newWorld(t, map[string]*tiny{"a": tinyLlama(2).change(nil, map[string][]int{
		"model.layers.0.rotary.inv_freq": {2}, "model.layers.1.rotary.inv_freq": {2}, "score.weight": {1, 4},
		"model.layers.2.input_layernorm.weight": {4},
	})})
	p := w.mustPlan(t, "merge_method: passthrough\nslices: [{sources: [{model: a, layer_range: [0, 1]}]}]\n")
	want := []string{
		"model.layers.0.rotary.inv_freq", "model.layers.1.rotary.inv_freq", "model.layers.2.input_layernorm.weight",
		"score.weight",
	}
	if !slices.Equal(p.Dropped, want) {
		t.Errorf("got %q, want %q", p.Dropped, want)
	}
}

func TestPlanWarnings(t *testing.T) {
	w := newWorld(t, map[string]*tiny{"a": tinyLlama(1), "b": tinyLlama(1)})
	p := w.mustPlan(t, `merge_method: ties
base_model: a
colour: red
models:
  - model: b
    parameters:
      weight: [{filter: mpl, value: 1}, {value: 2}]
      lambda: 2
      densty: 1
`)
	want := []string{
		"c.yml:3: the configuration: the key colour means nothing here and is ignored; " +
			"settings of the method belong below parameters",
		`c.yml:7: parameter weight: the filter "mpl" is part of no tensor's name`,
		"c.yml:8: parameter lambda: it is one of whole tensors, and has no effect at a model; " +
			"it belongs below the parameters at the top or of a slice",
		"c.yml:9: parameter densty: method ties has none of this name, and ignores it; did you mean density?",
	}
	if !slices.Equal(p.Warnings, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(p.Warnings, "\n"), strings.Join(want, "\n"))
	}
}

// TestSources: what mergekit gets wrong when the last slice has more sources.
func TestSources(t *testing.T) {
	w := newWorld(t, map[string]*tiny{"a": tinyLlama(2), "b": tinyLlama(2)})
	const text = "merge_method: karcher\nslices:\n- sources: [{model: a, layer_range: [0, 1]}]\n" +
		"- sources: [{model: a, layer_range: [0, 1]}, {model: b, layer_range: [0, 1]}]\n"
	for _, compat := range []bool{false, true} {
		w.options.Compat = compat
		want := 2
		if compat {
			want = 1
		}
		if got := len(w.mustPlan(t, text).find(t, "model.norm.weight").Inputs); got != want {
			t.Errorf("compat %v: got %d inputs of the last norm, want %d", compat, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	w := newWorld(t, map[string]*tiny{"a": tinyLlama(1), "b": tinyLlama(1), "c": tinyLlama(1)})
	p := w.mustPlan(t, "merge_method: ties\nparameters: {weight: 1}\nbase_model: b\n"+
		"models: [{model: a}, {model: b}, {model: c}]\n")
	var got []int
	for _, in := range p.Tensors[0].Inputs {
		got = append(got, in.Number)
	}
	if !slices.Equal(got, []int{0, -1, 1}) || p.Base != 1 || p.Donor != 1 || p.Tensors[0].Base != 1 {
		t.Errorf("got numbers %v, base %d, donor %d, want [0 -1 1], 1, 1", got, p.Base, p.Donor)
	}
	q := p.problem(&p.Tensors[0], 0)
	if q.Base != 1 || q.Inputs[2].Number != 1 || q.Inputs[2].Model != "c" || q.Name != p.Tensors[0].Name {
		t.Errorf("got the problem %+v", q)
	}
}

func TestDescribe(t *testing.T) {
	llama := tinyLlama(3)
	w := newWorld(t, map[string]*tiny{
		"a": llama, "b": llama.change(nil, map[string][]int{"extra.weight": {1}, "model.layers.0.inv": {1}}),
		"tied": llama.change(nil, map[string][]int{"lm_head.weight": nil}),
	})
	w.options.ShardBytes = 500
	for _, tt := range []struct{ name, text string }{
		{"ties", "merge_method: ties\nbase_model: a\ndtype: bfloat16\nmodels:\n- model: b\n  parameters: {weight: 0.5}\n" +
			"- model: tied\n  parameters: {weight: [0, 1], density: [{filter: mlp, value: 0.3}]}\n"},
		{"stack", "merge_method: passthrough\nslices:\n- sources: [{model: a, layer_range: [0, 2]}]\n" +
			"- sources: [{model: b, layer_range: [1, 3]}]\n"},
	} {
		var b bytes.Buffer
		if err := w.mustPlan(t, tt.text).Describe(&b); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", "describe_"+tt.name+".txt")
		if os.Getenv("PLEACH_UPDATE") != "" {
			if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, b.String(), want)
		}
	}
}

func TestBytes(t *testing.T) {
	w := newWorld(t, map[string]*tiny{
		"a": tinyLlama(1), "b": tinyLlama(1).change(nil, map[string][]int{"model.embed_tokens.weight": {9, 4}}),
	})
	read, written := w.mustPlan(t, "merge_method: karcher\nmodels: [{model: a}, {model: b}]\nout_dtype: float16\n").Bytes()
	// Two embeddings and a norm of 52 elements, and a layer of 168; the ninth row is not read.
	if read != 2*4*220 || written != 2*220 {
		t.Errorf("got %d bytes read and %d written, want %d and %d", read, written, 2*4*220, 2*220)
	}
}

// TestPlanTime: a plan of three models of 7 billion parameters takes a moment.
func TestPlanTime(t *testing.T) {
	m := tinyLlama(32)
	w := newWorld(t, map[string]*tiny{"a": m, "b": m, "c": m})
	begin := time.Now()
	p := w.mustPlan(t, "merge_method: ties\nbase_model: a\nmodels: [{model: b}, {model: c}]\n"+
		"parameters: {weight: [0, 1], density: [{filter: mlp, value: 0.5}, {value: 0.3}]}\n")
	if len(p.Tensors) != 291 {
		t.Errorf("got %d tensors, want 291", len(p.Tensors))
	}
	took := time.Since(begin)
	if took > time.Second { // about 10 ms on an idle machine
		t.Errorf("planning took %v", took)
	}
	t.Logf("planning took %v", took)
}

// TestVocabulary: what the configuration says of tokens reaches the builder, and
// what it builds reaches embeddings.
func TestVocabulary(t *testing.T) {
	llama := tinyLlama(1)
	w := newWorld(t, map[string]*tiny{
		"a": llama, "b": llama.change(map[string]any{"vocab_size": 8}, map[string][]int{
			"model.embed_tokens.weight": {8, 4}, "lm_head.weight": {8, 4},
		}),
		"other": llama.change(map[string]any{"vocab_size": 9}, nil),
		"thin":  llama.change(nil, map[string][]int{"model.embed_tokens.weight": {6, 3}}),
		"none":  llama.change(map[string]any{"vocab_size": "many"}, nil),
	})
	var models []vocab.Model
	var options vocab.Options
	w.build = func(m []vocab.Model, o vocab.Options) (*vocab.Vocabulary, error) {
		models, options = m, o
		return &vocab.Vocabulary{Rows: 16, Tokens: 10, Warnings: []string{"two tokens are one"}}, nil
	}
	const inputs = "merge_method: karcher\nbase_model: b\nmodels: [{model: a}, {model: b}]\n"
	p := w.mustPlan(t, inputs+`tokenizer:
  source: a
  pad_to_multiple_of: 16
  tokens:
    x: {source: {kind: zero}}
    y: {source: b, force: true}
    z: {source: {kind: model_token, model: a, token: "q"}}
    u: {source: {kind: model_token, model: b, token_id: 3}}
    v: {}
`)
	want := vocab.Options{
		Base: 1, Pad: 16, Source: vocab.Source{Kind: vocab.OfModel},
		Tokens: []vocab.Token{
			{Text: "x", Kind: vocab.Zero},
			{Text: "y", Kind: vocab.FromModel, Model: 1, Force: true},
			{Text: "z", Kind: vocab.FromToken, Token: "q"},
			{Text: "u", Kind: vocab.FromToken, Model: 1, ID: 3, ByID: true},
			{Text: "v"},
		},
	}
	if !reflect.DeepEqual(options, want) {
		t.Errorf("got %+v, want %+v", options, want)
	}
	if len(models) != 2 || models[1].Name != "b" || models[1].Rows != 8 || filepath.Base(models[1].Dir) != "b" {
		t.Errorf("got models %+v", models)
	}
	for _, name := range []string{"lm_head.weight", "model.embed_tokens.weight"} {
		if x := p.find(t, name); !slices.Equal(x.Shape, []int{16, 4}) || !slices.Equal(x.Inputs[1].Shape, []int{8, 4}) {
			t.Errorf("%s: got %v of %v, want [16 4] of [8 4]", name, x.Shape, x.Inputs[1].Shape)
		}
	}
	if !slices.Contains(p.Warnings, "c.yml:5: two tokens are one") {
		t.Errorf("got warnings %q", p.Warnings)
	}
	for _, tt := range []struct {
		line string
		want vocab.Source
		last string
	}{
		{"tokenizer_source: union\n", vocab.Source{Kind: vocab.Union}, "b"},
		{"tokenizer: {}\n", vocab.Source{Kind: vocab.Union}, "b"},
		{"tokenizer_source: base\n", vocab.Source{Kind: vocab.OfBase}, "b"},
		{"tokenizer_source: b\n", vocab.Source{Kind: vocab.OfModel, Model: 1}, "b"},
		{"tokenizer_source: other\n", vocab.Source{Kind: vocab.OfModel, Model: 2}, "other"},
	} {
		w.mustPlan(t, inputs+tt.line)
		if last := models[len(models)-1]; options.Source != tt.want || last.Name != tt.last {
			t.Errorf("%s: got %+v and the last model %s, want %+v, %s", tt.line, options.Source, last.Name, tt.want, tt.last)
		}
	}
	if models[2].Rows != 9 {
		t.Errorf("a model that gives the tokenizer alone: got %d rows, want 9", models[2].Rows)
	}
	for text, want := range map[string]string{
		"models: [{model: a}, {model: thin}]\n": "merge: c.yml:3: tensor model.embed_tokens.weight: got shape [6 4] in " +
			"model a, [6 3] in model thin, want one shape; embeddings of one vocabulary have one width",
		"models: [{model: none}]\n": "merge: c.yml:3: model none: config.json: want a number at vocab_size",
	} {
		_, err := w.plan(t, "merge_method: karcher\ntokenizer_source: union\n"+text)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestOpen: folders are found without help, adapters are opened, and what is wrong
// with a model is said with the line that names it.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	tinyLlama(1).write(t, filepath.Join(dir, "a"))
	t.Chdir(dir)
	if err := os.Mkdir("empty", 0o777); err != nil {
		t.Fatal(err)
	}
	plan := func(model string) error {
		c, err := ParseConfig("c.yml", []byte("merge_method: passthrough\nmodels:\n- model: "+model+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPlan(c, Options{}, testMethods(), vocab.Build)
		if err == nil {
			p.Close()
		}
		return err
	}
	if err := plan("a"); err != nil {
		t.Error(err)
	}
	for model, want := range map[string]string{
		"missing": "merge: c.yml:3: model missing: ",
		"a@main":  "merge: c.yml:3: model a@main: folders have no revisions",
		"empty":   "merge: c.yml:3: model empty: open empty/config.json: ",
		"a+empty": "merge: c.yml:3: model a+empty: ",
		"a+none":  "merge: c.yml:3: model none: ",
	} {
		if err := plan(model); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s…", model, err, want)
		}
	}
}

// TestExperts: thousands of tensors are planned in well under a second, and those
// of experts by their own names.
func TestExperts(t *testing.T) {
	m := tinyLlama(24).change(map[string]any{
		"architectures": []string{"Qwen3MoeForCausalLM"}, "num_experts": 64,
	}, nil)
	for i := range 24 {
		layer := fmt.Sprintf("model.layers.%d.", i)
		for _, name := range []string{"gate", "up", "down"} {
			delete(m.Tensors, layer+"mlp."+name+"_proj.weight")
			for e := range 64 {
				m.Tensors[fmt.Sprintf("%smlp.experts.%d.%s_proj.weight", layer, e, name)] = []int{1}
			}
		}
		for _, name := range []string{"mlp.gate.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight"} {
			m.Tensors[layer+name] = []int{4}
		}
	}
	w := newWorld(t, map[string]*tiny{"a": m, "b": m, "c": m})
	begin := time.Now()
	p := w.mustPlan(t, "merge_method: ties\nbase_model: a\nmodels: [{model: b}, {model: c}]\nparameters: {weight: [0, 1]}\n")
	took := time.Since(begin)
	t.Logf("planning %d tensors took %v", len(p.Tensors), took)
	if len(p.Tensors) != len(m.Tensors) || len(p.Dropped) > 0 {
		t.Errorf("got %d tensors, %d dropped, want %d, 0", len(p.Tensors), len(p.Dropped), len(m.Tensors))
	}
	if took > 3*time.Second {
		t.Errorf("planning took %v", took)
	}
}

// TestMethodTable: the parameters that tests here assume are those of the methods.
func TestMethodTable(t *testing.T) {
	names := method.Names()
	for _, want := range testMethods() {
		got, ok := method.Find(want.Name)
		if !ok {
			t.Errorf("there is no method %s", want.Name)
			continue
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == want.Name })
		order := func(a, b method.Parameter) int { return strings.Compare(a.Name, b.Name) }
		for _, ps := range []*[]method.Parameter{&got.Global, &got.PerModel, &want.Global, &want.PerModel} {
			*ps = slices.SortedFunc(slices.Values(*ps), order)
		}
		if !slices.Equal(got.Global, want.Global) || !slices.Equal(got.PerModel, want.PerModel) ||
			got.Base != want.Base || got.Crops != want.Crops {
			t.Errorf("%s: got %v %v, base %d, crops %d, want %v %v, %d, %d", want.Name, got.Global, got.PerModel,
				got.Base, got.Crops, want.Global, want.PerModel, want.Base, want.Crops)
		}
	}
	if len(names) > 0 {
		t.Errorf("methods that tests here do not know: %q", names)
	}
}

// TestDroppedByMethod: an optional tensor may leave; several errors of a method have
// a line each.
func TestDroppedByMethod(t *testing.T) {
	w := newWorld(t, map[string]*tiny{
		"a": tinyLlama(1), "b": tinyLlama(1), "c": tinyLlama(1).change(nil, map[string][]int{
			"model.layers.0.self_attn.q_proj.bias": {4},
		}),
	})
	const text = "merge_method: model_stock\nbase_model: a\nmodels:\n- {model: b}\n"
	p := w.mustPlan(t, text+"- {model: c}\n")
	if slices.ContainsFunc(p.Tensors, func(t Tensor) bool { return strings.HasSuffix(t.Name, "bias") }) {
		t.Error("a tensor that the method drops is in the plan")
	}
	if want := "c.yml:4: tensor model.layers.0.self_attn.q_proj.bias: too few models have it: " +
		"it is not in the output"; !slices.Contains(p.Warnings, want) {
		t.Errorf("got warnings %q, want %q", p.Warnings, want)
	}
	if len(p.Tensors) != 12 || p.Tensors[0].Shape == nil {
		t.Errorf("got %d tensors, the first of shape %v", len(p.Tensors), p.Tensors[0].Shape)
	}
	_, err := w.plan(t, text)
	want := "merge: c.yml:4: stock of \"model.embed_tokens.weight\": few models (and so for 10 more)\n" +
		"merge: c.yml:4: tensor model.embed_tokens.weight: so few (and so for 10 more)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLackingRows: rows of an embedding that a model lacks are those of the base, and
// columns that are too many are left out.
func TestLackingRows(t *testing.T) {
	const embed = "model.embed_tokens.weight"
	number := func(model, row, col int) float32 { return float32(100*model + 10*row + col) }
	shapes := [][]int{{4, 3}, {2, 5}}
	w := newWorld(t, map[string]*tiny{
		"base": tinyLlama(1).change(nil, map[string][]int{embed: shapes[0]}),
		"less": tinyLlama(1).change(nil, map[string][]int{embed: shapes[1]}),
	})
	for i, name := range []string{"base", "less"} {
		file := filepath.Join(w.dir, name, "model.safetensors")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := weights.OpenDir(filepath.Join(w.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		x, _ := s.Lookup(embed)
		_ = s.Close()
		for row := range shapes[i][0] {
			for col := range shapes[i][1] {
				at := int(x.Offset) + 4*(row*shapes[i][1]+col)
				binary.LittleEndian.PutUint32(b[at:], math.Float32bits(number(i, row, col)))
			}
		}
		if err := os.WriteFile(file, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p := w.mustPlan(t, "merge_method: ties\nbase_model: base\nmodels: [{model: less}]\nparameters: {weight: 1}\n")
	x := p.find(t, embed)
	vs, err := p.views(x)
	if err != nil {
		t.Fatal(err)
	}
	for lo := range 12 {
		for hi := lo; hi <= 12; hi++ {
			dst := make([]float32, hi-lo)
			if err := vs[0].read(lo, hi, dst); err != nil {
				t.Fatal(err)
			}
			for i := range dst {
				row, col := (lo+i)/3, (lo+i)%3
				want := number(1, row, col)
				if row >= 2 {
					want = number(0, row, col)
				}
				if dst[i] != want {
					t.Fatalf("[%d:%d]: element %d: got %v, want %v", lo, hi, lo+i, dst[i], want)
				}
			}
		}
	}
}
