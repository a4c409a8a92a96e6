// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pleach/blob"
	"pleach/config"
	"pleach/engine/cpu"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/track"
	"pleach/train"
)

func newTrain() *cobra.Command {
	var dry bool
	var o training
	c := &cobra.Command{
		Use:   "train RECIPE.yaml [key=value …]",
		Short: "Pre-train, continue or fine-tune a model: the recipe says which",
		Long: `Train runs a recipe until it is done. A run that was stopped or killed goes on
from its newest good checkpoint when it is started again. Ctrl-C and SIGTERM save
and leave with exit code 75; a second one ends the process at once.

Every value of the recipe can be given on the command line by its dotted path.
With --dry-run nothing is trained: it prints the recipe as it would run, with
where each value came from, and what it would take.

With --profile one step, once the first ones are done, is measured op by op:
profile.txt says where its time went, trace.json which worker did what when, for
chrome://tracing or Perfetto. The run has the same bits.`,
		Example: `  pleach train recipe.yaml
  pleach train recipe.yaml train.batch="8 sequences" out=runs/second
  pleach train recipe.yaml data.sources.0.weight=0.5 --dry-run
  pleach train recipe.yaml --profile profile`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dry {
				return withRecipe(c.Context(), args, func(p *prepared) error {
					return p.dryRun(c.OutOrStdout(), c.ErrOrStderr())
				})
			}
			r, err := config.Load(args[0], args[1:])
			if err != nil {
				return err
			}
			_, err = o.train(c.Context(), r, newProgress(c.ErrOrStderr()))
			return err
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "print the effective recipe and the plan, train nothing")
	c.Flags().BoolVar(&o.changed, "accept-changed-data", false, "go on with a run although files of its corpus have changed")
	c.Flags().StringVar(&o.profile, "profile", "", "write a profile of one step into this `folder`")
	return c
}

// trainRecipe runs a recipe to its end and shows its progress.
func trainRecipe(ctx context.Context, r *config.Recipe, show display) (train.Result, error) {
	return training{}.train(ctx, r, show)
}

// training is what the command line says beside the recipe.
type training struct {
	profile string // a folder for a profile of a step, or ""
	changed bool   // go on although the corpus has changed
}

func (o training) train(ctx context.Context, r *config.Recipe, show display) (train.Result, error) {
	p, err := prepare(ctx, r)
	if err != nil {
		return train.Result{}, err
	}
	defer p.close()
	resumes, err := p.sameRun()
	if err == nil && resumes {
		err = p.checkFiles(o.changed)
	}
	if err != nil {
		return train.Result{}, err
	}
	if err := os.MkdirAll(r.Out, 0o777); err != nil {
		return train.Result{}, fault.Machinef("run directory: %w", err)
	}
	unlock, err := blob.Lock(r.Out)
	if err != nil {
		return train.Result{}, err
	}
	defer unlock()
	if err := writeFile(r.Out, "run.yaml", r.Effective()); err != nil {
		return train.Result{}, err
	}
	if err := p.keepFiles(); err != nil {
		return train.Result{}, err
	}
	log, err := track.Open(filepath.Join(r.Out, "events.jsonl"))
	if err != nil {
		return train.Result{}, err
	}
	defer log.Close()
	show.begin(p, resumes)
	result, err := p.train(ctx, sinks{log, show}, o.profile)
	show.end(result, err)
	return result, err
}

// train makes the engine and what hangs on it, and runs the job.
func (p *prepared) train(ctx context.Context, sink track.Sink, folder string) (train.Result, error) {
	w, err := newStepProfile(folder, p)
	if err != nil {
		return train.Result{}, err
	}
	defer limitMemory(p.plan.Total())()
	e := cpu.New(p.options)
	defer e.Close()
	j := p.job(w.engine(e))
	j.Sink, j.Peak = sink, bestPeak(e, p.precision.Weights())
	w.limits.peak = j.Peak
	if j.Evaluate, err = p.evaluation(e); err != nil {
		return train.Result{}, err
	}
	result, err := train.Run(ctx, j)
	if why := w.missing(); why != "" && err == nil {
		err = sink.Write(time.Now(), track.Warning{Step: result.Step, Reason: why})
	}
	return result, err
}

// dryRun prints what a run would be.
func (p *prepared) dryRun(stdout, stderr io.Writer) error {
	if _, err := stdout.Write(p.recipe.Effective()); err != nil {
		return printed(err)
	}
	p.describe(stderr)
	p.warn(stderr)
	_, err := p.sameRun()
	return err
}

// warn prints what a run that begins would warn of.
func (p *prepared) warn(w io.Writer) {
	for _, what := range p.warnings {
		fmt.Fprintf(w, "warning: %s\n", what)
	}
}

// describe says what a run is and takes.
func (p *prepared) describe(w io.Writer) {
	s, m := p.model.Spec, p.plan.Memory
	fmt.Fprintln(w, machineLine(p.options, granted(system())))
	fmt.Fprintf(w, "model: %s parameters: %d layers, width %d, %d heads (%d key/value), feed-forward %d, vocabulary %d\n",
		amount(float64(s.Count())), s.L, s.D, s.H, s.G, s.F, s.V)
	tokens := p.steps * int64(p.rows*p.plan.Batch.T)
	fmt.Fprintf(w, "run: %d steps of %d sequences of %d: %s tokens; micro-batches of %d, recomputation %v\n",
		p.steps, p.rows, p.plan.Batch.T, amount(float64(tokens)), p.plan.Batch.B, p.plan.Layout.Recompute)
	for _, s := range p.sources {
		fmt.Fprintln(w, seenLine(s))
	}
	fmt.Fprintf(w, "precision: %v\n", train.TypesOf(p.plan.Layout, p.adamw))
	for _, g := range p.adamw.Groups(s.Whole()) {
		fmt.Fprintf(w, "%v\n", g)
	}
	fmt.Fprintf(w, "memory: %v: weights, moments and sums %v, activations %v, the rest %v\n",
		unit.Bytes(p.plan.Total()).Rounded(), unit.Bytes(m.State).Rounded(), unit.Bytes(m.Arena).Rounded(),
		unit.Bytes(m.Input+m.Scratch+p.plan.Other).Rounded())
	fmt.Fprintf(w, "work: %.3g GFLOP a step, %.3g TFLOP in all; checkpoints of %v\n",
		float64(p.plan.FLOPs)/1e9, float64(p.plan.FLOPs)*float64(p.steps)/1e12, unit.Bytes(p.saved()*s.Count()).Rounded())
}

// saved is the bytes of a parameter in a checkpoint: as it is published, its
// moments, and the exact weight where the published one is rounded.
func (p *prepared) saved() int {
	published, exact, moments := half.F32.Size(), half.F32.Size(), half.F32.Size()
	if p.recipe.Checkpoint.DType == half.BF16.String() {
		published = half.BF16.Size()
	}
	if p.precision.Weights() == half.BF16 && !p.adamw.Master {
		exact = half.BF16.Size()
	}
	if p.adamw.HalfMoments {
		moments = half.BF16.Size()
	}
	if exact <= published {
		exact = 0
	}
	return published + exact + 2*moments
}

// sinks are several as one.
type sinks []track.Sink

func (s sinks) Write(at time.Time, e track.Event) error {
	var errs []error
	for _, sink := range s {
		errs = append(errs, sink.Write(at, e))
	}
	return errors.Join(errs...)
}

func (s sinks) Close() error { return nil } // each is closed by who opened it

// writeFile replaces a file in a folder, whole or not at all.
func writeFile(dir, name string, text []byte) error {
	return blob.Local(dir).Write(name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
