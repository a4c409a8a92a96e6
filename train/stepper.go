// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train

import (
	"fmt"
	"math"

	"pleach/data"
	"pleach/engine"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
)

// Stepper runs optimizer steps on one rank: a batch of rows in micro-batches
// through accumulate, then update.
type Stepper struct {
	*engine.Floats     // reads weights and states
	accumulate, update engine.Executable
	acc, upd           *engine.Call
	batch              model.Batch // of a micro-batch
	lr, t, apply       []float64   // inputs of update
	tokens, labels     []int32     // inputs of accumulate
	positions          []int32
}

// Report is what a step says of itself.
type Report struct {
	Loss       float64 // mean over targets, nats, before the update
	GradNorm   float64 // before clipping
	WeightNorm float64 // before the update
	Targets    int64   // unmasked ids
	Applied    bool    // false: no weight has changed
}

// NewStepper compiles the programs of a training step. The weights of e are
// zero until somebody writes them.
func NewStepper(e engine.Engine, s model.Spec, l program.Layout, batch model.Batch, a optim.AdamW) (*Stepper, error) {
	acc, upd, err := Programs(s, l, batch, a)
	if err != nil {
		return nil, err
	}
	st := &Stepper{Floats: engine.NewFloats(e, acc, upd), batch: batch, acc: engine.NewCall(acc), upd: engine.NewCall(upd)}
	if st.accumulate, err = e.Compile(acc, 1); err != nil {
		return nil, err
	}
	if st.update, err = e.Compile(upd, 1); err != nil {
		return nil, err
	}
	scalar := func(name string) []float64 { return program.View[float64](st.upd.Input(upd, name)) }
	ids := func(name string) []int32 { return program.View[int32](st.acc.Input(acc, name)) }
	st.lr, st.t, st.apply = scalar("lr"), scalar("t"), scalar("apply")
	st.tokens, st.labels, st.positions = ids("tokens"), ids("labels"), ids("positions")
	return st, nil
}

// Exact is the name under which the weights of a parameter are exact: that of its
// master copy, if there is one.
func (s *Stepper) Exact(param string) string {
	if name := "master." + param; s.has(name) {
		return name
	}
	return param
}

func (s *Stepper) has(name string) bool {
	_, ok := s.Type(name)
	return ok
}

// Write puts numbers into a weight or state, rounded to its type; into a weight
// that has a master copy exactly there, and rounded beside it. Numbers that are
// too large for bf16 are counted, for [engine.Floats.Lost].
func (s *Stepper) Write(name string, lo int, x []float32) error {
	if exact := s.Exact(name); exact != name {
		if err := s.Floats.Write(exact, lo, x); err != nil {
			return err
		}
	}
	return s.Floats.Write(name, lo, x)
}

// Programs are those of a training step on one rank.
func Programs(s model.Spec, l program.Layout, batch model.Batch, a optim.AdamW) (acc, upd *program.Program, err error) {
	if acc, err = model.Accumulate(s, l, 0, batch); err != nil {
		return nil, nil, err
	}
	upd, err = optim.Update(a, l, s.Whole(), s.Groups(), acc)
	return acc, upd, err
}

// Step trains on rows, a multiple of the micro-batch, with learning rate lr as
// the update number t, counted from 1.
func (s *Stepper) Step(rows []data.Row, lr float64, t int64) (Report, error) {
	if len(rows)%s.batch.B != 0 {
		return Report{}, fmt.Errorf("train: a step of %d rows: want a multiple of the micro-batch of %d", len(rows), s.batch.B)
	}
	for i := 0; i < len(rows); i += s.batch.B {
		s.load(rows[i : i+s.batch.B])
		if err := s.accumulate.Run(s.acc).Wait(); err != nil {
			return Report{}, err
		}
	}
	s.lr[0], s.t[0], s.apply[0] = lr, float64(t), 1
	if err := s.update.Run(s.upd).Wait(); err != nil {
		return Report{}, err
	}
	r := program.View[float64](s.upd.Out[0])
	return Report{
		Loss: r[program.ReportLoss], GradNorm: r[program.ReportNorm], WeightNorm: r[program.ReportWeightNorm],
		Targets: int64(r[program.ReportCount]), Applied: r[program.ReportApply] != 0,
	}, nil
}

// load writes the inputs of one micro-batch.
func (s *Stepper) load(rows []data.Row) {
	for i, r := range rows {
		at := i * s.batch.T
		copy(s.tokens[at:at+s.batch.T], r.IDs)
		copy(s.labels[at:at+s.batch.T], r.Labels)
		copy(s.positions[at:at+s.batch.T], r.Positions)
	}
}

// finite reports whether a step's loss and norm are numbers.
func (r Report) finite() bool {
	return !math.IsNaN(r.Loss+r.GradNorm) && !math.IsInf(r.Loss+r.GradNorm, 0)
}
