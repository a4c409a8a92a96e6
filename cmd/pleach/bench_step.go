// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"pleach/data"
	"pleach/engine/cpu"
	"pleach/half"
	"pleach/internal/rng"
	"pleach/model"
	"pleach/optim"
	"pleach/plan"
	"pleach/program"
	"pleach/train"
)

// stepReport is how fast a model trains.
type stepReport struct {
	common
	Micro    int     `json:"micro"`
	Steps    int     `json:"steps"`
	Share    float64 `json:"share_of_peak"`
	Start    float64 `json:"start_seconds"` // from the start of the process to the first op
	First    float64 `json:"first_step_seconds"`
	Step     float64 `json:"step_seconds"` // the median
	Best     float64 `json:"best_step_seconds"`
	Loss     float64 `json:"loss"` // of the last step
	Ops      []costs `json:"ops"`
	Profiled float64 `json:"profiled_step_seconds"`

	profile profile
}

// stepped is a model under way.
type stepped struct {
	e       *profiler
	stepper *train.Stepper
	rows    [][]data.Row // of each step
	done    int
	loss    float64
}

// warmUp is the number of steps that are not counted: the first one touches the
// memory, the second one comes after it.
const warmUp = 2

// step measures training steps.
func (b *bench) step(ctx context.Context) (*stepReport, error) {
	s, p, err := b.stepped()
	if err != nil {
		return nil, err
	}
	defer s.e.Close()
	defer restrain(s.e.Engine)()
	r := &stepReport{
		common: b.common("step", b.in.Weights()), Micro: p.Batch.B, Steps: b.steps, Start: processAge().Seconds(),
	}
	var steps, peak samples
	if r.First, err = s.step(); err != nil {
		return nil, err
	}
	if _, err = s.step(); err != nil {
		return nil, err
	}
	seen := beginWatch()
	peak.add(s.e.Engine.Peak(r.computes))
	for range b.steps {
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		took, err := s.step()
		if err != nil {
			return nil, err
		}
		steps.add(took)
		peak.add(s.e.Engine.Peak(r.computes)) // the clock of a processor moves
	}
	r.Noise = noise{Peak: peak.spread(), Steps: steps.spread(), Others: seen.others(b.threads), mine: b.threads}
	r.PeakRSS = peakRSS()
	r.settle(steps, peak, b.spec.TrainFLOPs(model.Batch{B: b.rows, T: b.seq}))
	if err := r.takeProfile(s); err != nil {
		return nil, err
	}
	r.Bandwidth, r.Loss = readBandwidth(b.threads), s.loss
	return r, nil
}

// settle turns samples into figures.
func (r *stepReport) settle(steps, peak samples, flops float64) {
	r.Step, r.Best = steps.median(), slices.Min(steps.values)
	r.TokensPerSecond = float64(r.Rows*r.Seq) / r.Step
	r.GFLOPS, r.PeakGFLOPS = flops/r.Step/1e9, peak.median()/1e9
	r.Share = r.GFLOPS / r.PeakGFLOPS
}

// takeProfile runs one more step and measures what it is made of.
func (r *stepReport) takeProfile(s *stepped) error {
	s.e.start()
	_, err := s.step()
	r.profile = s.e.stop()
	r.Ops, r.Profiled = r.profile.byName(), r.profile.wall.Seconds()
	return err
}

// stepped makes the model of the configuration on an engine.
func (b *bench) stepped() (*stepped, plan.Plan, error) {
	adamw := b.adamw()
	p, err := plan.Choose(plan.Request{
		Spec: b.spec, Layout: b.in.Layout(), AdamW: adamw, Sequence: b.seq, Rows: b.rows, Micro: b.micro,
		Threads: b.options().Threads,
		Memory:  available(), Other: beside(),
	}, predictor(b.options()))
	if err != nil {
		return nil, p, err
	}
	s := &stepped{e: &profiler{Engine: cpu.New(b.options())}}
	s.stepper, err = train.NewStepper(s.e, b.spec, p.Layout, p.Batch, adamw)
	if err == nil {
		err = randomWeights(s.stepper.Write, b.spec.Whole())
	}
	if err != nil {
		s.e.Close()
		return nil, p, err
	}
	all := randomRows(b.rows*(b.steps+warmUp+1), b.seq, b.spec.V)
	s.rows = slices.Collect(slices.Chunk(all, b.rows))
	return s, p, nil
}

// adamw is the optimizer of every bench.
func (b *bench) adamw() optim.AdamW {
	return b.in.Apply(optim.AdamW{
		Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Clip: 1, HalfMoments: b.moments == half.BF16.String(),
	})
}

// step runs a step on rows of its own and says how long it took.
func (s *stepped) step() (seconds float64, err error) {
	began := time.Now()
	rep, err := s.stepper.Step(s.rows[s.done], 3e-4, int64(s.done+1))
	s.done++
	s.loss = rep.Loss
	return time.Since(began).Seconds(), err
}

// randomWeights gives a model weights that are good to compute with: norms of one,
// and the same million numbers, uniform with the usual standard deviation, again
// and again. Those of a run that begins are all different, which takes longer to
// make and no longer to train.
func randomWeights(write func(name string, lo int, x []float32) error, params []program.Param) error {
	draw := rng.New(0, "bench weights")
	values := make([]float32, 1<<20-3) // no divisor of it is the width of a matrix
	for i := range values {
		values[i] = float32(0.02 * math.Sqrt(3) * (2*draw.Float64(uint64(i)) - 1))
	}
	ones := make([]float32, 1<<14)
	for i := range ones {
		ones[i] = 1
	}
	for _, p := range params {
		from, row := values, p.Len()/p.Shape[0]
		if p.Class == program.Norm {
			from, row = ones, 1
		}
		for lo := 0; lo < p.Len(); lo += len(from) / row * row { // whole rows, which may share a scale
			piece := from[:min(len(from)/row*row, p.Len()-lo)]
			if err := write(p.Name, lo, piece); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *stepReport) print(w io.Writer) error {
	t := newTable(w)
	r.head(t, fmt.Sprintf(", %d at a time", r.Micro))
	t.row("speed", "%.1f tokens/s, %.1f GFLOP/s, %s of the peak", r.TokensPerSecond, r.GFLOPS, inPercent(r.Share))
	t.row("step", "%.4f s, the median of %d; the best %.4f s, the first %.4f s", r.Step, r.Steps, r.Best, r.First)
	if r.Start > 0 {
		t.row("start", "%.2f s from the start of the process to the first op", r.Start)
	}
	r.foot(t, "the steps")
	if err := printed(t.w.Flush()); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return printed(err)
	}
	return r.profile.print(w, limits{1e9 * r.PeakGFLOPS, r.Bandwidth})
}
