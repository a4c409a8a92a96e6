// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/program"
)

// profiler is a CPU engine that measures the runs of its programs while it is
// told to. Measured or not, a run has the same bits.
type profiler struct {
	*cpu.Engine
	on    bool
	began time.Time // of the first run that is measured; zero before it
	taken profile
	// after, where there is one, sees every run that has ended.
	after func(p *program.Program)
}

// profiled is an executable of a profiler.
type profiled struct {
	engine.Executable
	p     *profiler
	steps []cpu.StepInfo
}

// Compile compiles for the engine inside.
func (p *profiler) Compile(q *program.Program, slots int) (engine.Executable, error) {
	x, err := p.Engine.Compile(q, slots)
	if err != nil {
		return nil, err
	}
	return &profiled{x, p, cpu.Steps(x)}, nil
}

// Run runs, and measures if that is wanted.
func (x *profiled) Run(c *engine.Call) engine.Event {
	e := x.run(c)
	if x.p.after != nil {
		x.p.after(x.Program())
	}
	return e
}

func (x *profiled) run(c *engine.Call) engine.Event {
	p := x.p
	if !p.on {
		return x.Executable.Run(c)
	}
	if p.began.IsZero() {
		p.began = time.Now()
	}
	at := time.Since(p.began)
	times, err := cpu.Profiled(x.Executable, c)
	if err == nil {
		p.taken.runs = append(p.taken.runs, profiledRun{x.Program().Name, at, x.steps, times})
	}
	return engine.Done{Err: err}
}

// start measures from now on.
func (p *profiler) start() {
	p.on, p.began = true, time.Time{}
	p.taken = profile{threads: p.Info().Threads}
}

// stop measures no more and returns what was measured since start.
func (p *profiler) stop() profile {
	p.on = false
	p.taken.wall = time.Since(p.began)
	return p.taken
}

// profile is some runs of programs, step by step.
type profile struct {
	threads int
	wall    time.Duration
	runs    []profiledRun
}

// profiledRun is a run of a program that began at a time after the profile did.
type profiledRun struct {
	program string
	at      time.Duration
	steps   []cpu.StepInfo
	times   []cpu.StepTime
}

// costs is where time went, and what was done in it: for all steps of a name, or
// for one.
type costs struct {
	Name    string  `json:"name"`
	Count   int     `json:"count"`
	Seconds float64 `json:"seconds"`
	FLOPs   float64 `json:"flops"` // of products and attention
	Bytes   float64 `json:"bytes"` // read and written, each value once
	Busy    float64 `json:"busy"`  // share of the time that workers had work

	workers float64 // seconds of workers in tiles
}

func (c *costs) add(s cpu.StepInfo, t cpu.StepTime) {
	c.Count++
	c.Seconds += t.Duration.Seconds()
	c.FLOPs += float64(s.FLOPs)
	c.Bytes += float64(moved(s))
	for _, span := range t.Spans {
		c.workers += span.Busy.Seconds()
	}
}

// moved is the bytes that a step reads and writes: each operand once, but of the
// tables that ops look rows up in, and of caches that they append to, only those
// rows.
func moved(s cpu.StepInfo) int {
	n := s.Bytes
	for _, op := range s.Ops {
		switch op.Kind {
		case program.OpEmbed:
			n += op.Out[0].Bytes() - op.In[0].Bytes()
		case program.OpEmbedGrad:
			n += 2 * (op.In[0].Bytes() - op.In[2].Bytes())
		case program.OpCachedAttention:
			n -= op.Out[1].Bytes()
		}
	}
	return max(n, 0)
}

// byName adds up the steps of a name, the longest first.
func (p profile) byName() []costs {
	var all []costs
	at := map[string]int{}
	for _, r := range p.runs {
		for i, s := range r.steps {
			j, ok := at[s.Name]
			if !ok {
				j = len(all)
				at[s.Name] = j
				all = append(all, costs{Name: s.Name})
			}
			all[j].add(s, r.times[i])
		}
	}
	for i := range all {
		all[i].Busy = all[i].workers / max(1e-12, all[i].Seconds*float64(p.threads))
	}
	slices.SortStableFunc(all, func(a, b costs) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return all
}

// limits are what a machine can do at best: FLOP/s, and bytes read per second; 0
// is unknown.
type limits struct{ peak, bandwidth float64 }

// floor is the least time that costs can take.
func (l limits) floor(c costs) float64 {
	t := 0.0
	if l.peak > 0 {
		t = c.FLOPs / l.peak
	}
	if l.bandwidth > 0 {
		t = max(t, c.Bytes/l.bandwidth)
	}
	return t
}

// header is that of a table of costs.
const header = "time\tshare\tsteps\tGFLOP/s\tof peak\tGB/s\tof floor\tbusy\t  step"

// print writes the profile as a table: where the time went, and how close each
// kind of step was to the floor.
func (p profile) print(w io.Writer, l limits) error {
	rows := p.byName()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, header)
	rest := p.wall.Seconds()
	for _, c := range rows {
		rest -= c.Seconds
		c.row(t, l, p.wall.Seconds())
	}
	fmt.Fprintf(t, "%s\t%s\t\t\t\t\t\t\t  between steps\n", milliseconds(rest), inPercent(rest/p.wall.Seconds()))
	fmt.Fprintf(t, "%s\t%s\t\t\t\t\t\t\t  in all, with clocks read at every tile\n", milliseconds(p.wall.Seconds()), inPercent(1))
	return printed(t.Flush())
}

func (c costs) row(w io.Writer, l limits, wall float64) {
	flops, peak, floor := "", "", ""
	if c.FLOPs > 0 {
		flops = fmt.Sprintf("%.1f", c.FLOPs/c.Seconds/1e9)
		if l.peak > 0 {
			peak = inPercent(c.FLOPs / c.Seconds / l.peak)
		}
	}
	if f := l.floor(c); f > 0 {
		floor = inPercent(f / c.Seconds)
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%.1f\t%s\t%s\t  %s\n", milliseconds(c.Seconds), inPercent(c.Seconds/wall), c.Count,
		flops, peak, c.Bytes/c.Seconds/1e9, floor, inPercent(c.Busy), c.Name)
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.3f ms", 1e3*seconds) }

func inPercent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
