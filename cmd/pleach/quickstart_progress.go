// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"pleach/blob"
	"pleach/config"
	"pleach/internal/fault"
	"pleach/track"
	"pleach/train"
)

// quickProgress shows the three trainings of the quickstart: on a terminal one
// line that renews itself, elsewhere a line every ten seconds.
type quickProgress struct {
	w       io.Writer
	live    bool
	step    int     // tokens in a step
	waiting int     // steps of the stages that come later
	now     stage   // under way
	resumed string  // where it went on, until that is said
	rate    float64 // tokens per second, smoothed
	printed time.Time
}

func newQuickProgress(w io.Writer) *quickProgress {
	f, ok := w.(*os.File)
	return &quickProgress{w: w, live: ok && term.IsTerminal(int(f.Fd()))}
}

// stage begins the first of those that are left, with so many tokens a step.
func (p *quickProgress) stage(left []stage, step int) {
	p.now, p.step, p.waiting = left[0], step, 0
	for _, s := range left[1:] {
		p.waiting += s.steps
	}
	p.printed, p.resumed = time.Time{}, ""
}

func (p *quickProgress) begin(*prepared, bool) {}

// Write takes an event.
func (p *quickProgress) Write(at time.Time, e track.Event) error {
	switch e := e.(type) {
	case track.Start:
		p.resumed = e.ResumedFrom
	case track.Step:
		if p.resumed != "" {
			p.say("%s: resumed from %s", p.now.name, p.resumed)
			p.resumed = ""
		}
		p.show(at, e)
	case track.Warning:
		p.say("%s: %s", p.now.name, e.Reason)
	}
	return nil
}

// Close does nothing: there is nothing to close.
func (p *quickProgress) Close() error { return nil }

func (p *quickProgress) say(format string, args ...any) {
	p.erase()
	fmt.Fprintf(p.w, format+"\n", args...)
}

func (p *quickProgress) erase() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p *quickProgress) show(at time.Time, e track.Step) {
	if p.rate == 0 {
		p.rate = e.TokensPerSecond
	}
	p.rate += 0.1 * (e.TokensPerSecond - p.rate)
	wait := quiet
	if p.live {
		wait = 200 * time.Millisecond
	}
	if at.Sub(p.printed) < wait && int(e.Step) != p.now.steps {
		return
	}
	p.printed = at
	p.erase()
	line := p.line(e)
	if !p.live {
		fmt.Fprintln(p.w, line)
		return
	}
	// A line that wraps could not be erased.
	fmt.Fprint(p.w, line[:min(len(line), narrowest-1)])
}

// narrowest is the width of terminals that live lines are made for.
const narrowest = 80

// line is the present state.
func (p *quickProgress) line(e track.Step) string {
	left := float64((p.now.steps-int(e.Step))*p.step) / max(p.rate, 1e-9)
	all := left + float64(p.waiting*p.step)/max(p.rate, 1e-9)
	return fmt.Sprintf("%-9s  step %d/%d  loss %.3f  %s tokens/s  %s left, %s in all", p.now.name, e.Step, p.now.steps,
		e.LossNats, amount(p.rate), clock(left), clock(all))
}

func (p *quickProgress) end(r train.Result, err error) {
	p.erase()
	if err == nil && r.Resumed != "" && r.Resumed == r.Checkpoint {
		p.say("%s: complete, nothing to do", p.now.name)
	}
}

// display is a sink that is told where a run begins and ends.
type display interface {
	track.Sink
	begin(p *prepared, resumes bool)
	end(r train.Result, err error)
}

// trainShown runs a recipe to its end on a display.
func trainShown(ctx context.Context, r *config.Recipe, show display) (train.Result, error) {
	p, err := prepare(r)
	if err != nil {
		return train.Result{}, err
	}
	defer p.close()
	resumes, err := p.sameRun()
	if err != nil {
		return train.Result{}, err
	}
	if err := os.MkdirAll(r.Out, 0o777); err != nil {
		return train.Result{}, fault.Machinef("run directory: %w", err)
	}
	unlock, err := blob.Lock(r.Out)
	if err != nil {
		return train.Result{}, err
	}
	defer unlock()
	if err := writeFile(r.Out, "run.yaml", r.Effective()); err != nil {
		return train.Result{}, err
	}
	log, err := track.Open(filepath.Join(r.Out, "events.jsonl"))
	if err != nil {
		return train.Result{}, err
	}
	defer log.Close()
	show.begin(p, resumes)
	result, err := p.train(ctx, sinks{log, show})
	show.end(result, err)
	return result, err
}
