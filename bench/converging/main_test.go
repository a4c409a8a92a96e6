// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pleach/config"
	"pleach/internal/fault"
)

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
	}
}

// What is no number is left out of a figure, and a panel may be empty.
func TestChartOfNothing(t *testing.T) {
	points := make([]summary, bins)
	for i := range points {
		points[i] = summarize([]float64{math.NaN()})
	}
	svg := chart{1e6, []panel{{"a < b", []line{{"diverged", "red", points}}}, {"none", nil}}}.svg()
	wellFormed(t, svg)
	if s := string(svg); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") || !strings.Contains(s, "a &lt; b") {
		t.Errorf("got %s", s)
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		lo, hi float64
		want   string
	}{
		{0, 1, "0 0.2 0.4 0.6 0.8 1"},
		{-0.013, 0.11, "0 0.05 0.1"},
		{0, 1.6384, "0 0.5 1 1.5"},
		{-3, 44, "0 10 20 30 40"},
	} {
		var got []string
		for _, v := range ticks(tt.lo, tt.hi, 5) {
			got = append(got, tick(v))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%v to %v: got %s, want %s", tt.lo, tt.hi, s, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	e, o, err := parse([]string{"--modes", "f32, bf16", "--seeds", "3", "--beta2", "0.9,0.99", "--out", "x"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.modes) != 2 || e.modes[1] != plain16 || e.seeds[0] != 3 || e.betas[1] != 0.99 || o.out != "x" {
		t.Errorf("got %+v, %+v", e, o)
	}
	for _, args := range []string{
		"--modes=fp8", "--seeds=a", "--beta2=", "more", "--at-once=0", "--steps=10", "--lr=0", "--beta2-lr=1;2", "--what",
	} {
		if _, _, err := parse([]string{args}, io.Discard); fault.Exit(err) != 2 {
			t.Errorf("%s: got %v, want exit code 2", args, err)
		}
	}
	if _, _, err := parse([]string{"--help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: got %v", err)
	}
}

// Every recipe is one that pleach train takes.
func TestRecipes(t *testing.T) {
	e, _, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	rates := map[mode]float64{}
	for _, s := range e.specs() {
		r, err := config.Parse(filepath.Join("/dir", s.name()+".yaml"), []byte(s.recipe(e.set)), nil)
		if err != nil {
			t.Fatal(err)
		}
		a := r.Train.Optimizer.AdamW
		if r.Out != filepath.Join("/dir", s.name()) || a.Betas[1] != s.Beta2 || int(r.Seed) != s.Seed {
			t.Errorf("%s: got %s, %v, seed %d", s.name(), r.Out, a.Betas, r.Seed)
		}
		rates[s.Mode] = a.LR
	}
	if a, b := float32(rates[plainF32]), float32(rates[again]); a == b {
		t.Errorf("both runs in f32 have the rate %v", a)
	}
}

// A folder belongs to one experiment.
func TestKeep(t *testing.T) {
	w := &work{dir: filepath.Join(t.TempDir(), "a", "b"), set: small()}
	if err := errors.Join(w.keep(), w.keep()); err != nil {
		t.Fatal(err)
	}
	w.set.Steps++
	if err := w.keep(); fault.Exit(err) != 4 {
		t.Errorf("got %v, want exit code 4", err)
	}
}

// A run whose events say that it is done counts as done; others do not.
func TestResults(t *testing.T) {
	e, _ := made(t)
	w := &work{dir: t.TempDir(), set: e.set}
	specs := e.specs()
	for i, text := range [][]byte{events(t, falling), encode(t, nil)} {
		file := w.events(specs[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, text, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := w.results(specs)
	if err != nil || len(all) != 1 || all[specs[0]] == nil {
		t.Errorf("got %v, %v, want the first run alone", all, err)
	}
	if got := w.steps(specs); got != e.set.Steps {
		t.Errorf("got %d steps, want %d", got, e.set.Steps)
	}
}

func TestProgress(t *testing.T) {
	if got, want := progress(50, 150, 400, 100*time.Second), "step 150 of 400, done in 8m20s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := progress(0, 100, 400, time.Second), "step 100 of 400"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
