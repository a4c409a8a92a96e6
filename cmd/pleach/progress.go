// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pleach/internal/unit"
	"pleach/track"
	"pleach/train"
)

// display is a sink that is told where a run begins and ends.
type display interface {
	track.Sink
	begin(p *prepared, resumes bool)
	end(r train.Result, err error)
}

// pace is the speed of a run, smoothed over its last steps.
type pace struct{ rate float64 } // tokens per second

func (p *pace) see(e track.Step) {
	if p.rate == 0 {
		p.rate = e.TokensPerSecond
	}
	p.rate += 0.1 * (e.TokensPerSecond - p.rate)
}

// left is how long so many tokens will take.
func (p *pace) left(tokens int64) time.Duration {
	return time.Duration(float64(tokens) / max(p.rate, 1e-9) * float64(time.Second)).Round(time.Second)
}

// progress shows a run to a person.
type progress struct {
	*screen
	pace
	out    string // the run directory
	steps  int64
	tokens int64 // of a step
	first  bool  // no step has been shown
	began  time.Time
}

func newProgress(w io.Writer) *progress { return &progress{screen: newScreen(w)} }

// begin says what is about to run.
func (p *progress) begin(r *prepared, resumes bool) {
	p.steps, p.tokens, p.out = r.steps, int64(r.rows*r.plan.Batch.T), r.recipe.Out
	p.began, p.first = time.Now(), true
	if resumes {
		p.say("goes on in %s", p.out)
		p.say("%s", machineLine(r.options, granted(system())))
		return
	}
	r.describe(p.w)
}

// Write takes an event.
func (p *progress) Write(at time.Time, e track.Event) error {
	switch e := e.(type) {
	case track.Start:
		if e.ResumedFrom != "" {
			p.say("resumed from %s", e.ResumedFrom)
		}
	case track.Step:
		p.step(at, e)
	case track.Eval:
		p.say("step %d: %s: perplexity %.4g, %.4f bits per byte (%d tokens, %.1f s)", e.Step, e.Name, e.Perplexity,
			e.BitsPerByte, e.Tokens, e.Seconds)
	case track.Checkpoint:
		p.say("step %d: saved %s (%v, %.1f s)", e.Step, e.Path, unit.Bytes(e.Bytes).Rounded(), e.TotalSeconds)
	case track.Spike:
		p.say("step %d: gradient norm %.3g, the mean was %.3g; documents %s", e.Step, e.GradNorm, e.Mean, few(e.Documents))
	case track.Warning:
		p.say("warning: %s", e.Reason)
	case track.Source:
		if len(e.Skipped) > 0 {
			p.say("source %s: skipped %s", e.Name, counts(e.Skipped))
		}
	}
	return nil
}

func (p *progress) step(at time.Time, e track.Step) {
	p.see(e)
	p.renew(at, p.first || e.Step == p.steps, p.line(e))
	p.first = false
}

// line is the state of the run after a step.
func (p *progress) line(e track.Step) string {
	s := fmt.Sprintf("step %d/%d  loss %.4f  norm %.3g  lr %.2e  %s tokens/s", e.Step, p.steps, e.LossNats,
		e.GradNorm, e.LR, amount(p.rate))
	if e.ShareOfPeak > 0 {
		s += fmt.Sprintf("  %.0f %% of peak", 100*e.ShareOfPeak)
	}
	return s + "  " + p.left((p.steps-e.Step)*p.tokens).String() + " left"
}

// end says how it went.
func (p *progress) end(r train.Result, err error) {
	p.erase()
	model := filepath.Join(p.out, r.Checkpoint)
	switch {
	case err != nil:
	case r.Resumed != "" && r.Resumed == r.Checkpoint:
		p.say("already finished: %d steps are done, the model is in %s", r.Step, model)
	default:
		p.say("finished after %d steps in %v: the model is in %s", r.Step, time.Since(p.began).Round(time.Second), model)
	}
}

// Close does nothing: there is nothing to close.
func (p *progress) Close() error { return nil }

// counts prints numbers by what they count: 3 empty, 1 not UTF-8.
func counts(by map[string]int64) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("%d %s", by[what], what))
	}
	return strings.Join(all, ", ")
}

// few is the first names of a list and how many there are.
func few(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
