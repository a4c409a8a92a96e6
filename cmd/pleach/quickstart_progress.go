// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"

	"pleach/track"
	"pleach/train"
)

// quickProgress shows the three trainings of the quickstart.
type quickProgress struct {
	*screen
	pace
	tokens  int    // of a step
	waiting int    // steps of the stages that come later
	now     stage  // under way
	resumed string // where it went on, until that is said
}

func newQuickProgress(w io.Writer) *quickProgress { return &quickProgress{screen: newScreen(w)} }

// stage begins the first of those that are left, with so many tokens a step.
func (p *quickProgress) stage(left []stage, tokens int) {
	p.now, p.tokens, p.waiting = left[0], tokens, 0
	for _, s := range left[1:] {
		p.waiting += s.steps
	}
	p.last, p.resumed = time.Time{}, ""
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
		p.see(e)
		p.renew(at, int(e.Step) == p.now.steps, p.line(e))
	case track.Warning:
		p.say("%s: %s", p.now.name, e.Reason)
	}
	return nil
}

// Close does nothing: there is nothing to close.
func (p *quickProgress) Close() error { return nil }

// line is the state after a step.
func (p *quickProgress) line(e track.Step) string {
	here := p.now.steps - int(e.Step)
	left := func(steps int) string { return clock(p.left(int64(steps * p.tokens)).Seconds()) }
	return fmt.Sprintf("%-9s  step %d/%d  loss %.3f  %s tokens/s  %s left, %s in all", p.now.name, e.Step, p.now.steps,
		e.LossNats, amount(p.rate), left(here), left(here+p.waiting))
}

func (p *quickProgress) end(r train.Result, err error) {
	p.erase()
	if err == nil && r.Resumed != "" && r.Resumed == r.Checkpoint {
		p.say("%s: complete, nothing to do", p.now.name)
	}
}
