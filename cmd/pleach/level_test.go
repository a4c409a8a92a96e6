// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pleach/internal/golden"
	"pleach/kernel"
	"pleach/track"
)

// foreign is a level that this processor lacks.
func foreign() string {
	if runtime.GOARCH == "arm64" {
		return "avx512"
	}
	return "neon"
}

// startsOf are the beginnings in a run's events.jsonl, and its warnings.
func startsOf(t testing.TB, out string) (starts []track.Start, warnings []string) {
	t.Helper()
	f, err := os.Open(filepath.Join(out, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = track.Read(f, func(r track.Record) error {
		switch e := r.Event.(type) {
		case track.Start:
			starts = append(starts, e)
		case track.Warning:
			warnings = append(warnings, e.Reason)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return starts, warnings
}

// TestLevelRefused: a level that the processor lacks ends every verb that
// computes with code 2, and the message says which it has.
func TestLevelRefused(t *testing.T) {
	recipe, model := recipeOf(t, "plain"), golden.Dir("score/mha")
	out := filepath.Join(t.TempDir(), "run")
	verbs := [][]string{
		{"train", recipe, "out=" + out},
		{"train", recipe, "out=" + out, "--dry-run"},
		{"inspect", recipe},
		{"score", model, filepath.Join(model, "rows.jsonl")},
		{"eval", model, "--perplexity", "a=text"},
		{"generate", model, "--ids", "1,2"},
		{"quickstart", "--out", out},
	}
	refused := func(word string, args []string) {
		t.Helper()
		code, errs := pleach(args...)
		if _, err := os.Stat(out); code != 2 || !strings.Contains(errs, word) || err == nil {
			t.Errorf("%s %v: code %d, %q", word, args, code, errs)
		}
		for _, l := range kernel.Levels() {
			if !strings.Contains(errs, l.String()) {
				t.Errorf("%v: %q does not name %v", args, errs, l)
			}
		}
	}
	refused("engine.cpu.level", []string{"train", recipe, "out=" + out, "engine.cpu.level=" + foreign()})
	for _, name := range []string{foreign(), "AVX", "mmx"} {
		t.Setenv(levelVariable, name)
		for _, args := range verbs {
			refused(levelVariable, args)
		}
	}
}

// TestLevelRecord: the level of a run is in its events, its effective recipe and
// its state; the environment wins over the recipe; and a run that goes on with
// another level says so.
func TestLevelRecord(t *testing.T) {
	best := kernel.Best().String()
	recipe, out := recipeOf(t, "plain"), filepath.Join(t.TempDir(), "run")
	for i, step := range []struct{ forced, asked, want, origin string }{
		{"portable", best, "portable", "# PLEACH_CPU"},
		{"", "portable", "portable", "# command line"},
		{"auto", "auto", best, "# the best of this processor"},
	} {
		t.Setenv(levelVariable, step.forced)
		until := []string{"train.until=1 steps", "train.until=2 steps", "train.until=3 steps"}[i]
		code, errs := pleach("train", recipe, "out="+out, until, "train.schedule.cosine.length=20 steps",
			"engine.cpu.level="+step.asked)
		if code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		starts, warnings := startsOf(t, out)
		if got := starts[len(starts)-1].Level; len(starts) != i+1 || got != step.want {
			t.Errorf("start %d: level %s, want %s", len(starts), got, step.want)
		}
		told := strings.Contains(strings.Join(warnings, "\n"), "portable and goes on with cpu "+best)
		if want := i == 2 && best != "portable"; told != want {
			t.Errorf("start %d: warned of another level: %v, want %v: %q", i, told, want, warnings)
		}
		text, err := os.ReadFile(filepath.Join(out, "run.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		line := text[strings.Index(string(text), "    level:"):]
		if got, _, _ := strings.Cut(string(line), "\n"); best != "portable" &&
			(!strings.Contains(got, step.want) || !strings.Contains(got, step.origin)) {
			t.Errorf("run.yaml: %q, want %s %s", got, step.want, step.origin)
		}
	}
}
