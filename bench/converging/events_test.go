// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pleach/track"
)

// small are settings with four steps in a bin.
func small() settings {
	return settings{Preset: "tiny", Vocabulary: 300, Sequence: 8, Batch: 2, Steps: 4 * bins, Floor: "10 %"}
}

// events makes those of a run whose loss is a function of the step.
func events(t *testing.T, loss func(step int) float64, more ...track.Event) []byte {
	t.Helper()
	var all []track.Event
	for s := 1; s <= small().Steps; s++ {
		all = append(all, track.Step{Step: int64(s), LossNats: loss(s), GradNorm: 0.5, WeightNorm: 30 + float64(s)})
	}
	n := int64(small().Steps)
	all = append(all, more...)
	all = append(all,
		track.Eval{Step: n, Name: "general", NLLNats: loss(int(n)), Tokens: 300, Bytes: 900},
		track.Eval{Step: n, Name: "domain", NLLNats: loss(int(n)) + 1, Tokens: 100, Bytes: 100},
		track.End{Step: n, Reason: "finished"})
	return encode(t, all)
}

func encode(t *testing.T, all []track.Event) []byte {
	t.Helper()
	var b []byte
	for _, e := range all {
		var err error
		if b, err = track.Encode(b, time.Unix(0, 0), e); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func falling(step int) float64 { return 6 - float64(step)/100 }

func read(t *testing.T, text []byte) *result {
	t.Helper()
	r, err := readEvents(bytes.NewReader(text), small())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReadEvents(t *testing.T) {
	r := read(t, events(t, falling,
		track.Spike{Step: 20, Length: 1},
		track.Spike{Step: 30, Length: 1}, track.Spike{Step: 31, Length: 2},
		// The run was resumed from step 29: its later lines count.
		track.Step{Step: 30, LossNats: falling(30), GradNorm: 7, WeightNorm: 60},
		track.Step{Step: 31, LossNats: falling(31), GradNorm: math.NaN(), WeightNorm: 61},
		track.Spike{Step: 30, Length: 1}))
	if !r.finished || r.last != 31 || r.norm != 7 || r.weightNorm != 61 || r.refused != 1 {
		t.Errorf("got %+v", r)
	}
	if want := (spikes{count: 2, steps: 2, single: 2}); r.spikes != want {
		t.Errorf("got %+v, want %+v", r.spikes, want)
	}
	// (300·4 + 100·5) nats over 400 tokens and 1000 bytes.
	if math.Abs(r.nats-4.25) > 1e-12 || math.Abs(r.bits-1.7/math.Ln2) > 1e-12 {
		t.Errorf("held out: got %v nats a token and %v bits a byte", r.nats, r.bits)
	}
	// Steps 1 to 4 are the first bin.
	if len(r.loss) != bins || math.Abs(r.loss[0]-falling(1)+0.015) > 1e-12 {
		t.Errorf("the curve begins with %v", r.loss[0])
	}
}

func TestReadEventsUnfinished(t *testing.T) {
	n := int64(small().Steps)
	for name, all := range map[string][]track.Event{
		"none":    nil,
		"stopped": {track.Step{Step: 7}, track.End{Step: 7, ExitCode: 75}},
		"failed":  {track.Eval{Step: n}, track.End{Step: n, ExitCode: 1}},
		"killed":  {track.Step{Step: n}, track.Eval{Step: n}},
		"longer":  {track.Step{Step: n + 1}, track.Spike{Step: n + 1}, track.End{Step: n + 1}},
	} {
		if r := read(t, encode(t, all)); r.finished {
			t.Errorf("%s: got a finished run", name)
		}
	}
}

func TestCount(t *testing.T) {
	for _, tt := range []struct {
		length []int
		want   spikes
	}{
		{[]int{0, 0}, spikes{}},
		{[]int{1, 0}, spikes{1, 1, 1}},
		{[]int{1, 2, 3, 0, 1, 0, 1, 2, 0}, spikes{3, 6, 1}},
	} {
		if got := count(tt.length); got != tt.want {
			t.Errorf("%v: got %+v, want %+v", tt.length, got, tt.want)
		}
	}
}

func TestSummarize(t *testing.T) {
	if got, want := summarize([]float64{1, 2, 6}), (summary{3, 3, math.Sqrt(7), 1, 6}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := summarize([]float64{-2}), (summary{1, -2, 0, -2, -2}); got != want || got.largest() != 2 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// made is an experiment with results in which plain bf16 is worse by 0.5 and
// β2 0.99 by 0.25, and everything else by a hundredth of the seed.
func made(t *testing.T) (experiment, map[spec]*result) {
	t.Helper()
	e := experiment{
		set: small(), modes: modes(), seeds: []int{1, 2}, lr: 1e-3,
		betas: []float64{0.95, 0.99}, betaModes: []mode{plainF32, sr}, betaRates: []float64{1e-2},
	}
	all := map[spec]*result{}
	for _, s := range e.specs() {
		more := 0.01 * float64(s.Seed)
		if s.Mode == plain16 {
			more += 0.5
		}
		var extra []track.Event
		if s.Beta2 == 0.99 {
			more += 0.25
			extra = append(extra, track.Spike{Step: 50, Length: 1})
		}
		if s.Mode == plainF32 && s.Beta2 == 0.95 {
			more = 0
		}
		all[s] = read(t, events(t, func(step int) float64 { return falling(step) + more }, extra...))
	}
	return e, all
}

func TestSpecs(t *testing.T) {
	e, _ := made(t)
	if got := len(e.specs()); got != 20 {
		t.Errorf("got %d runs, want 6 and 4 of each of two seeds", got)
	}
	e.betaRates = []float64{e.lr}
	if got := len(e.specs()); got != 16 {
		t.Errorf("with one rate: got %d runs, want those of both comparisons once", got)
	}
}

func TestPage(t *testing.T) {
	e, all := made(t)
	file := filepath.Join(t.TempDir(), "page.md")
	const text = "<!-- SPDX-FileCopyrightText: 2026 The pleach authors -->\n" +
		"<!-- SPDX-License-Identifier: Apache-2.0 -->\n\n" +
		"Before.\n<!-- begin setting -->\nold\n<!-- end setting -->\n<!-- begin precision -->\n" +
		"<!-- end precision -->\nBetween.\n<!-- begin beta2 -->\n<!-- end beta2 -->\nAfter.\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is written is written over
		if err := writePage(file, e, all); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "page.md", got)
	for _, name := range []string{"page.svg", "page-beta2.svg"} {
		svg, err := os.ReadFile(filepath.Join(filepath.Dir(file), name))
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, svg)
	}
	if err := os.WriteFile(file, []byte("no marks\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := writePage(file, e, all); err == nil {
		t.Error("a page without marks is written")
	}
}

var update = flag.Bool("update", false, "rewrite the golden files of this package")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

func TestVerdict(t *testing.T) {
	e, all := made(t)
	groups := e.precisions(all)
	if got := groups[plain16].band(); math.Abs(got-0.52) > 1e-9 {
		t.Errorf("band: got %v, want 0.52", got)
	}
	delete(groups, plain16)
	groups[plain16] = groups[mixed]
	if got, want := verdict(groups), "**HLAT's finding is not seen here.** "; got[:len(want)] != want {
		t.Errorf("got %q", got)
	}
}
