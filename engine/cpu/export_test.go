// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"time"

	"pleach/engine"
	"pleach/program"
)

// Poison fills with NaN, which is all ones in every type of float, the
// temporaries that a call must not find anything in.
func (x *executable) Poison(c *engine.Call) {
	work := x.arena[x.plan.Slots*x.plan.Slot:]
	if x.plan.Slots > 1 || c.Half != program.Back {
		ones(work)
	}
	if c.Half != program.Back {
		ones(x.arena[c.Slot*x.plan.Slot:][:x.plan.Slot])
	}
}

func ones(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

// Plan is where the temporaries of a program lie.
func Plan(x engine.Executable) *program.Plan { return x.(*executable).plan }

// Times runs all steps of x on the inputs of the last run, and adds what each
// takes to the kind of its first op.
func Times(x engine.Executable, times *[program.Kinds]time.Duration) {
	y := x.(*executable)
	for i, jobs := range y.steps[0] {
		begin := time.Now()
		for _, j := range jobs {
			y.e.pool.do(j)
		}
		times[y.s.steps[i].first().Kind] += time.Since(begin)
	}
}

// Unfused is an engine whose steps are single ops.
func Unfused(o Options) *Engine {
	e := New(o)
	e.plain = true
	return e
}

// Bounded is an engine whose buffers hold no more elements than these.
func Bounded(o Options, packed, logits int) *Engine {
	e := New(o)
	e.limits = limits{packed, logits}
	return e
}

// Changes is how many steps each pass changed.
func Changes(x engine.Executable) map[string]int {
	count := map[string]int{}
	for _, n := range x.(*executable).s.notes {
		count[n.pass.name] += len(n.steps)
	}
	return count
}
