// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"pleach/internal/fault"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(fault.Exit(err))
	}
}

// run is the whole program: make what is missing, then write the page.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	e, o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	w := &work{dir: o.out, set: e.set, pleach: o.pleach, threads: o.threads, stderr: stderr}
	if err := w.keep(); err != nil {
		return err
	}
	if !o.report {
		if err := w.prepare(ctx); err != nil {
			return err
		}
		if err := w.runAll(ctx, e.specs(), o.atOnce); err != nil {
			return err
		}
	}
	all, err := w.results(e.specs())
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d of %d runs are done\n", len(all), len(e.specs()))
	return writePage(o.page, e, all)
}

// options are what changes no number.
type options struct {
	out, page, pleach string
	atOnce, threads   int
	report            bool
}

// parse reads the command line.
func parse(args []string, stderr io.Writer) (experiment, options, error) {
	var e experiment
	var o options
	f := flag.NewFlagSet("converging", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.out, "out", "runs/converging", "folder for texts, recipes and runs")
	f.StringVar(&o.page, "page", "docs/converging.md", "page whose marked parts are written, with figures beside it")
	f.StringVar(&o.pleach, "pleach", "", "the binary to run (default: built once into the folder)")
	f.IntVar(&o.atOnce, "at-once", 2, "runs at the same time")
	f.IntVar(&o.threads, "threads", 1, "threads of each run")
	f.BoolVar(&o.report, "report", false, "train nothing, report on what is done")
	modes := f.String("modes", "f32,f32-again,mixed,bf16-sr,bf16-sr-moments,bf16", "precisions that are compared")
	seeds := f.String("seeds", "0,1,2", "seeds of each")
	betas := f.String("beta2", "0.95,0.99", "values of β2 that are compared; the first is the one of the precisions too")
	betaModes := f.String("beta2-modes", "f32,bf16-sr,bf16-sr-moments", "precisions in which they are")
	f.Float64Var(&e.lr, "lr", 2e-3, "peak of the learning rate when precisions are compared")
	rates := f.String("beta2-lr", "2e-3,6e-3", "the same when values of β2 are, one or more")
	f.StringVar(&e.set.Preset, "preset", "mini", "model, a preset of init")
	f.IntVar(&e.set.Vocabulary, "vocabulary", 2048, "tokens of the tokenizer")
	f.IntVar(&e.set.Sequence, "sequence", 128, "ids of a sequence")
	f.IntVar(&e.set.Batch, "batch", 8, "sequences of a step")
	f.IntVar(&e.set.Steps, "steps", 1000, "steps of a run")
	f.StringVar(&e.set.Floor, "floor", "10 %", "rate of the last step, of the peak")
	if err := f.Parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			err = fault.As(fault.Config, err)
		}
		return e, o, err
	}
	if f.NArg() > 0 || o.atOnce < 1 || o.threads < 1 || e.set.Steps < 2*bins || !(e.lr > 0) {
		return e, o, fault.Configf("converging: want no arguments, --at-once and --threads of at least 1, "+
			"--steps of at least %d and a learning rate above 0; got %q", 2*bins, args)
	}
	number := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	var errs [5]error
	e.modes, errs[0] = parseModes(*modes)
	e.betaModes, errs[1] = parseModes(*betaModes)
	e.betas, errs[2] = list(*betas, number)
	e.seeds, errs[3] = list(*seeds, strconv.Atoi)
	e.betaRates, errs[4] = list(*rates, number)
	return e, o, errors.Join(errs[:]...)
}

// list reads words with commas between them.
func list[T any](s string, parse func(string) (T, error)) ([]T, error) {
	var all []T
	for w := range strings.SplitSeq(s, ",") {
		v, err := parse(strings.TrimSpace(w))
		if err != nil {
			return nil, fault.Configf("converging: %q in %q: %w", w, s, err)
		}
		all = append(all, v)
	}
	return all, nil
}
