// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"pleach/config"
	"pleach/internal/fault"
)

// smallest are sizes of which a whole quickstart takes a second.
func smallest() *sizing {
	return &sizing{
		Preset: "tiny", Layers: 1, Width: 16, Heads: 2, FFN: 32, Vocabulary: 300, Sequence: 16, Batch: 2,
		Base: 12, Continue: 6, Replay: 7, BaseLR: 5e-3, ContinueLR: 2e-3,
		HeldOut: 1000, Text: 25_000, Learn: 20_000,
	}
}

// writeTree writes files into a new folder.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, tree := t.TempDir(), fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o666}
	}
	if err := os.CopyFS(dir, tree); err != nil {
		t.Fatal(err)
	}
	return dir
}

// twoTexts are a general text and a domain of some size.
func twoTexts(t *testing.T) []string {
	dir := writeTree(t, map[string]string{
		"prose.txt": strings.Repeat("It was a text of some length, and it went on about nothing in particular.\n", 700),
		"table.txt": strings.Repeat("a = [1, 2, 3]; b = {x: 4, y: 5}; c = f(a[0], b.x)\n", 1000),
	})
	return []string{filepath.Join(dir, "prose.txt"), filepath.Join(dir, "table.txt")}
}

// start runs a quickstart and returns what it printed.
func start(ctx context.Context, out string, minutes float64, texts []string) (stdout, stderr string, err error) {
	var o, e bytes.Buffer
	q := quickstart{out: out, texts: texts, minutes: minutes, threads: 1, sizes: smallest(), stdout: &o, stderr: &e}
	err = q.run(ctx)
	return o.String(), e.String(), err
}

func TestQuickstart(t *testing.T) {
	texts, out := twoTexts(t), filepath.Join(t.TempDir(), "q")
	first, said, err := start(t.Context(), out, 1, texts)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, want := range []string{
		"general: prose.txt", "domain: table.txt", "base  ", "continued, 10 % replay", "Gain:", "Forgetting:", "Each goes on from: a = [1, 2,",
		"Next:", " generate ", "Trained on 800 tokens at ",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("the report lacks %q:\n%s", want, first)
		}
	}
	for _, want := range []string{"plan: model ", "tokenizer: byte-level BPE of 300", "step 12/12", "step 6/6", "step 7/7"} {
		if !strings.Contains(said, want) {
			t.Errorf("the progress lacks %q:\n%s", want, said)
		}
	}
	for _, s := range []string{"base/checkpoints/step-00000012", "continued/checkpoints/step-00000006", "replay/checkpoints/step-00000007"} {
		m, err := openModel(filepath.Join(out, s))
		if err != nil {
			t.Fatal(err)
		}
		m.close()
	}

	second, said, err := start(t.Context(), out, 1, texts)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(said, "complete, nothing to do") != 3 || strings.Contains(said, "step ") || strings.Contains(said, "learned") {
		t.Errorf("the second call did work again:\n%s", said)
	}
	if d := cmp.Diff(until(first, "\nTrained on"), until(second, "\nTrained on")); d != "" {
		t.Errorf("the second report is another one (-first +second):\n%s", d)
	}
	if _, _, err := start(t.Context(), out, 2, texts[1:]); fault.Exit(err) != 4 ||
		!strings.Contains(err.Error(), "--minutes: got 2, it was made with 1; --text: got "+texts[1]) {
		t.Errorf("another plan in the same folder: %v, want exit code 4 and what differs", err)
	}
}

// until is s up to a mark.
func until(s, mark string) string {
	s, _, _ = strings.Cut(s, mark)
	return s
}

