// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"pleach/internal/fault"
	"pleach/internal/unit"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares with a file of testdata or docs, or rewrites it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got), -update rewrites it:\n%s", path, d)
	}
}

// parse reads a file of testdata as if it lay in the folder /recipes.
func parse(t *testing.T, path string, args ...string) (*Recipe, error) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Parse("/recipes/"+filepath.Base(path), text, args)
}

func TestGood(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.good.yaml")
	for _, file := range files {
		r, err := parse(t, file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		golden(t, strings.TrimSuffix(file, ".good.yaml")+".effective", string(r.Effective()))
		same(t, r)
	}
	if len(files) < 3 {
		t.Errorf("got %d files", len(files))
	}
}

// same parses the effective recipe from elsewhere and wants the same recipe.
func same(t *testing.T, r *Recipe) {
	t.Helper()
	again, err := Parse("/elsewhere/run.yaml", r.Effective(), nil)
	if err != nil {
		t.Errorf("the effective recipe does not parse: %v\n%s", err, r.Effective())
		return
	}
	if d := Diff(r, again); d != nil || r.Hash() != again.Hash() {
		t.Errorf("the effective recipe is another one: %v\n%s", d, r.Effective())
	}
}

func TestBad(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.bad.yaml")
	for _, file := range files {
		_, err := parse(t, file)
		if err == nil {
			t.Errorf("%s: no error", file)
			continue
		}
		var one *Error
		if !errors.Is(err, fault.Config) || fault.Exit(err) != 2 || !errors.As(err, &one) {
			t.Errorf("%s: %T is not a config error", file, err)
		}
		golden(t, strings.TrimSuffix(file, ".bad.yaml")+".errors", err.Error()+"\n")
	}
	if len(files) < 6 {
		t.Errorf("got %d files", len(files))
	}
}

func TestTyped(t *testing.T) {
	r, err := parse(t, "testdata/reference.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r.Train.Batch != (unit.Batch{Sequences: 4}) || r.Train.Until.Steps != 20 ||
		r.Train.Optimizer.AdamW.LR != 3e-3 || r.Train.Schedule.Floor.Value != 3e-4 ||
		r.Data.Sources[0].Paths[0] != "/recipes/rows.jsonl" || r.Data.Sources[0].Name != "rows" ||
		r.Model.Path != "/recipes/base" || r.Out != "/recipes/run" || r.Train.Clip != 1 ||
		r.Checkpoint.Every.Time != 30*60e9 || r.Engine.Kind != "cpu" || r.Name != "reference.good" {
		t.Errorf("got %+v", r)
	}
}

func TestOverride(t *testing.T) {
	for _, tt := range []struct{ arg, want string }{ // want: key=value in values(), or !error
		{`train.batch=8 sequences`, `train.batch="8 sequences"`},
		{`train.batch="8 sequences"`, `train.batch="8 sequences"`},
		{`data.sources.0.weight=0.5`, `data.sources.0.weight=0.5`},
		{`train.schedule={constant: {}}`, `train.schedule=constant`},
		{`train.schedule=linear`, `train.schedule.linear.floor="10 %"`},
		{`train.schedule.cosine.warmup=3 steps`, `train.schedule.cosine.warmup="3 steps"`},
		{`engine.cpu.threads=2`, `engine.cpu.threads=2`},
		{`model.state=kept`, `model.state=kept`},
		{`evaluate.perplexity.held=wiki.txt`, `evaluate.perplexity.held.path=/recipes/wiki.txt`},
		{`data.sources.0.path=[a.txt, b.txt]`, `data.sources.0.path=[/recipes/a.txt, /recipes/b.txt]`},
		{`train.clip=none`, `train.clip=none`},
		{`price.per_hour=1.5`, `price.currency=USD`},
		{`data.sources.1.weight=0.5`, `!argument "data.sources.1.weight=0.5": data.sources.1: the list has the entries 0 to 0`},
		{`train.cilp=1`, `!argument "train.cilp=1": train.cilp: unknown key; did you mean "clip"?`},
		{`train.clip`, `!want key=value`},
		{`train.clip=`, `!got no value`},
		{`train.clip={`, `!is not YAML`},
		{`train.clip.x=1`, `!train.clip is a value, it has no keys`},
		{`train.schedule.wsd.decay=3 steps`, `!train.schedule: want exactly one of`},
		{`parallel.data=2`, `!argument "parallel.data=2": parallel.data: got 2, want 1: more than one rank is not yet built`},
		{`lora.rank=2`, `!not yet built`},
		{`=1`, `!want key=value`},
		{"out=\xff", `!not UTF-8`},
	} {
		r, err := parse(t, "testdata/reference.good.yaml", tt.arg)
		if frag, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), frag) {
				t.Errorf("%s: got %v, want an error with %q", tt.arg, err, frag)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.arg, err)
			continue
		}
		key, want, _ := strings.Cut(tt.want, "=")
		if got := r.values()[key]; got != want && strconvQuoted(got) != want {
			t.Errorf("%s: %s is %s, want %s", tt.arg, key, got, want)
		}
		same(t, r)
	}
}

