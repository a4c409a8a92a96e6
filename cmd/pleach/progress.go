// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"pleach/internal/unit"
	"pleach/track"
	"pleach/train"
)

// progress shows a run to a person: on a terminal one line that renews itself,
// elsewhere a line every ten seconds. It is a sink of events.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	live  bool
	stage string // before each line, empty for none

	steps   int64
	tokens  int64 // of a step
	first   int64 // the step that this process began after
	began   time.Time
	printed time.Time
	last    track.Step
	rate    float64 // tokens per second, over the last steps
}

const quiet = 10 * time.Second

// newProgress shows on w, which is live if it is a terminal.
func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, live: ok && term.IsTerminal(int(f.Fd()))}
}

// begin says what is about to run.
func (p *progress) begin(r *prepared, resumes bool) {
	p.steps, p.tokens = r.steps, int64(r.rows*r.plan.Batch.T)
	p.began, p.printed, p.first, p.rate = time.Now(), time.Time{}, -1, 0
	if resumes {
		p.say("goes on in %s", r.recipe.Out)
		return
	}
	r.describe(p.w)
}

// say prints a line above the live one.
func (p *progress) say(format string, args ...any) {
	p.erase()
	fmt.Fprintf(p.w, p.stage+format+"\n", args...)
}

func (p *progress) erase() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// Write takes an event.
func (p *progress) Write(at time.Time, e track.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	if p.first < 0 {
		p.first = e.Step - 1
	}
	p.last = e
	if p.rate == 0 {
		p.rate = e.TokensPerSecond
	}
	p.rate += 0.1 * (e.TokensPerSecond - p.rate)
	wait := quiet
	if p.live {
		wait = 200 * time.Millisecond
	}
	if at.Sub(p.printed) < wait && e.Step != p.steps && e.Step != p.first+1 {
		return
	}
	p.printed = at
	p.erase()
	fmt.Fprint(p.w, p.line())
	if !p.live {
		fmt.Fprintln(p.w)
	}
}

// line is the present state of the run.
func (p *progress) line() string {
	e := p.last
	left := time.Duration(float64(p.steps-e.Step) * float64(p.tokens) / max(p.rate, 1e-9) * float64(time.Second))
	s := fmt.Sprintf("%sstep %d/%d  loss %.4f  norm %.3g  lr %.2e  %s tokens/s", p.stage, e.Step, p.steps, e.LossNats,
		e.GradNorm, e.LR, amount(p.rate))
	if e.ShareOfPeak > 0 {
		s += fmt.Sprintf("  %.0f %% of peak", 100*e.ShareOfPeak)
	}
	return s + "  " + left.Round(time.Second).String() + " left"
}

// end says how it went.
func (p *progress) end(r train.Result, err error) {
	p.erase()
	switch {
	case err != nil:
	case r.Resumed != "" && r.Resumed == r.Checkpoint:
		p.say("already finished: %d steps are done, the model is in %s", r.Step, r.Checkpoint)
	default:
		p.say("finished after %d steps in %v: the model is in %s", r.Step, time.Since(p.began).Round(time.Second), r.Checkpoint)
	}
}

// Close ends the live line.
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
