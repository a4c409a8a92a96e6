// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train

import (
	"errors"
	"fmt"

	"pleach/blob"
	"pleach/data"
	"pleach/engine"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
	"pleach/track"
)

// Job is everything a run is told. The caller owns what is in it, and closes it.
type Job struct {
	Engine   engine.Engine
	Config   *model.Config     // the architecture, and what is published with it
	Files    map[string][]byte // tokenizer files, published with it
	Layout   program.Layout
	Batch    model.Batch // of a micro-batch
	Rows     int         // of a step
	AdamW    optim.AdamW
	Schedule optim.Schedule
	Steps    int64 // the run is done after so many
	Data     *data.Loader
	Store    blob.Store // the run directory
	Sink     track.Sink
	Seed     uint64
	Version  string // of the program, for the record
	Recipe   string // hash of the recipe, for the record
	Save     Save
	Evaluate Evaluate
	Spikes   Spikes

	// Begin writes the first weights, and moments where they are kept, by the
	// names and places that programs use; they are rounded to the types of the run.
	// A run that resumes does not call it.
	Begin func(write func(name string, lo int, x []float32) error) error
	// Updates is how many steps the moments that Begin writes have seen.
	Updates int64
	// Warnings are recorded when the run begins, or goes on.
	Warnings []string
	// Stop, where it is not 0, ends the run after this step as if its context had
	// been cancelled.
	Stop int64
	// Peak is the processor's measured peak in FLOP/s, 0 if it is not known.
	Peak float64
}

// Save says when a run is saved and what is kept.
type Save struct {
	Every     unit.Every
	Keep      int
	Permanent unit.Every // checkpoints that are never removed; zero for none
	DType     half.DType // of the published weights
}

// Evaluate says when held-out texts are scored, and how: after the last step, and
// when else is said.
type Evaluate struct {
	Every   unit.Every
	AtStart bool
	// Run scores all texts with the weights that the engine has now. It must not
	// touch what training adds to. nil: there are none.
	Run func() ([]Score, error)
}

// Score is what one held-out text got; its Step is filled in. Rises of its
// perplexity of more than Alarm (0.05 is 5 %) over the start of the run are
// warned about; 0 is never.
type Score struct {
	track.Eval
	Alarm float64
}

// Result is how a run ended.
type Result struct {
	Step       int64 // the last one that is saved
	Steps      int64
	Checkpoint string // its name in the store
	Resumed    string // where it went on from, empty for a fresh run
	Finished   bool   // all steps are done; there was nothing to do if Resumed is Checkpoint
	Loss       float64
}

// ErrStopped says that a run was told to stop, and is saved.
var ErrStopped = fault.As(fault.Stopped, errors.New("train: stopped and saved"))

func (j *Job) check() error {
	if j.Rows < 1 || j.Rows%j.Batch.B != 0 {
		return fmt.Errorf("train: %d sequences a step in micro-batches of %d: want a multiple", j.Rows, j.Batch.B)
	}
	if j.Steps < 1 {
		return fmt.Errorf("train: a run of %d steps", j.Steps)
	}
	if err := j.Schedule.Check(); err != nil {
		return err
	}
	return j.Config.CheckLayout(j.Layout, j.Batch)
}

// stepTokens is the number of ids that one step reads.
func (j *Job) stepTokens() int64 { return int64(j.Rows) * int64(j.Batch.T) }