// TestPrecision: what goes with a precision, what is refused and what is warned
// about; the type of published weights follows where it is not given.
func TestPrecision(t *testing.T) {
	for _, tt := range []struct {
		args    string
		dtype   string
		warning string
		err     string
	}{
		{"", "", "", ""}, // the processor decides
		{"train.precision=f32", "f32", "", ""},
		{"train.precision=mixed", "bf16", "", ""},
		{"train.precision=bf16-sr", "bf16", "", ""},
		{"train.precision=bf16", "bf16", "train.precision: bf16 rounds weights to nearest", ""},
		{"train.precision=mixed checkpoint.dtype=f32", "f32", "", ""},
		{"checkpoint.dtype=bf16", "bf16", "", ""},
		{"train.precision=bf16-sr train.optimizer.adamw.state=bf16", "bf16", "", ""},
		{"train.precision=bf16-sr train.optimizer.adamw.betas=[0.9,0.98]", "bf16", "", ""},
		{
			"train.precision=bf16-sr train.optimizer.adamw.betas=[0.9,0.99]", "bf16",
			"train.optimizer.adamw.betas: a second beta of 0.99 is too slow", "",
		},
		{"train.precision=mixed train.optimizer.adamw.betas=[0.9,0.99]", "bf16", "", ""},
		{"train.optimizer.adamw.state=bf16", "", "", "train.optimizer.adamw.state: got bf16 with the precision f32 or mixed, want f32"},
		{
			"train.precision=mixed train.optimizer.adamw.state=bf16", "", "",
			"got bf16 with the precision mixed, want f32; means in bf16 need stochastic rounding: train.precision: bf16-sr",
		},
		{"train.precision=bf16 train.optimizer.adamw.state=bf16", "", "", "got bf16 with the precision bf16, want f32"},
		{"train.precision=fp16", "", "", `got "fp16", want f32 or mixed or bf16-sr or bf16`},
	} {
		r, err := parse(t, "testdata/minimal.good.yaml", strings.Fields(tt.args)...)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want %q", tt.args, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		got := strings.Join(r.Warnings(), "\n")
		if r.Checkpoint.DType != tt.dtype || !strings.HasPrefix(got, tt.warning) || (got == "") != (tt.warning == "") {
			t.Errorf("%s: dtype %s, warnings %q", tt.args, r.Checkpoint.DType, got)
		}
		same(t, r)
	}
}

// strconvQuoted puts quotes around values that print without.
func strconvQuoted(s string) string { return `"` + strings.Trim(s, `"`) + `"` }

