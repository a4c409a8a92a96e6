// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/optim"
)

// bench measures this machine and what pleach makes of it.
type bench struct {
	compute
	config                  string
	rows, seq, steps, micro int
	largest                 int
	asJSON                  bool
	compare                 string
	moments                 string // their type, of step and the update of ops

	spec model.Spec
	in   optim.Precision // of all but generate, which trains nothing
}

// benches are what can be measured of a model, the usual one last.
func benches() []string { return []string{"gemm", "ops", "generate", "step"} }

func newBench() *cobra.Command {
	var b bench
	c := &cobra.Command{
		Use:   "bench [gemm | ops | generate | step | tokenizer TOKENIZER FILES…]",
		Short: "How fast this machine trains and generates, beside what it could at best",
		Long: `Bench measures the peak of the processor (multiplications and additions in its
widest registers) and the read bandwidth of its memory, and beside them

  step      training steps on random ids: tokens per second, share of the peak,
            memory, start-up time, and where the time of a step goes; the default
  generate  one token after another: tokens per second, and what reading the weights
            for each takes of the bandwidth; how fast a prompt of --seq ids is read
  gemm      the matrix products of the configuration, each with its share of the peak
  ops       every kernel alone, with the share of what peak or bandwidth allow
  data      documents to rows: a command of its own, see pleach bench data --help

How fast texts become ids is measured by itself: pleach bench tokenizer --help.

A configuration is a preset of init with a vocabulary of 4096 (up to quick) or
32000 words, or its own. FLOPs are counted as 6 for each weight of a product and
token, and half of the square for attention, so that figures of other programs
compare (bench/torch_step.py).

Where the spread of the measurements or other processes leave no room for a
verdict, it says so on stderr. What lies in caches may be read faster than the
bandwidth of the memory: a share above 100 % says that.`,
		Example: `  pleach bench
  pleach bench --config quick --threads 1 --json > quick.json
  pleach bench --config quick --threads 1 --compare quick.json
  pleach bench --precision bf16-sr
  pleach bench generate --config d1024 --precision bf16
  pleach bench gemm --config d1024
  PLEACH_CPU=avx2 pleach bench ops
  pleach bench data recipe.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return b.run(c, args) },
	}
	c.AddCommand(newBenchTokenizer())
	c.AddCommand(newBenchData())
	b.flags(c)
	f := c.Flags()
	f.StringVar(&b.precision, "precision", optim.F32.String(), fmt.Sprintf(
		"as in a recipe: %s, of which\nthe last three differ in the update only; generate knows %s",
		strings.Join(optim.Precisions(), ", "), strings.Join(generatePrecisions(), ", ")))
	f.StringVar(&b.moments, "moments", half.F32.String(), "type of the optimizer's moments: f32, or with bf16-sr bf16")
	f.StringVar(&b.config, "config", "d512", "the model: quick, d512, d1024 or another preset")
	f.IntVar(&b.rows, "rows", 4, "sequences of a step; of generate 1 unless it is given")
	f.IntVar(&b.seq, "seq", 512, "ids of a sequence; of generate those of the prompt")
	f.IntVar(&b.steps, "steps", 8, "steps to take the median of, after two that are not counted; kernels run\nat least as often; generate makes 8 tokens for each")
	f.IntVar(&b.micro, "micro", 0, "sequences computed at a time; 0: as many as train would take")
	f.IntVar(&b.largest, "largest", 2048, "of the square products of gemm")
	f.BoolVar(&b.asJSON, "json", false, "print a JSON object instead of tables")
	f.StringVar(&b.compare, "compare", "", "print ratios to what --json printed into this `file`")
	return c
}

func (b *bench) run(c *cobra.Command, args []string) error {
	what := "step"
	if len(args) > 0 {
		what = args[0]
	}
	if !slices.Contains(benches(), what) {
		all := append(benches(), "tokenizer")
		return errUsage(c, "got %q, want %s%s", what, strings.Join(all, ", "), meant(what, all))
	}
	if err := b.check(c, what); err != nil {
		return err
	}
	var old *oldReport
	if b.compare != "" {
		var err error
		if old, err = readReport(b.compare); err != nil {
			return err
		}
		if err := old.fits(b, what); err != nil {
			return errUsage(c, "--compare: %s: %v", b.compare, err)
		}
	}
	r, err := b.measure(c.Context(), what)
	if err != nil {
		return err
	}
	if why := r.spread().tooNoisy(); why != "" {
		fmt.Fprintf(c.ErrOrStderr(), "bench: this machine is too noisy to decide: %s\n", why)
	}
	return b.show(c, r, old)
}

// show prints a report, and how it compares. Where JSON is the result, ratios go
// beside it.
func (b *bench) show(c *cobra.Command, r report, old *oldReport) error {
	beside := c.OutOrStdout()
	if b.asJSON {
		if err := printJSON(beside, r); err != nil {
			return err
		}
		beside = c.ErrOrStderr()
	} else if err := r.print(beside); err != nil {
		return err
	}
	if old == nil {
		return nil
	}
	return r.compare(beside, old)
}

func (b *bench) measure(ctx context.Context, what string) (report, error) {
	switch what {
	case "gemm":
		return b.kernels(ctx, "gemm", b.products())
	case "ops":
		return b.kernels(ctx, "ops", b.ops())
	case "generate":
		return b.generate(ctx)
	}
	return b.step(ctx)
}

// check settles the flags.
func (b *bench) check(c *cobra.Command, what string) error {
	b.precisions = optim.Precisions()
	if what == "generate" {
		b.precisions = generatePrecisions()
		if !c.Flags().Changed("rows") {
			b.rows = 1
		}
	}
	if err := b.compute.check(c); err != nil {
		return err
	}
	for _, f := range []struct {
		name     string
		n, least int
	}{{"rows", b.rows, 1}, {"seq", b.seq, 2}, {"steps", b.steps, 1}, {"micro", b.micro, 0}} {
		if f.n < f.least {
			return errUsage(c, "--%s: got %d, want %d or more", f.name, f.n, f.least)
		}
	}
	if b.micro > 0 && b.rows%b.micro != 0 {
		return errUsage(c, "--micro: got %d, want a divisor of the %d rows", b.micro, b.rows)
	}
	var err error
	if b.spec, err = benchSpec(b.config); err != nil {
		return errUsage(c, "--config: %v", err)
	}
	if what != "generate" {
		b.in, err = optim.ParsePrecision(b.precision)
	}
	if b.moments != half.F32.String() && (b.moments != half.BF16.String() || b.in != optim.BF16SR) {
		return errUsage(c, "--moments: got %q with the precision %s, want f32, or bf16 with bf16-sr", b.moments, b.precision)
	}
	return err
}

// benchSpec is the architecture of a configuration. The three of the peers are
// presets; one that follows the tokenizer gets the vocabulary that they have.
func benchSpec(config string) (model.Spec, error) {
	const small, usual = 4096, 32_000
	s, err := model.Preset(config, small)
	if err != nil {
		return s, err
	}
	for _, p := range model.Presets() {
		switch {
		case p.Name != config:
		case p.Spec.V > 0:
			s.V = p.Spec.V
		case p.Spec.D > 256:
			s.V = usual
		}
	}
	return s, nil
}

// meant is a hint at the word that got was probably meant to be.
func meant(got string, words []string) string {
	if w := fault.Nearest(got, words); w != "" {
		return "; did you mean " + w + "?"
	}
	return ""
}
