// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"pleach/ckpt"
	"pleach/data"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/model"
	"pleach/track"
)

// run is a job under way.
type run struct {
	Job
	stepper *Stepper
	ledger  *Ledger
	state   State
	spikes  Spikes
	began   time.Time
	saved   unit.Mark // when the last checkpoint was
	scored  unit.Mark // when the last evaluation was
	lasted  unit.Mark // when the last checkpoint was that is kept for good
	flops   float64   // of a step
	result  Result
}

// maxRefused is how many steps in a row may find a gradient that is not finite
// before a run gives up.
const maxRefused = 10

// Run trains until the last step, an error or the end of ctx, which lets the
// present step finish, saves and returns an error that matches [ErrStopped].
func Run(ctx context.Context, j Job) (Result, error) {
	r, err := begin(j)
	if err != nil {
		return Result{}, err
	}
	if r.state.Step >= r.Steps {
		r.result.Finished = true
		return r.result, nil
	}
	err = r.loop(ctx)
	r.end(err)
	return r.result, err
}

// begin compiles, and makes or restores the state.
func begin(j Job) (*run, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	r := &run{Job: j, ledger: NewLedger(), spikes: j.Spikes, began: time.Now()}
	r.result = Result{Steps: j.Steps}
	var err error
	if r.stepper, err = NewStepper(j.Engine, j.Config.Spec, j.Layout, j.Batch, j.AdamW); err != nil {
		return nil, err
	}
	r.flops = j.Config.Spec.TrainFLOPs(model.Batch{B: j.Rows, T: j.Batch.T})
	info := j.Engine.Info()
	r.state = State{
		Seed: j.Seed, Recipe: j.Recipe, Types: j.types(), Engine: info.Engine, Level: info.Level, Mesh: axes(j.Layout.Mesh),
		Length: j.Schedule.Length, Baseline: map[string]float64{},
	}
	if err := r.resume(); err != nil {
		return nil, err
	}
	if r.result.Resumed == "" {
		r.state.Updates = j.Updates
		if err := errors.Join(j.Begin(r.stepper.Write), r.stepper.Lost()); err != nil {
			return nil, err
		}
	}
	r.saved, r.scored, r.lasted = r.mark(), r.mark(), r.mark()
	err = r.emitStart()
	for _, w := range j.Warnings {
		r.warn(w)
	}
	return r, err
}

// resume goes on from the newest good checkpoint, if there is one.
func (r *run) resume() error {
	name, step, problems, err := ckpt.Newest(r.Store)
	if err != nil {
		return err
	}
	for _, p := range problems {
		r.warn(fmt.Sprintf("passed over a bad checkpoint: %v", p))
	}
	if name == "" {
		return nil
	}
	c, err := ckpt.Open(r.Store, name)
	if err != nil {
		return err
	}
	defer c.Close()
	r.result.Resumed, r.result.Checkpoint, r.result.Step = name, name, step
	return r.restore(c)
}

// loop is the run: what happens in which order.
func (r *run) loop(ctx context.Context) error {
	if r.Evaluate.AtStart && r.state.Step == 0 {
		if err := r.evaluate(); err != nil {
			return err
		}
	}
	for r.state.Step < r.Steps {
		rows, waited, err := r.next()
		if errors.Is(err, io.EOF) {
			return r.exhausted()
		}
		if err != nil {
			return err
		}
		if err := r.step(rows, waited); err != nil {
			return err
		}
		last := r.state.Step == r.Steps
		stopped := ctx.Err() != nil || r.state.Step == r.Stop
		if last || r.Evaluate.Every.Due(r.scored, r.mark()) {
			if err := r.evaluate(); err != nil {
				return err
			}
		}
		if r.lasting() || last || stopped || r.Save.Every.Due(r.saved, r.mark()) {
			if err := r.checkpoint(); err != nil {
				return err
			}
		}
		if stopped && !last {
			return fmt.Errorf("%w at step %d of %d", ErrStopped, r.state.Step, r.Steps)
		}
	}
	r.result.Finished = true
	return nil
}

// exhausted ends a run whose sources have been read as often as they may be: what
// is left is less than a step.
func (r *run) exhausted() error {
	if r.state.Step == 0 {
		return fault.Dataf("train: the sources hold less than one step of %d rows of %d ids", r.Rows, r.Batch.T+1)
	}
	r.warn(fmt.Sprintf("the sources have been read as often as they may be: the run ends after step %d of %d",
		r.state.Step, r.Steps))
	r.result.Finished = true
	if r.result.Step == r.state.Step && r.result.Checkpoint != "" {
		return nil
	}
	if err := r.evaluate(); err != nil {
		return err
	}
	return r.checkpoint()
}

// next waits for the rows of a step.
func (r *run) next() (rows []data.Row, waited float64, err error) {
	r.ledger.Enter(WaitingData)
	rows, err = r.Data.Next(r.Rows)
	waited = r.ledger.Enter(Computing)
	if err != nil {
		return nil, waited, fmt.Errorf("train: step %d: %w", r.state.Step+1, err)
	}
	return rows, waited, nil
}