func TestOrigin(t *testing.T) {
	r, err := parse(t, "testdata/reference.good.yaml", "train.clip=0.5", "train.schedule={linear: {warmup: 1 steps}}")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Set("data.lanes", "4", "this batch"); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"train.clip":                   "command line",
		"train.schedule.linear.warmup": "command line",
		"train.schedule.linear.floor":  "default",
		"train.until":                  "reference.good.yaml:9",
		"data.shuffle":                 "default",
		"data.lanes":                   "this batch",
		"model.path":                   "reference.good.yaml:3",
		"train.micro":                  "",
	} {
		if got := r.Origin(key); got != want {
			t.Errorf("%s comes from %q, want %q", key, got, want)
		}
	}
	if !r.Given("train.until") || !r.Given("train.clip") || r.Given("data.lanes") || r.Given("seed") {
		t.Error("Given does not tell the user's values from others")
	}
	if r.Data.Lanes != 4 || r.Set("data.lanes", "0", "x") == nil || r.Set("data.lane", "1", "x") == nil ||
		r.Set("data.sources", "1", "x") == nil {
		t.Error("Set did not set, or took what is no value")
	}
	err = r.Errorf("train.until", "got %v, want more", r.Train.Until)
	want := "config: /recipes/reference.good.yaml:9: train.until: got 20 steps, want more\n" +
		"     9 |   until: 20 steps\n       |          ^"
	if err.Error() != want || !errors.Is(err, fault.Config) {
		t.Errorf("got %v", err)
	}
}

func TestDiff(t *testing.T) {
	a, err := parse(t, "testdata/reference.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b, err := parse(t, "testdata/reference.good.yaml", "train.until=9 steps", "engine.cpu.threads=2",
		"train.schedule={constant: {}}", "seed=1")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"engine.cpu.threads", "seed", "train.schedule", "train.schedule.constant.warmup",
		"train.schedule.cosine.floor", "train.schedule.cosine.warmup", "train.until",
	}
	got := Diff(a, b)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	may := slices.DeleteFunc(slices.Clone(got), func(k string) bool { return !MayChange(k) })
	if d := cmp.Diff([]string{"engine.cpu.threads", "train.until"}, may); d != "" {
		t.Errorf("may change (-want +got)\n%s", d)
	}
	c, _ := parse(t, "testdata/reference.good.yaml", "train.until=9 steps", "out=/x", "checkpoint.keep=9")
	if a.Hash() != c.Hash() || a.Hash() == b.Hash() {
		t.Error("the hash counts what may change, or does not count what may not")
	}
}

func TestLoad(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), nil)
	if !errors.Is(err, fault.Config) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing recipe: %v", err)
	}
	if r, err := Load("testdata/minimal.good.yaml", nil); err != nil || !filepath.IsAbs(r.Model.Path) {
		t.Errorf("%v, %v", r, err)
	}
}

// TestTraps is the table of traps of the YAML library.
func TestTraps(t *testing.T) {
	for _, tt := range []struct{ arg, want string }{
		{"data.sequence=1.5", "not a whole number"},
		{"seed=1e3", "exponent"},
		{"seed=1_", "underscore"},
		{"seed=010", "leading zeros"},
		{"seed=0x10", "not a number"},
		{"seed='12'", "remove the quotes"},
		{"seed=12:30", "not a number"},
		{"seed=-1", "signs"},
		{"seed=99999999999999999999", "out of range"},
		{"seed=~", "no value"},
		{"seed=null", "no value"},
		{"seed=!!int 3", "tag"},
		{"seed=[1]", "single value"},
		{"data.bos=yes", "want true or false"},
		{"data.bos=on", "want true or false"},
		{`data.bos="true"`, "remove the quotes"},
		{"data.bos=True", "want true or false"},
		{"train.optimizer.adamw.lr=.inf", "not a number"},
		{"train.optimizer.adamw.lr=.nan", "not a number"},
		{"train.optimizer.adamw.lr=1e999", "out of range"},
		{"train.optimizer.adamw.lr=0", "above 0"},
		{"data.sequence=3000000000", "at most"},
		{"train.until=[1 epoch]", "single value"},
		{"model={preset: tiny}", "model.vocabulary: missing"},
		{"evaluate.perplexity={a b: x}", "a name has"},
		{"data.sources=[]", "empty list"},
		{"data.sources={path: x}", "want a list"},
	} {
		_, err := parse(t, "testdata/reference.good.yaml", tt.arg)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.arg, err, tt.want)
		}
	}
}

