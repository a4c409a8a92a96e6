// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"pleach/internal/unit"
)

// Parallel is how ranks share the work: all of it 1 so far.
type Parallel struct {
	Tensor, Pipeline, Data, Zero, Chunks int
	Sequence                             bool
}

// Checkpoint is when state is saved and what is kept.
type Checkpoint struct {
	Every     unit.Every
	Keep      int
	Permanent unit.Every // zero: none
	Async     bool
	DType     string // "f32" or "bf16"
}

// Engine is what computes.
type Engine struct {
	Kind string // "cpu"
	CPU  CPU
}

// CPU is the engine of this machine.
type CPU struct {
	Threads int    // 0: as many as the machine has cores
	Level   string // "auto", or the name of a set of kernels
}

// Price is what an hour costs; PerHour 0 is unknown.
type Price struct {
	PerHour  float64
	Currency string
}

func (p *Parallel) fields() []field {
	ranks := func(key string, to *int, doc string) field {
		return field{key: key, def: "1", to: to, doc: doc, check: func() string {
			if *to > 1 {
				return fmt.Sprintf("got %d, want 1: more than one rank is not yet built", *to)
			}
			return atLeast(*to, 1)
		}}
	}
	return []field{
		ranks("tensor", &p.Tensor, "Ranks that share each matrix."),
		{key: "sequence", def: "false", to: &p.Sequence, check: func() string {
			if p.Sequence {
				return "got true: not yet built"
			}
			return ""
		}, doc: "Tensor ranks share the rows between the matrices too."},
		ranks("pipeline", &p.Pipeline, "Ranks that share the layers."),
		ranks("data", &p.Data, "Ranks that share the rows of a batch."),
		{key: "zero", def: "0", to: &p.Zero, check: func() string {
			switch p.Zero {
			case 0:
				return ""
			case 1:
				return "got 1: not yet built"
			}
			return fmt.Sprintf("got %d, want 0 or 1", p.Zero)
		}, doc: "1: data ranks share the optimizer state."},
		ranks("chunks", &p.Chunks, "Gradients are summed in a fixed tree over so many chunks "+
			"of the rows: with it fixed, the number of data ranks does not change a bit."),
	}
}

func (c *Checkpoint) fields() []field {
	return []field{
		{key: "every", def: "30min", to: &c.Every, doc: "Steps, tokens or time between saves."},
		{
			key: "keep", def: "3", to: &c.Keep, check: func() string { return atLeast(c.Keep, 1) },
			doc: "How many of the newest are kept.",
		},
		{key: "permanent", auto: "–", to: &c.Permanent, doc: "Steps, tokens or time between " +
			"checkpoints that are never deleted."},
		// The schema's default is true. Saving behind the training is not built, and a
		// default that is refused when written would be no default.
		{key: "async", def: "false", to: &c.Async, check: func() string {
			if c.Async {
				return "got true: saving in the background is not yet built"
			}
			return ""
		}, doc: "Save in the background."},
		{
			key: "dtype", auto: "`f32` with the precision f32, else `bf16`", words: []string{"f32", "bf16"},
			to: &c.DType, doc: "The type of the published weights. The training state keeps its own, " +
				"and the exact weights where the published ones are rounded.",
		},
	}
}

func (e *Engine) chosen() *string { return &e.Kind }

func (e *Engine) kinds() []kind {
	return []kind{
		{name: "cpu", doc: "This machine's processor.", fields: []field{
			{
				key: "threads", auto: "the cores of the machine", to: &e.CPU.Threads,
				check: func() string { return atLeast(e.CPU.Threads, 1) },
				doc:   "Worker threads. They change the speed, not the result.",
			},
			{
				key: "level", def: "auto", to: &e.CPU.Level,
				words: []string{"auto", "portable", "avx2", "avx512", "avx512bf16", "amx", "neon"},
				doc: "Which kernels: `auto` takes the fastest that the processor has, `portable` " +
					"is plain Go. The environment variable `PLEACH_CPU` takes one of the same words " +
					"and overrides this key. The level is part of what bitwise equality is promised " +
					"within: run.yaml names the one that was used.",
			},
		}},
		{name: "pjrt", doc: "A PJRT plugin: `{plugin, devices, options}`.", later: true},
	}
}

func (p *Price) fields() []field {
	return []field{
		{key: "per_hour", auto: "–", to: &p.PerHour, check: func() string {
			return positive(p.PerHour)
		}, doc: "The price of an hour of the whole machine."},
		{key: "currency", def: "USD", to: &p.Currency, omit: p.PerHour == 0, doc: "Its currency."},
	}
}
