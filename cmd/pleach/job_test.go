// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"pleach/config"
	"pleach/engine/cpu"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/train"
)

// sized writes a recipe of a model from scratch, a corpus of ids and a text to
// evaluate, in a folder of its own.
func sized(t testing.TB, model string) string {
	t.Helper()
	dir := t.TempDir()
	var ids, text strings.Builder
	for i := range 64 {
		line := make([]int, 40+i%7)
		for j := range line {
			line[j] = (i*31 + j*j) % 256
		}
		b, _ := json.Marshal(map[string][]int{"tokens": line})
		ids.Write(append(b, '\n'))
		fmt.Fprintf(&text, "line %d of a text to evaluate\n", i%5)
	}
	for name, content := range map[string]string{
		"ids.jsonl": ids.String(), "held.txt": text.String()[:400],
		"recipe.yaml": "model: " + model + `
data:
  sequence: 32
  sources: [{path: ids.jsonl, field: tokens}]
train: {until: 2 steps, batch: 2 sequences, precision: f32}
out: run
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "recipe.yaml")
}

// ourVocabulary is a tokenizer of a few hundred ids.
func ourVocabulary() string { return tokenTestdata("ours/tokenizer.json") }

// TestPlannedMemory: what the plan says that an engine will allocate is what it has
// allocated once everything is compiled, to the byte.
func TestPlannedMemory(t *testing.T) {
	tiny := "{preset: tiny, vocabulary: " + ourVocabulary() + "}"
	for _, overrides := range [][]string{
		{},
		{"train.micro=1 sequences", "engine.cpu.threads=1"},
		{"train.recompute=full", "data.sequence=48"},
		{"train.recompute=selective", "train.batch=6 sequences", "train.micro=3 sequences", "engine.cpu.threads=2"},
		{"model.tied=true", "model.layers=3", "evaluate.perplexity.held=held.txt"},
		{"train.precision=mixed", "evaluate.perplexity.held=held.txt"},
		{"train.precision=bf16-sr", "train.optimizer.adamw.state=bf16", "train.recompute=full"},
		{"train.precision=bf16-sr", "model.tied=true", "train.recompute=selective", "evaluate.perplexity.held=held.txt"},
		{"model.width=48", "model.heads=6", "model.kv_heads=2", "model.ffn=100", "evaluate.perplexity.held=held.txt"},
	} {
		r, err := config.Load(sized(t, tiny), overrides)
		if err != nil {
			t.Fatal(err)
		}
		p, err := prepare(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		e := cpu.New(p.options)
		j := p.job(e)
		j.Sink = sinks{}
		if j.Evaluate, err = p.evaluation(e); err != nil {
			t.Fatal(err)
		}
		if _, err := train.Run(context.Background(), j); err != nil {
			t.Fatal(err)
		}
		if got, want := e.Memory(), p.plan.Memory; got != want {
			t.Errorf("%v: allocated %+v, planned %+v", overrides, got, want)
		}
		p.close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// peak runs the command in a process of its own, and returns the most memory
// that it had in bytes, and the memory that it said it would take.
func peak(t *testing.T, args ...string) (real, predicted float64) {
	t.Helper()
	c := launch(t, args...)
	done := make(chan int)
	go func() { done <- c.end() }()
	status := fmt.Sprintf("/proc/%d/status", c.Process.Pid)
	for code := -2; code == -2; {
		select {
		case code = <-done:
		case <-time.After(2 * time.Millisecond):
			if kb, ok := highWater(status); ok {
				real = kb * 1024
			}
		}
		if code > 0 {
			t.Fatalf("exit %d: %s", code, c.said.String())
		}
	}
	m := regexp.MustCompile(`memory: ([0-9.]+ [KMG]iB):`).FindStringSubmatch(c.said.String())
	if m == nil {
		return real, 0
	}
	n, err := unit.Parse[unit.Bytes](m[1])
	if err != nil {
		number, name, _ := strings.Cut(m[1], " ")
		x, _ := strconv.ParseFloat(number, 64)
		return real, x * map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[name]
	}
	return real, float64(n)
}

// highWater is the most memory that a process has had, in KiB.
func highWater(status string) (float64, bool) {
	text, err := os.ReadFile(status)
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(text), "VmHWM:")
	if !ok {
		return 0, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(line), " kB"), 64)
	return kb, err == nil
}

// TestPeak: the memory that a run says it will take is what its process has
// taken in the end, within 10 %: from scratch, resumed, and continuing a model
// directory with an evaluation.
func TestPeak(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model of 300 MiB")
	}
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	recipe := sized(t, "{preset: tiny, vocabulary: "+ourVocabulary()+", layers: 6, width: 448, heads: 8, ffn: 1408}")
	args := []string{"train", recipe, "engine.cpu.threads=2", "checkpoint.every=1 steps", "checkpoint.keep=1"}
	scratch, predicted := peak(t, args...)
	check := func(what string, real float64) {
		t.Helper()
		t.Logf("%s: predicted %.1f MiB, real %.1f MiB: %+.1f %%", what, predicted/(1<<20), real/(1<<20), 100*(predicted/real-1))
		if r := predicted / real; r < 0.9 || r > 1.1 {
			t.Errorf("%s: off by more than 10 %%", what)
		}
	}
	check("from scratch", scratch)
	resumed, _ := peak(t, append(args, "train.until=3 steps")...)
	check("resumed", resumed)

	dir := filepath.Dir(recipe)
	text := strings.Replace(string(read(t, recipe)), "out: run", "out: next\nevaluate: {at_start: false, perplexity: {held: held.txt}}", 1)
	model := regexp.MustCompile(`(?m)^model: .*$`).ReplaceAllString(text, "model: run")
	recipe = filepath.Join(dir, "next.yaml")
	if err := os.WriteFile(recipe, []byte(model), 0o666); err != nil {
		t.Fatal(err)
	}
	var next float64
	next, predicted = peak(t, "train", recipe, "engine.cpu.threads=2")
	check("continued and evaluated", next)
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDoesNotFit: a model that is too large is refused with the figure, before
// anything of it is allocated.
func TestDoesNotFit(t *testing.T) {
	if available() == 0 {
		t.Skip("this system does not say how much memory it has")
	}
	recipe := sized(t, "{preset: llama-70b, vocabulary: "+ourVocabulary()+"}")
	c := launch(t, "train", recipe, "data.sequence=1024")
	code := c.end()
	want := `^pleach: plan: 68\.5 B of parameters do not fit: micro-batches of 1 × 1024 tokens with recomputation "full" ` +
		`need 1(\.0\d)? TiB \(state [0-9.]+ [TG]iB, activations .*, the rest .*\), this machine has [0-9.]+ [TG]iB\n$`
	if said := c.said.String(); code != 2 || !regexp.MustCompile(want).MatchString(said) {
		t.Errorf("exit %d: %s\nwant %s", code, said, want)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(recipe), "run")); err == nil {
		t.Error("it made a run directory")
	}
}

// TestPrepareInterrupted: a run that is told to stop before its first step is
// not made, and says so with the code that means try again.
func TestPrepareInterrupted(t *testing.T) {
	model := "{preset: tiny, vocabulary: " + ourVocabulary() + "}"
	r, err := config.Load(sized(t, model), []string{"train.until=2 epochs"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trainRecipe(ctx, r, newProgress(io.Discard)); fault.Exit(err) != 1 || err.Error() != "interrupted" {
		t.Errorf("got %v, want interrupted", err)
	}
	if _, err := os.Stat(r.Out); err == nil {
		t.Error("there is a run directory")
	}
}
