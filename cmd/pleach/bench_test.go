// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pleach/engine/cpu"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
)

// TestBenchConfigs: the sizes are those of bench/torch_step.py, which counts the
// parameters and FLOPs of a step of 4 rows of 512 like this.
func TestBenchConfigs(t *testing.T) {
	for _, tt := range []struct {
		config     string
		parameters int
		flops      float64
	}{
		{"quick", 5_261_568, 58_211_696_640},
		{"d512", 58_073_600, 538_051_608_576},
		{"d1024", 0, 0},
	} {
		s, err := benchSpec(tt.config)
		if err != nil {
			t.Fatal(err)
		}
		n := s.Count()
		D, qkv := s.D, (s.H+2*s.G)*s.K
		want := 2*s.V*D + s.L*(D*qkv+D*D+3*D*s.F+2*D) + D
		if n != want || tt.parameters > 0 && n != tt.parameters {
			t.Errorf("%s: got %d parameters, want %d", tt.config, n, want)
		}
		if got := s.TrainFLOPs(model.Batch{B: 4, T: 512}); tt.flops > 0 && got != tt.flops {
			t.Errorf("%s: got %.0f FLOPs, want %.0f", tt.config, got, tt.flops)
		}
	}
	if s, err := benchSpec("llama3.2-1b"); err != nil || s.V != 128_256 {
		t.Errorf("llama3.2-1b: got %d words, %v", s.V, err)
	}
}

// TestTiedFLOPs: the table of a tied model is a product too.
func TestTiedFLOPs(t *testing.T) {
	s := model.Spec{L: 1, D: 8, H: 2, G: 2, K: 4, F: 16, V: 32, Tied: true}
	loose := s
	loose.Tied = false
	if a, b := s.TrainFLOPs(model.Batch{B: 1, T: 4}), loose.TrainFLOPs(model.Batch{B: 1, T: 4}); a != b {
		t.Errorf("tied: got %v, want %v", a, b)
	}
}

// TestWeightBytes: a step of decoding reads every weight once, but of a table that
// is not the head's too only the rows of its ids.
func TestWeightBytes(t *testing.T) {
	s, err := benchSpec("tiny")
	if err != nil {
		t.Fatal(err)
	}
	tied := s
	tied.Tied = true
	const rows = 3
	for _, tt := range []struct {
		spec model.Spec
		l    program.Layout
		want int
	}{
		{s, optim.F32.Layout(), 4 * (s.Count() - s.V*s.D + rows*s.D)},
		{s, optim.BF16.Layout(), 2 * (s.Count() - s.V*s.D + rows*s.D)},
		{tied, optim.BF16.Layout(), 2 * tied.Count()},
	} {
		p, err := model.Extend("decode", tt.spec, tt.l, 0, model.Window{N: rows, M: rows, Slots: rows, T: 8})
		if err != nil {
			t.Fatal(err)
		}
		if got := weightBytes(p); got != tt.want {
			t.Errorf("tied %v, %v: got %d bytes, want %d", tt.spec.Tied, tt.l.Compute, got, tt.want)
		}
	}
}

func TestNoise(t *testing.T) {
	steady, torn := samples{[]float64{10, 10.1, 9.9, 10, 10.2}}, samples{[]float64{10, 5, 15, 10, 3}}
	for _, tt := range []struct {
		noise noise
		want  string
	}{
		{noise{Peak: steady.spread(), Steps: steady.spread(), Others: 0.1, mine: 2}, ""},
		{noise{Peak: steady.spread(), Steps: torn.spread(), mine: 2}, "the quartiles of the measurements are 50 % apart, want at most 10 %"},
		{noise{Peak: torn.spread(), mine: 2}, "the quartiles of the peak are 50 % apart, want at most 10 %"},
		{noise{Others: 0.3, mine: 1}, "other processes took 0.3 of the 1 processors that it needs"},
	} {
		if got := tt.noise.tooNoisy(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.noise, got, tt.want)
		}
	}
	if m := torn.median(); m != 10 {
		t.Errorf("median: got %v, want 10", m)
	}
}

