// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pleach/engine/cpu"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/kernel"
	"pleach/program"
)

// compute is how a verb that uses a model is told to run it.
type compute struct {
	threads   int
	precision string
	level     kernel.Level
}

// options are those of the engine that a verb starts.
func (o *compute) options() cpu.Options { return cpu.Options{Level: o.level, Threads: o.threads} }

// flags adds --threads, and --precision if the verb has it.
func (o *compute) flags(c *cobra.Command, precision bool) {
	c.Flags().IntVar(&o.threads, "threads", 0, "threads to use; 0: as many as there are processors")
	if precision {
		c.Flags().StringVar(&o.precision, "precision", "auto", "number format to compute in: auto or f32")
	}
}

// precisions are those of recipes; f32 is built.
func precisions() []string { return []string{"auto", "f32", "mixed", "bf16", "bf16-sr"} }

func (o *compute) check(c *cobra.Command) error {
	if o.threads < 0 {
		return errUsage(c, "--threads: got %d, want 0 or more", o.threads)
	}
	switch o.precision {
	case "", "auto", "f32":
		run, err := options(o.threads)
		o.threads, o.level = run.Threads, run.Level
		return err
	}
	if slices.Contains(precisions(), o.precision) {
		return errUsage(c, "--precision: %s is not built yet, want auto or f32", o.precision)
	}
	return errUsage(c, "--precision: got %q, want one of %s", o.precision, strings.Join(precisions(), ", "))
}

// interrupted is an error if the user has asked to stop.
func interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return fault.Machinef("interrupted")
	}
	return nil
}

// fitsBeside refuses programs that there is no room for beside what the engine
// already holds.
func fitsBeside(e *cpu.Engine, what string, programs ...*program.Program) error {
	m, err := cpu.Predict(e.Options(), 1, programs...)
	if err != nil {
		return err
	}
	more, have := m.Total()-e.Memory().Total(), available()
	if have > 0 && more > have {
		return fault.Configf("%s does not fit into memory: it needs %v more, this machine has %v free",
			what, unit.Bytes(more).Rounded(), unit.Bytes(have).Rounded())
	}
	return nil
}

// spare is what documents and garbage may take beside a large model.
const spare = 256 << 20

// restrain keeps the garbage of a process from growing to the size of the model
// that the engine now holds. A small model does not matter.
func restrain(e *cpu.Engine) (undo func()) {
	if e.Memory().Total() < spare {
		return func() {}
	}
	return limitMemory(beside() + spare)
}
