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
	"pleach/optim"
	"pleach/program"
)

// compute is how a verb that uses a model is told to run it.
type compute struct {
	threads    int
	precision  string
	precisions []string // that the verb knows, if it has --precision
	level      kernel.Level
}

// options are those of the engine that a verb starts.
func (o *compute) options() cpu.Options { return cpu.Options{Level: o.level, Threads: o.threads} }

// flags adds --threads.
func (o *compute) flags(c *cobra.Command) {
	c.Flags().IntVar(&o.threads, "threads", 0, "threads to use; 0: as many as there are processors")
}

// asStored is the precision that the weights of a model have.
const asStored = "auto"

// inInt8 is bf16 with weights of int8.
const inInt8 = "int8"

func int8Layout() program.Layout {
	l := optim.BF16.Layout()
	l.Int8 = true
	return l
}

// precisionFlag adds --precision of a verb that runs a model which it does not
// change.
func (o *compute) precisionFlag(c *cobra.Command, preset string) {
	o.precisions = []string{optim.F32.String(), optim.BF16.String(), inInt8, asStored}
	c.Flags().StringVar(&o.precision, "precision", preset,
		"type to compute in: f32; bf16; int8: bf16 with matrices rounded to 8 bits, a scale for each row; "+
			"auto: bf16 if all weights of the model are, else f32")
}

func (o *compute) check(c *cobra.Command) error {
	if o.threads < 0 {
		return errUsage(c, "--threads: got %d, want 0 or more", o.threads)
	}
	if o.precisions != nil && !slices.Contains(o.precisions, o.precision) {
		return errUsage(c, "--precision: got %q, want one of %s", o.precision, strings.Join(o.precisions, ", "))
	}
	run, err := options(o.threads)
	o.threads, o.level = run.Threads, run.Level
	return err
}

// layout is that of one rank which runs a model in the precision asked for.
func (o *compute) layout(m *source) program.Layout {
	if o.precision == inInt8 {
		return int8Layout()
	}
	if o.precision == optim.BF16.String() || o.precision == asStored && m.halved() {
		return optim.BF16.Layout()
	}
	return plain()
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
