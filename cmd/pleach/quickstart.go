// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pleach/config"
	"pleach/corpus"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/token"
	"pleach/track"
	"pleach/train"
)

func newQuickstart() *cobra.Command {
	q := &quickstart{}
	c := &cobra.Command{
		Use:   "quickstart",
		Short: "Continual pre-training on this machine in minutes, with nothing to download",
		Long: `Quickstart trains three small models on text that is already here, and shows
what continual pre-training gains and what it makes a model forget:

  base        trained on a general text
  continued   the base model, trained on a domain
  replay      the same, with a tenth of general text mixed in

and then merges base and continued into a fourth, which costs no training.

The texts are the Go sources of the go command in PATH: general is their
comments, domain is their code without comments, and whole packages are held out
to measure on. Without Go, two kinds of documentation on this machine are used.

With --text you choose: --text GENERAL --text DOMAIN, each a file or a folder of
text or JSONL; or one --text FOLDER whose entries general and domain they are, or
else its first entry by name and all the others. One piece in twenty is held out.

First the machine is measured, then the sizes of model and texts are chosen so
that everything ends within --minutes. Started again with the same --out it goes
on where it stopped. The folder holds recipes that "train" runs as they are.`,
		Example: `  pleach quickstart
  pleach quickstart --minutes 20 --out ~/first
  pleach quickstart --text wikipedia/ --text papers/`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q.stdout, q.stderr = c.OutOrStdout(), c.ErrOrStderr()
			return q.run(c.Context())
		},
	}
	c.Flags().StringVar(&q.out, "out", "pleach-quickstart", "folder for everything that is made")
	c.Flags().StringArrayVar(&q.texts, "text", nil, "your own texts: general, then domain; or one folder of both")
	c.Flags().Float64Var(&q.minutes, "minutes", 5, "how long it may take")
	c.Flags().IntVar(&q.threads, "threads", 0, "worker threads (default: the processors of this machine)")
	return c
}

// quickstart is one call of the verb.
type quickstart struct {
	out     string
	texts   []string
	minutes float64
	threads int
	sizes   *sizing // given by tests instead of measured

	stdout, stderr io.Writer

	began  time.Time
	plan   quickPlan
	corpus *corpus.Corpus // once it is found
}

// stage is one of the three trainings.
type stage struct {
	name  string // of its run directory
	label string // in the table
	file  string // of its recipe
	steps int
}

func (q *quickstart) stages() []stage {
	s := q.plan.Sizes
	return []stage{
		{"base", "base", "base.yaml", s.Base},
		{"continued", "continued", "continue.yaml", s.Continue},
		{"replay", "continued, 10 % replay", "continue-replay.yaml", s.Replay},
	}
}

// checkpoint is the model that a stage ends with.
func (q *quickstart) checkpoint(s stage) string {
	return filepath.Join(q.out, s.name, "checkpoints", fmt.Sprintf("step-%08d", s.steps))
}

func (q *quickstart) say(format string, args ...any) { fmt.Fprintf(q.stderr, format+"\n", args...) }