func TestAliasFlood(t *testing.T) {
	text := "model: x\ntrain: {until: 1 epoch, batch: 1 sequence}\ndata:\n  sources:\n    - &a {path: &p ["
	text += strings.Repeat("x,", 900) + "y]}\n" + strings.Repeat("    - *a\n", 20_000)
	r, err := Parse("/r.yaml", []byte(text), nil)
	if err == nil || r != nil || !strings.Contains(err.Error(), "more than 100000 values") {
		t.Errorf("got an error of %d bytes", len(fmt.Sprint(err)))
	}
	if _, err := Parse("/r.yaml", []byte(strings.Repeat("k: 1\n", 50_000)), nil); err == nil ||
		len(err.Error()) > 1<<15 || !strings.HasSuffix(err.Error(), "more") {
		t.Errorf("many errors: got %d bytes", len(fmt.Sprint(err)))
	}
	if _, err := Parse("/r.yaml", make([]byte, maxText+1), nil); err == nil {
		t.Error("a recipe above the limit: no error")
	}
}

func TestKeys(t *testing.T) {
	var b strings.Builder
	for _, k := range Keys() {
		fmt.Fprintf(&b, "%s\n", k.Key)
		if k.Meaning == "" {
			t.Errorf("%s has no meaning", k.Key)
		}
	}
	golden(t, "testdata/keys.golden", b.String())
	golden(t, "../docs/recipe.md", Reference())
}

// TestFields: every field has a type that can be read, one way to be absent, and
// a default that passes its own check.
func TestFields(t *testing.T) {
	var walk func(key string, fields []field)
	walk = func(key string, fields []field) {
		for i := range fields {
			f := &fields[i]
			k := join(key, f.key)
			if f.plan != "" {
				continue
			}
			switch to := f.to.(type) {
			case choice:
				for _, kind := range to.kinds() {
					walk(join(k, kind.name), kind.fields)
				}
				continue
			case list:
				to.resize(1)
				walk(k, to.at(0).fields())
				continue
			case group:
				walk(k, to.fields())
				continue
			}
			if n := count(f.need, f.def != "", f.auto != ""); n != 1 {
				t.Errorf("%s: %d of need, def and auto are set, want 1", k, n)
			}
			d := newReader(&Recipe{File: "/r.yaml"}, "r.yaml", nil)
			if msg, _ := d.leaf(&yaml.Node{Kind: yaml.ScalarNode, Value: "1"}, f); strings.Contains(msg, "cannot be read") {
				t.Errorf("%s: %s", k, msg)
			}
			if d.absent(k, f); len(d.errs) > 0 {
				t.Errorf("%s: default %s: %v", k, f.def, d.errs[0])
			}
		}
	}
	var r Recipe
	walk("", r.fields())
}

func count(bs ...bool) int {
	n := 0
	for _, b := range bs {
		if b {
			n++
		}
	}
	return n
}

func ExampleParse() {
	_, err := Parse("/r/base.yaml", []byte("model: ./llama\ndata: {sources: [{path: a.txt}]}\n"+
		"train:\n  until: 1 epoch\n  bach: 8 sequences\n  lr: 3e-4\n"), nil)
	fmt.Println(err)
	// Output:
	// config: /r/base.yaml:3: train.batch: missing; it has no default
	//      3 | train:
	//        | ^
	// config: /r/base.yaml:5: train.bach: unknown key; did you mean "batch"?
	//      5 |   bach: 8 sequences
	//        |   ^
	// config: /r/base.yaml:6: train.lr: unknown key; there is train.optimizer.adamw.lr
	//      6 |   lr: 3e-4
	//        |   ^
}

// FuzzParse: no text and no argument panics, and what parses prints as a recipe
// that is the same.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "train.clip=1")
	}
	f.Add("a: &a [*a]", "data.sources.0.path.0=x")
	f.Fuzz(func(t *testing.T, text, arg string) {
		var args []string
		if arg != "" {
			args = []string{arg}
		}
		r, err := Parse("/r/fuzz.yaml", []byte(text), args)
		if err == nil {
			same(t, r)
		} else if !errors.Is(err, fault.Config) || err.Error() == "" {
			t.Errorf("got %T %v", err, err)
		}
	})
}