func TestQuickstartDeterministic(t *testing.T) {
	texts := twoTexts(t)
	var weights [2][]byte
	for i := range weights {
		out := filepath.Join(t.TempDir(), "q")
		if _, said, err := start(t.Context(), out, 1, texts); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		files, err := filepath.Glob(filepath.Join(out, "replay/checkpoints/step-00000007/model*.safetensors"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no weights: %v", err)
		}
		if weights[i], err = os.ReadFile(files[0]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(weights[0], weights[1]) {
		t.Error("two quickstarts of one plan made different models")
	}
}

// A quickstart that is stopped goes on where it was and ends the same.
func TestQuickstartResumes(t *testing.T) {
	texts, out := twoTexts(t), filepath.Join(t.TempDir(), "q")
	ctx, stop := context.WithCancel(t.Context())
	e := &stopAfter{mark: "continued  step 1/6", stop: stop}
	q := quickstart{out: out, texts: texts, minutes: 1, threads: 1, sizes: smallest(), stdout: &bytes.Buffer{}, stderr: e}
	if err := q.run(ctx); !errors.Is(err, fault.Stopped) {
		t.Fatalf("got %v, want that it was stopped\n%s", err, e)
	}
	report, said, err := start(t.Context(), out, 1, texts)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "base: complete, nothing to do") || !strings.Contains(said, "continued: resumed from ") {
		t.Errorf("the second call did not go on:\n%s", said)
	}
	whole, _, err := start(t.Context(), filepath.Join(t.TempDir(), "q"), 1, texts)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(until(whole, "\nTrained on"), until(report, "\nTrained on")); d != "" {
		t.Errorf("the report is another one (-whole +resumed):\n%s", d)
	}
}

// With no time left after the base model, the continuations become as short as
// they may, and stay so.
func TestQuickstartSettles(t *testing.T) {
	texts, out := twoTexts(t), filepath.Join(t.TempDir(), "q")
	first, said, err := start(t.Context(), out, 1e-4, texts)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if !strings.Contains(said, ": 1 and 1 steps instead of 6 and 7") || !strings.Contains(said, "continued  step 1/1 ") {
		t.Errorf("the continuations are as long as planned:\n%s", said)
	}
	second, said, err := start(t.Context(), out, 1e-4, texts)
	if err != nil || strings.Count(said, "complete, nothing to do") != 3 {
		t.Fatalf("the second call: %v\n%s", err, said)
	}
	if d := cmp.Diff(until(first, "\nTrained on"), until(second, "\nTrained on")); d != "" {
		t.Errorf("the second report is another one (-first +second):\n%s", d)
	}
}

// stopAfter is a writer that calls stop when it has seen a mark.
type stopAfter struct {
	bytes.Buffer
	mark string
	stop func()
}

func (s *stopAfter) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	if strings.Contains(s.String(), s.mark) {
		s.stop()
	}
	return n, err
}

func TestQuickstartRefuses(t *testing.T) {
	used := writeTree(t, map[string]string{"letter.txt": "Dear"})
	torn := writeTree(t, map[string]string{planFile: `{"minutes":`})
	other := writeTree(t, map[string]string{planFile: `{"minutes":5}`})
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--minutes", "0"}, 2, "--minutes: got 0, want a number above 0"},
		{[]string{"--minutes", "NaN"}, 2, "--minutes: got NaN"},
		{[]string{"--threads", "-1"}, 2, "--threads: got -1"},
		{[]string{"--out", used}, 4, "holds files but no plan.json"},
		{[]string{"--out", torn}, 4, "plan.json: "},
		{[]string{"--out", other}, 4, "is no plan of this version"},
		{[]string{"--text", "a", "--text", "b", "--text", "c", "--out", t.TempDir()}, 2, "got 3, want two"},
		{[]string{"extra"}, 2, "unknown command"},
	} {
		var stderr bytes.Buffer
		code := run(append([]string{"quickstart"}, tt.args...), &bytes.Buffer{}, &stderr)
		if code != tt.code || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%v: exit code %d, %q; want %d, %q", tt.args, code, stderr.String(), tt.code, tt.want)
		}
	}
}

func TestQuickRecipes(t *testing.T) {
	q := quickstart{out: t.TempDir(), plan: quickPlan{Names: []string{"comments", "code"}, Sizes: candidates()[2].sizing}}
	q.plan.Sizes.Base, q.plan.Sizes.Continue, q.plan.Sizes.Replay = 100, 50, 56
	for i, s := range q.stages() {
		r, err := config.Parse(filepath.Join(q.out, s.file), []byte(q.recipe(i)), nil)
		if err != nil {
			t.Fatalf("%s: %v", s.file, err)
		}
		if int(r.Train.Until.Steps) != s.steps || r.Out != filepath.Join(q.out, s.name) {
			t.Errorf("%s: until %v in %s, want %d steps in %s", s.file, r.Train.Until, r.Out, s.steps, s.name)
		}
		if i > 0 && r.Model.Path != q.checkpoint(q.stages()[0]) {
			t.Errorf("%s: starts from %s, want %s", s.file, r.Model.Path, q.checkpoint(q.stages()[0]))
		}
	}
}

func TestTable(t *testing.T) {
	rows := []tableRow{
		{"base", [2]score{{545, 2.9104}, {1624, 3.4012}}},
		{"continued", [2]score{{2003.4, 3.512}, {189.44, 2.412}}},
		{"continued, 10 % replay", [2]score{{877, 3.131}, {89.9, 2.405}}},
		{"base + continued merged", [2]score{{654, 2.994}, {406, 2.861}}},
	}
	var b bytes.Buffer
	printTable(&b, rows, []string{"comments", "code"})
	printMeaning(&b, rows)
	const want = `
Held-out text                     general: comments               domain: code
                          perplexity  bits per byte  perplexity  bits per byte
base                           545.0          2.910        1624          3.401
continued                       2003          3.512       189.4          2.412
continued, 10 % replay         877.0          3.131       89.90          2.405
base + continued merged        654.0          2.994       406.0          2.861

Gain: continued on the domain, its perplexity there falls by 88 %.
Forgetting: the perplexity on general text rises by 268 %.
With 10 % replay it rises by 61 % there, and falls by 94 % on the domain.
With base and continued merged, which needs no training, it rises by 20 % there, and falls by 75 % on the domain.
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("table (-want +got):\n%s", d)
	}
}

func TestShell(t *testing.T) {
	for s, want := range map[string]string{
		"a/b-c.d=e": "a/b-c.d=e", "": "''", "func (r *R) x": "'func (r *R) x'", "it's": `'it'\''s'`, "$HOME": "'$HOME'",
	} {
		if got := shell(s); got != want {
			t.Errorf("shell(%q) = %s, want %s", s, got, want)
		}
	}
	if got := command("/tmp/go-build12/b001/exe/pleach"); got != "go run ./cmd/pleach" {
		t.Errorf("under go run the command is %q", got)
	}
}
