// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"pleach/engine/cpu"
)

// traceEvent is an event of the trace event format that Chrome's tracing and
// Perfetto read; times are microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"` // X: from ts for dur; M: says what a track is called
	Process  int            `json:"pid"`
	Track    int            `json:"tid"`
	Begin    float64        `json:"ts"`
	Duration float64        `json:"dur"`
	Args     map[string]any `json:"args,omitempty"`
}

// trace writes the profile in the trace event format: a track for the programs
// and their steps, and one for each worker. A worker's box lasts from its first
// tile of a phase to the end of the last.
func (p profile) trace(w io.Writer) error {
	name := func(track int, what string) traceEvent {
		return traceEvent{Name: "thread_name", Phase: "M", Process: 1, Track: track, Args: map[string]any{"name": what}}
	}
	events := []traceEvent{name(0, "steps")}
	for worker := range p.threads {
		events = append(events, name(worker+1, fmt.Sprintf("worker %d", worker)))
	}
	for _, r := range p.runs {
		events = append(events, r.events()...)
	}
	return printJSON(w, map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}

func (r profiledRun) events() []traceEvent {
	box := func(name string, track int, begin, duration time.Duration) traceEvent {
		return traceEvent{
			Name: name, Phase: "X", Process: 1, Track: track, Begin: micros(r.at + begin), Duration: micros(duration),
		}
	}
	var whole time.Duration
	var events []traceEvent
	for i, s := range r.steps {
		t := r.times[i]
		whole = max(whole, t.Begin+t.Duration)
		e := box(s.Name, 0, t.Begin, t.Duration)
		e.Args = map[string]any{
			"program": r.program, "step": i, "flops": s.FLOPs, "bytes": s.Bytes, "shape": shapes(s), "where": where(s),
		}
		events = append(events, e)
		for _, span := range t.Spans {
			e := box(s.Name, span.Worker+1, span.Begin, span.Duration)
			e.Args = map[string]any{"step": i, "phase": span.Phase, "tiles": span.Tiles, "busy_us": micros(span.Busy)}
			events = append(events, e)
		}
	}
	return append([]traceEvent{box(r.program, 0, 0, whole)}, events...)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// shapes are the operands of the first op of a step and what the last one makes:
// [2048 512] [1536 512] → [2048 1536].
func shapes(s cpu.StepInfo) string {
	if len(s.Ops) == 0 {
		return ""
	}
	var parts []string
	for _, v := range s.Ops[0].In {
		parts = append(parts, fmt.Sprint(v.Shape))
	}
	parts = append(parts, "→")
	for _, v := range s.Ops[len(s.Ops)-1].Out {
		parts = append(parts, fmt.Sprint(v.Shape))
	}
	return strings.Join(parts, " ")
}

// where is the line of the model that asked for a step.
func where(s cpu.StepInfo) string {
	if len(s.Ops) == 0 {
		return ""
	}
	return s.Ops[0].Where
}