// step trains on rows and records it.
func (r *run) step(rows []data.Row, waited float64) error {
	s := &r.state
	lr := r.Schedule.Rate(s.Step + 1)
	rep, err := r.stepper.Step(rows, lr, s.Updates+1)
	if err != nil {
		return fmt.Errorf("train: step %d: %w", s.Step+1, err)
	}
	took := r.ledger.Enter(Computing)
	s.Step++
	s.Tokens += r.stepTokens()
	r.result.Loss = rep.Loss
	err = r.emit(track.Step{
		Step: s.Step, LossNats: rep.Loss, GradNorm: rep.GradNorm, WeightNorm: rep.WeightNorm, LR: lr,
		Tokens: s.Tokens, Targets: rep.Targets, TokensPerSecond: float64(r.stepTokens()) / (took + waited),
		StepSeconds: took + waited, DataWaitSeconds: waited, ShareOfPeak: r.share(took),
		Rows: [2]int64{rows[0].Index, rows[len(rows)-1].Index},
	})
	if err != nil {
		return err
	}
	return r.judge(rep, rows)
}

// share is the part of the processor's peak that a step of so many seconds used.
func (r *run) share(seconds float64) float64 {
	if r.Peak == 0 {
		return 0
	}
	return r.flops / seconds / r.Peak
}

// judge looks for what a person would want to know of a step.
func (r *run) judge(rep Report, rows []data.Row) error {
	if rep.Applied {
		r.state.Updates++
		r.state.Refused = 0
		if mean, spike := r.spikes.See(rep.GradNorm); spike {
			return r.emit(track.Spike{
				Step: r.state.Step, GradNorm: rep.GradNorm, Mean: mean, Length: r.spikes.Length,
				Documents: documents(rows), Action: "log",
			})
		}
		return nil
	}
	r.state.Refused++
	what := fmt.Sprintf("step %d changed nothing: its rows have no target", r.state.Step)
	if !rep.finite() {
		what = fmt.Sprintf("step %d changed nothing: loss %v, gradient norm %v; documents %v",
			r.state.Step, rep.Loss, rep.GradNorm, documents(rows))
	}
	r.warn(what)
	if r.state.Refused >= maxRefused {
		return fault.Dataf("train: %d steps in a row changed nothing; the last: %s", r.state.Refused, what)
	}
	return nil
}

// documents names the documents that rows are made of, each once.
func documents(rows []data.Row) []string {
	var ids []string
	seen := map[string]bool{}
	for _, row := range rows {
		for _, d := range row.Docs {
			if !seen[d.ID] {
				seen[d.ID] = true
				ids = append(ids, d.ID)
			}
		}
	}
	return ids
}

// evaluate scores the held-out texts and compares them with the start.
func (r *run) evaluate() error {
	if r.Evaluate.Run == nil {
		return nil
	}
	r.ledger.Enter(Evaluating)
	defer r.ledger.Enter(Computing)
	scores, err := r.Evaluate.Run()
	if err != nil {
		return fmt.Errorf("train: evaluating at step %d: %w", r.state.Step, err)
	}
	r.scored = r.mark()
	for _, s := range scores {
		s.Step = r.state.Step
		err := r.emit(s.Eval)
		if err != nil {
			return err
		}
		r.alarm(s)
	}
	return nil
}

// alarm warns of forgetting.
func (r *run) alarm(s Score) {
	base, ok := r.state.Baseline[s.Name]
	if !ok {
		// What is no number cannot be saved, and nothing can rise above it.
		if p := s.Perplexity; !math.IsNaN(p) && !math.IsInf(p, 0) {
			r.state.Baseline[s.Name] = p
		}
		return
	}
	if s.Alarm > 0 && !(s.Perplexity <= base*(1+s.Alarm)) { // NaN is a rise too
		r.warn(fmt.Sprintf("forgetting: perplexity of %s is %.4g at step %d, %.1f %% above %.4g at the start (alarm at %.3g %%)",
			s.Name, s.Perplexity, r.state.Step, 100*(s.Perplexity/base-1), base, 100*s.Alarm))
	}
}

// checkpoint saves the present step and removes old ones.
func (r *run) checkpoint() error {
	r.ledger.Enter(Checkpointing)
	bytes, err := r.save()
	if err != nil {
		return err
	}
	r.saved = r.mark()
	r.result.Step, r.result.Checkpoint = r.state.Step, ckpt.Name(r.state.Step)
	if err := ckpt.Prune(r.Store, r.Save.Keep, r.permanent); err != nil {
		return err
	}
	took := r.ledger.Enter(Computing)
	return r.emit(track.Checkpoint{
		Step: r.state.Step, Path: r.result.Checkpoint, Bytes: bytes, BlockedSeconds: took, TotalSeconds: took,
	})
}

// lasting reports whether the checkpoint of the present step is to be made and
// kept for good.
func (r *run) lasting() bool {
	if r.Save.Permanent.Time == 0 {
		return r.permanent(r.state.Step)
	}
	if !r.Save.Permanent.Due(r.lasted, r.mark()) {
		return false
	}
	r.lasted = r.mark()
	r.state.Lasting = append(r.state.Lasting, r.state.Step)
	return true
}

// permanent reports whether the checkpoint of a step is kept for good: the first
// step at or after a multiple of the steps or tokens that Save.Permanent counts
// in, which depends on nothing but its number, so that a run that was resumed
// keeps the same ones.
func (r *run) permanent(step int64) bool {
	if slices.Contains(r.state.Lasting, step) {
		return true
	}
	at := func(s int64) int64 {
		switch p := r.Save.Permanent; {
		case p.Steps > 0:
			return s / int64(p.Steps)
		case p.Tokens > 0:
			return s * r.stepTokens() / int64(p.Tokens)
		}
		return 0
	}
	return at(step) > at(step-1)
}

func (r *run) mark() unit.Mark {
	return unit.Mark{
		Steps: unit.Steps(r.state.Step), Tokens: unit.Tokens(r.state.Tokens), Time: unit.Duration(time.Since(r.began)),
	}
}