// run is the whole story. Every part is skipped if what it makes is there.
func (q *quickstart) run(ctx context.Context) error {
	if !(q.minutes > 0 && q.minutes <= 7*24*60) {
		return fault.Configf("quickstart: --minutes: got %v, want a number above 0 and at most a week", q.minutes)
	}
	if q.threads < 0 {
		return fault.Configf("quickstart: --threads: got %d", q.threads)
	}
	if _, err := options(q.threads); err != nil {
		return err
	}
	q.began = time.Now()
	for _, part := range []func(context.Context) error{
		q.prepare, q.makeTexts, q.makeTokenizer, q.trainAll, q.mergeModels,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return q.report(ctx)
}

// findTexts finds the texts that were named, or some on this machine, once: it
// looks at thousands of files.
func (q *quickstart) findTexts(ctx context.Context, named []string) (_ *corpus.Corpus, err error) {
	if q.corpus == nil {
		q.corpus, err = corpus.Find(ctx, named)
	}
	if errors.Is(err, fault.Config) {
		err = fmt.Errorf("%w; pleach quickstart --help says how texts are named by --text", err)
	}
	return q.corpus, err
}

// makeTexts writes the texts of the plan.
func (q *quickstart) makeTexts(ctx context.Context) error {
	dir := filepath.Join(q.out, "text")
	if exists(dir) {
		return nil
	}
	c, err := q.findTexts(ctx, q.plan.Text)
	if err != nil {
		return err
	}
	s := q.plan.Sizes
	got, err := c.Write(ctx, dir, corpus.Quota{Train: s.Text, HeldOut: s.HeldOut})
	if errors.Is(err, fault.Stopped) {
		return fmt.Errorf("%w; the same command goes on from there", err)
	}
	if err != nil {
		return err
	}
	for side, name := range corpus.Sides() {
		q.say("%s: %s: %v to train on, %v held out", name, c.Names[side], unit.Bytes(got[side][0]).Rounded(),
			unit.Bytes(got[side][1]).Rounded())
	}
	return nil
}

// makeTokenizer learns a tokenizer from both texts, half and half.
func (q *quickstart) makeTokenizer(ctx context.Context) error {
	dir := filepath.Join(q.out, "tokenizer")
	if exists(dir) {
		return nil
	}
	began := time.Now()
	var failed error
	docs := func(yield func([]byte) bool) {
		for side := range 2 {
			file := filepath.Join(q.out, "text", corpus.FileName(side, false))
			for text, err := range corpus.Read(file, q.plan.Sizes.Learn) {
				if err == nil && ctx.Err() != nil {
					err = errInterrupted()
				}
				if err != nil {
					failed = err
					return
				}
				if !yield(text) {
					return
				}
			}
		}
	}
	t, err := token.Train(docs, token.TrainOptions{Size: q.plan.Sizes.Vocabulary, Threads: threadsOf(q.threads)})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	part := dir + ".part"
	if err := errors.Join(os.RemoveAll(part), t.Save(part), os.Rename(part, dir)); err != nil {
		return fault.As(fault.Machine, err)
	}
	q.say("tokenizer: byte-level BPE of %d, learned in %.1f s", t.Size(), time.Since(began).Seconds())
	return nil
}

// trainAll runs the three recipes.
func (q *quickstart) trainAll(ctx context.Context) error {
	show := newQuickProgress(q.stderr)
	for i := range q.stages() {
		if err := q.makeRecipe(i); err != nil {
			return err
		}
		show.stage(q.stages()[i:], q.plan.Sizes.step())
		result, err := q.train(ctx, q.stages()[i], show)
		if errors.Is(err, fault.Stopped) {
			return fmt.Errorf("%w; the same command goes on from there", err)
		}
		if err != nil {
			return err
		}
		if i == 0 && result.Resumed == "" {
			if err := q.settle(); err != nil {
				return err
			}
		}
	}
	return nil
}

// train runs a stage by its recipe.
func (q *quickstart) train(ctx context.Context, s stage, show display) (train.Result, error) {
	var overrides []string
	if q.threads > 0 {
		overrides = []string{fmt.Sprintf("engine={cpu: {threads: %d}}", q.threads)}
	}
	r, err := config.Load(filepath.Join(q.out, s.file), overrides)
	if err != nil {
		return train.Result{}, err
	}
	return trainRecipe(ctx, r, show)
}

// settle shortens the continuations if the base model took so long that they
// would not end in time.
func (q *quickstart) settle() error {
	_, work, err := q.scores(q.stages()[0])
	if err != nil {
		return err
	}
	rate := float64(work.Tokens) / work.Seconds
	s := q.plan.Sizes.within(60*q.minutes-time.Since(q.began).Seconds(), rate)
	if s == q.plan.Sizes {
		return nil
	}
	q.say("the base model took longer than planned (%s tokens/s): %d and %d steps instead of %d and %d",
		amount(rate), s.Continue, s.Replay, q.plan.Sizes.Continue, q.plan.Sizes.Replay)
	q.plan.Sizes = s
	return q.savePlan()
}

// scores reads what a stage ended with: the last evaluation of each text. work
// is what its steps took.
func (q *quickstart) scores(s stage) (row tableRow, work workDone, err error) {
	row.Label = s.label
	f, err := os.Open(filepath.Join(q.out, s.name, "events.jsonl"))
	if err != nil {
		return row, work, fault.Statef("quickstart: %w", err)
	}
	defer f.Close()
	var found [2]bool
	_, err = track.Read(f, func(r track.Record) error {
		switch e := r.Event.(type) {
		case track.Step:
			work.Tokens += int64(q.plan.Sizes.step())
			work.Seconds += e.StepSeconds
		case track.Eval:
			for side, name := range corpus.Sides() {
				if e.Name == name && e.Step == int64(s.steps) {
					row.Score[side], found[side] = score{e.Perplexity, e.BitsPerByte}, true
				}
			}
		}
		return nil
	})
	if err == nil && found != [2]bool{true, true} {
		err = fault.Statef("quickstart: %s: no evaluation at step %d in its events.jsonl", s.name, s.steps)
	}
	return row, work, err
}

// errInterrupted says that the quickstart was told to stop between trainings.
func errInterrupted() error {
	return fault.As(fault.Stopped, errors.New("quickstart: stopped; the same command goes on from there"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// percent is a change in per cent.
func percent(from, to float64) float64 { return math.Round(100 * (to/from - 1)) }