// TestVerdict: a difference smaller than the noise of either side is none.
func TestVerdict(t *testing.T) {
	report := func(speed, spread float64) stepReport {
		return stepReport{common: common{
			TokensPerSecond: speed, GFLOPS: speed, PeakGFLOPS: 400, PeakRSS: 1 << 20, Noise: noise{Steps: spread},
		}}
	}
	for _, tt := range []struct {
		old, now stepReport
		want     string
	}{
		{report(100, 0.01), report(104, 0.05), "the difference of +4.0 % is below the noise of 5.0 %\n"},
		{report(100, 0.05), report(96, 0.01), "the difference of -4.0 % is below the noise of 5.0 %\n"},
		{report(100, 0.01), report(125, 0.02), "+25.0 %, with a noise of 2.0 %\n"},
	} {
		var out bytes.Buffer
		if err := tt.now.compare(&out, &oldReport{common: tt.old.common}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("got %q, want %q at the end", got, tt.want)
		}
	}
}

// TestProfileTable: steps of a name are added up, and what is left over is shown.
func TestProfileTable(t *testing.T) {
	step := func(name string, flops int) cpu.StepInfo { return cpu.StepInfo{Name: name, FLOPs: flops, Bytes: 1000} }
	took := func(begin, d time.Duration) cpu.StepTime {
		return cpu.StepTime{Begin: begin, Duration: d, Spans: []cpu.Span{{Busy: d / 2}, {Worker: 1, Busy: d / 2}}}
	}
	p := profile{threads: 2, wall: 10 * time.Millisecond, runs: []profiledRun{{
		"accumulate", 0,
		[]cpu.StepInfo{step("add", 0), step("linear", 1e6), step("linear", 1e6)},
		[]cpu.StepTime{took(0, time.Millisecond), took(1, 2*time.Millisecond), took(3, 2*time.Millisecond)},
	}}}
	var out bytes.Buffer
	if err := p.print(&out, limits{peak: 1e9, bandwidth: 1e7}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"time share steps GFLOP/s of peak GB/s of floor busy step",
		"4.000 ms 40.0 % 2 0.5 50.0 % 0.0 50.0 % 50.0 % linear",
		"1.000 ms 10.0 % 1 0.0 10.0 % 50.0 % add",
		"5.000 ms 50.0 % between steps",
		"10.000 ms 100.0 % in all, with clocks read at every tile",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTrace: a trace is JSON of the trace event format; workers' boxes lie within
// their steps, and those within their program's.
func TestTrace(t *testing.T) {
	p := profile{threads: 2, wall: time.Second, runs: []profiledRun{{
		"update", 5 * time.Microsecond,
		[]cpu.StepInfo{{Name: "clip"}, {Name: "adamw", Bytes: 8}},
		[]cpu.StepTime{
			{Begin: 0, Duration: 1000, Spans: []cpu.Span{{Tiles: 1, Begin: 100, Duration: 800, Busy: 800}}},
			{Begin: 1500, Duration: 4000, Spans: []cpu.Span{
				{Tiles: 3, Begin: 1600, Duration: 3000, Busy: 2500}, {Worker: 1, Tiles: 2, Begin: 1700, Duration: 3800, Busy: 3000},
			}},
		},
	}}}
	var out bytes.Buffer
	if err := p.trace(&out); err != nil {
		t.Fatal(err)
	}
	var got struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range got.TraceEvents {
		if e.Phase == "M" {
			lines = append(lines, fmt.Sprintf("%d is %v", e.Track, e.Args["name"]))
			continue
		}
		lines = append(lines, fmt.Sprintf("%d %s %.1f–%.1f", e.Track, e.Name, e.Begin, e.Begin+e.Duration))
	}
	want := []string{
		"0 is steps", "1 is worker 0", "2 is worker 1",
		"0 update 5.0–10.5", "0 clip 5.0–6.0", "1 clip 5.1–5.9", "0 adamw 6.5–10.5", "1 adamw 6.6–9.6", "2 adamw 6.7–10.5",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
