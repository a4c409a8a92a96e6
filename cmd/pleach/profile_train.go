// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/internal/fault"
	"pleach/program"
)

// stepProfile writes a profile of a step of a run. The zero value does nothing.
type stepProfile struct {
	dir     string
	of      string // the run
	wait    int64  // steps that go before, since the first ones are slower
	updates int64
	limits
	written bool
	err     error
}

// newStepProfile prepares a profile of a step of p in a folder; "" is none.
func newStepProfile(dir string, p *prepared) (*stepProfile, error) {
	if dir == "" {
		return &stepProfile{}, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fault.Machinef("profile: %w", err)
	}
	w := &stepProfile{dir: dir, of: p.recipe.Out, wait: min(warmUp, p.steps-1)}
	w.bandwidth = readBandwidth(p.options.Threads)
	return w, nil
}

// engine is e, watched if a profile is wanted.
func (w *stepProfile) engine(e *cpu.Engine) engine.Engine {
	if w.dir == "" {
		return e
	}
	p := &profiler{Engine: e}
	if w.wait == 0 {
		p.start()
	}
	p.after = func(q *program.Program) {
		if q.Name != "update" || w.written {
			return
		}
		w.updates++
		switch w.updates {
		case w.wait:
			p.start()
		case w.wait + 1:
			w.written, w.err = true, w.write(p.stop())
		}
	}
	return p
}

// write makes the two files.
func (w *stepProfile) write(p profile) error {
	var text, trace bytes.Buffer
	fmt.Fprintf(&text, "%s: step %d of this process, %d threads; peak %.1f GFLOP/s, read bandwidth %.1f GB/s\n\n", w.of,
		w.updates, p.threads, w.peak/1e9, w.bandwidth/1e9)
	if err := p.print(&text, w.limits); err != nil {
		return err
	}
	if err := p.list(&text, w.limits); err != nil {
		return err
	}
	if err := p.trace(&trace); err != nil {
		return err
	}
	if err := writeFile(w.dir, "profile.txt", text.Bytes()); err != nil {
		return err
	}
	return writeFile(w.dir, "trace.json", trace.Bytes())
}

// missing says why there is no profile although one was wanted: no reason for a
// run to fail.
func (w *stepProfile) missing() string {
	switch {
	case w.dir == "" || w.written && w.err == nil:
		return ""
	case w.err != nil:
		return fmt.Sprintf("profile: %v", w.err)
	}
	return fmt.Sprintf("profile: nothing was measured: the run ended after %d steps, want %d", w.updates, w.wait+1)
}

// list prints every step of a profile, in order.
func (p profile) list(w io.Writer, l limits) error {
	fmt.Fprintln(w, "\nEvery step, in order:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range p.runs {
		fmt.Fprintf(t, "\n%s\n", r.program)
		fmt.Fprintln(t, header)
		for i, s := range r.steps {
			c := costs{Name: fmt.Sprintf("%s  %s  %s", s.Name, shapes(s), where(s))}
			c.add(s, r.times[i])
			c.Busy = c.workers / max(1e-12, c.Seconds*float64(p.threads))
			c.row(t, l, p.wall.Seconds())
		}
	}
	return printed(t.Flush())
}
