// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"fmt"
	"time"

	"pleach/engine"
	"pleach/program"
)

// StepInfo describes a step: what an executable runs at once.
type StepInfo struct {
	Name  string // the kinds of its ops, joined by " + "
	Ops   []*program.Op
	FLOPs int // of its products and attention
	Bytes int // read from and written to memory, each value once
}

// StepTime is when a step of a run happened, counted from the run's begin.
type StepTime struct {
	Begin, Duration time.Duration
	Spans           []Span
}

// Span is a worker's part of one phase of a step: from its first tile to the end
// of its last, of which it was busy in tiles for Busy.
type Span struct {
	Worker, Phase int
	Tiles         int
	Begin         time.Duration // from the run's begin
	Duration      time.Duration
	Busy          time.Duration
}

// Profiled runs a call as x.Run does, and measures each of Steps(x); steps of
// the half that is not run take no time. The clock is read twice per tile.
func Profiled(x engine.Executable, c *engine.Call) ([]StepTime, error) {
	y, ok := x.(*executable)
	if !ok {
		return nil, fmt.Errorf("cpu: profile: got a %T, want an executable of this engine", x)
	}
	times := make([]StepTime, len(Steps(x)))
	start := time.Now()
	err := y.runSteps(c, func(i int, jobs []*job) {
		t := &times[i]
		t.Begin = time.Since(start)
		for n, j := range jobs {
			t.Spans = append(t.Spans, y.timed(j, n, start)...)
		}
		t.Duration = time.Since(start) - t.Begin
	})
	return times, err
}

// timed runs a job and says what each worker did of it.
func (x *executable) timed(j *job, at int, start time.Time) []Span {
	spans := make([]Span, x.e.threads)
	x.e.pool.do(&job{phase: phase{tiles: j.tiles, run: func(worker, tile int) {
		s, begin := &spans[worker], time.Since(start)
		j.run(worker, tile)
		end := time.Since(start)
		if s.Tiles == 0 {
			s.Begin = begin
		}
		s.Tiles++
		s.Busy += end - begin
		s.Duration = end - s.Begin
	}}})
	var busy []Span
	for w, s := range spans {
		if s.Tiles > 0 {
			s.Worker, s.Phase = w, at
			busy = append(busy, s)
		}
	}
	return busy
}

// Steps lists what x runs, in order.
func Steps(x engine.Executable) []StepInfo {
	var infos []StepInfo
	if y, ok := x.(*executable); ok {
		for _, st := range y.s.steps {
			infos = append(infos, StepInfo{st.name(), st.ops, st.flops(), st.bytes()})
		}
	}
	return infos
}
