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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/merge"
)

func newMerge() *cobra.Command {
	var o merging
	c := &cobra.Command{
		Use:   "merge CONFIG.yaml OUT",
		Short: "Make one model of several, as a mergekit configuration says",
		Long: `Merge reads a configuration in the language of mergekit and writes the merged
model into OUT, which appears when it is complete: weights, config.json, tokenizer,
generation config, a model card, the configuration, and a manifest.

Tensors stream through at most --max-memory bytes, whatever the size of the models.
The same configuration, models and seed give the same bytes, with any number of
threads, any memory and any size of shards. Until it is complete everything is in
OUT.part; after a kill the same command with --resume goes on from there.

Arithmetic is in float32 with sums in float64, rounded once to the type of the
output. --mergekit-compat rounds after every operation instead, as mergekit does, to
compare with its files.

A model is a folder, the run directory of a training, or a name in the cache of the
Hugging Face hub; MODEL+ADAPTER applies a LoRA adapter. --dry-run prints which tensor
becomes which with what parameters, and how much is read and written.

With --evaluate the perplexities of all inputs and of the output stand in one table.
With --sweep no model is written: one parameter takes all values from A to B, and
the perplexities of the merged model become a table, a CSV file and a page in OUT.`,
		Example: `  pleach merge slerp.yaml merged --dry-run
  pleach merge slerp.yaml merged --evaluate domain=pubmed.jsonl general=wiki.txt
  pleach merge ties.yaml merged --max-memory 4GiB --threads 8 --seed 7
  pleach merge slerp.yaml curve --sweep t=0:1:0.1 --evaluate domain=pubmed.jsonl general=wiki.txt`,
		Args: func(c *cobra.Command, args []string) error { return o.arguments(args) },
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			return o.run(c)
		},
	}
	o.flags(c)
	return c
}

// merging is what merge is told.
type merging struct {
	compute
	config, out string
	texts       []string // NAME=FILE
	sequence    int
	field       string
	memory      string
	shard       string
	cache       string
	sweep       string
	dryRun      bool
	resume      bool
	quiet       bool
	verbose     bool
	tokenizer   bool
	card        bool
	options     merge.Options

	limits merge.Limits
	steps  *sweeping
}

// arguments takes CONFIG and OUT, and texts to evaluate behind them.
func (o *merging) arguments(args []string) error {
	if len(args) < 2 && !(o.dryRun && len(args) == 1) {
		return fmt.Errorf("got %d arguments, want CONFIG.yaml and OUT", len(args))
	}
	o.config = args[0]
	if len(args) == 1 {
		return nil
	}
	o.out = args[1]
	for _, t := range args[2:] {
		if len(o.texts) == 0 || !strings.Contains(t, "=") {
			return fmt.Errorf("got %q after CONFIG.yaml and OUT, want nothing, or NAME=FILE after --evaluate", t)
		}
		o.texts = append(o.texts, t)
	}
	return nil
}

func (o *merging) flags(c *cobra.Command) {
	f := c.Flags()
	o.compute.flags(c)
	f.IntVarP(&o.threads, "num-threads", "j", 0, "the same as --threads")
	f.StringVar(&o.memory, "max-memory", "1GiB", "the most memory to take")
	f.StringVar(&o.shard, "out-shard-size", "5B", "bytes of tensors in an output file: a number with k, m or b for 10³, 10⁶, 10⁹; 0: one file")
	f.Uint64Var(&o.options.Seed, "seed", 0, "seed of methods that choose at random")
	f.Uint64Var(&o.options.Seed, "random-seed", 0, "the same as --seed")
	f.BoolVar(&o.options.Crimes, "allow-crimes", false, "merge models of different architectures")
	f.BoolVar(&o.options.Skips, "allow-skips", false, "leave a model out of tensors whose shape is another one")
	f.BoolVar(&o.options.NonFinite, "allow-nonfinite", false, "compute with NaN and infinities")
	f.BoolVar(&o.options.Compat, "mergekit-compat", false, "round as mergekit does")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the plan and write nothing")
	f.BoolVar(&o.resume, "resume", false, "go on with what a killed merge left in OUT.part")
	f.BoolVar(&o.tokenizer, "copy-tokenizer", true, "copy the tokenizer of the base, or of the first model")
	f.BoolVar(&o.card, "write-model-card", true, "write README.md and mergekit_config.yml")
	f.StringVar(&o.cache, "model-cache", "", "`folder` of the Hugging Face hub's cache, in place of the usual one")
	f.StringVar(&o.cache, "transformers-cache", "", "the same as --model-cache")
	f.StringArrayVar(&o.texts, "evaluate", nil, "measure the perplexity of a text, `NAME=FILE`; may be repeated")
	f.IntVar(&o.sequence, "sequence", 0, "of --evaluate: ids of a window, as in pleach eval")
	f.StringVar(&o.field, "field", "text", "of --evaluate: of a JSONL line, the text or a list of ids")
	f.StringVar(&o.sweep, "sweep", "", "`NAME=A:B:STEP`: measure the merged model for these values of a parameter, and write no model")
	f.BoolVar(&o.quiet, "quiet", false, "show no progress")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "list dropped tensors and what was not read")
	for _, name := range []string{"num-threads", "random-seed", "transformers-cache"} {
		f.Lookup(name).Hidden = true
	}
	mergekitFlags(c)
}

// mergekitFlags are flags of mergekit that need nothing here, and those that ask for
// what is not to be had.
func mergekitFlags(c *cobra.Command) {
	f := c.Flags()
	for _, name := range []string{
		"clone-tensors", "async-write", "lazy-unpickle", "safe-serialization",
		"no-clone-tensors", "no-async-write", "no-lazy-unpickle", "no-allow-crimes",
		"no-copy-tokenizer", "no-write-model-card",
	} {
		f.Bool(name, false, "")
		f.Lookup(name).Hidden = true
	}
	for _, name := range []string{"lora-merge-cache", "lora-merge-dtype", "write-threads"} {
		f.String(name, "", "")
		f.Lookup(name).Hidden = true
	}
	for name := range refusedFlags {
		f.String(name, "", "")
		f.Lookup(name).NoOptDefVal = "true"
		f.Lookup(name).Hidden = true
	}
}

// refusedFlags are flags of mergekit that cannot be followed, and why.
var refusedFlags = map[string]string{
	"cuda":                  onCPU,
	"device":                onCPU,
	"low-cpu-memory":        onCPU,
	"read-to-gpu":           onCPU,
	"multi-gpu":             onCPU,
	"gpu-rich":              onCPU,
	"no-safe-serialization": "pickles are not written: the output is safetensors",
	"trust-remote-code":     "there is no Python to run code of a model",
}

const onCPU = "merging is bound by the disk, and runs on the processor"

func (o *merging) check(c *cobra.Command) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, errUsage(c, format, args...)) }
	o.negate(c)
	for name, why := range refusedFlags {
		if c.Flags().Changed(name) {
			bad("--%s: %s", name, why)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if b, err := unit.Parse[unit.Bytes](o.memory); err != nil || b <= 0 {
		bad("--max-memory: got %q, want a size such as 1GiB", o.memory)
	} else {
		o.limits.Memory = int64(b)
	}
	n, ok := shardSize(o.shard)
	if !ok {
		bad("--out-shard-size: got %q, want a whole number of bytes, or one with k, m or b", o.shard)
	}
	o.options.ShardBytes = n
	if err := o.measuring().checkTexts(c, "--evaluate"); err != nil {
		errs = append(errs, err)
	}
	if o.sweep != "" {
		s, err := parseSweep(o.sweep)
		if err != nil {
			bad("--sweep: %v", err)
		}
		if len(o.texts) == 0 {
			bad("--sweep: there is nothing to measure: want --evaluate NAME=FILE")
		}
		if o.resume || o.dryRun {
			bad("--sweep: goes neither with --resume nor with --dry-run")
		}
		o.steps = s
	}
	if o.dryRun && len(o.texts) > 0 {
		bad("--dry-run: goes not with --evaluate")
	}
	o.precision = asStored
	if err := o.compute.check(c); err != nil {
		errs = append(errs, err)
	}
	o.limits.Threads, o.limits.Level = o.threads, o.level
	o.options.Find = o.find
	return errors.Join(errs...)
}

// negate follows the flags that begin with no, as mergekit spells them.
func (o *merging) negate(c *cobra.Command) {
	for name, to := range map[string]*bool{
		"no-copy-tokenizer": &o.tokenizer, "no-write-model-card": &o.card, "no-allow-crimes": &o.options.Crimes,
	} {
		if no, err := c.Flags().GetBool(name); err == nil && no {
			*to = false
		}
	}
}

// shardSize reads a size as mergekit does: 5B is 5·10⁹ bytes.
func shardSize(s string) (int64, bool) {
	factor := int64(1)
	low := strings.ToLower(s)
	for suffix, n := range map[string]int64{"k": 1e3, "m": 1e6, "b": 1e9} {
		if rest, ok := strings.CutSuffix(low, suffix); ok {
			low, factor = rest, n
			break
		}
	}
	n, err := strconv.ParseInt(low, 10, 64)
	if err != nil || n > (1<<62)/factor {
		return 0, false
	}
	return max(0, n) * factor, true
}

// plan reads the configuration and opens the models.
func (o *merging) plan(w io.Writer) (*merge.Plan, error) {
	text, err := os.ReadFile(o.config)
	if err != nil {
		return nil, fault.Configf("merge: %w", err)
	}
	c, err := merge.ParseConfig(o.config, text)
	if err != nil {
		return nil, err
	}
	return o.planOf(w, c)
}

func (o *merging) planOf(w io.Writer, c *merge.Config) (*merge.Plan, error) {
	p, err := merge.NewPlan(c, o.options)
	if err != nil {
		return nil, err
	}
	warnings(w, p.Warnings)
	if o.verbose {
		for _, name := range p.Dropped {
			fmt.Fprintf(w, "no part in the output: %s\n", name)
		}
	}
	return p, nil
}

func (o *merging) run(c *cobra.Command) error {
	if o.steps != nil {
		return o.runSweep(c)
	}
	undo := limitMemory(int(max(o.limits.Memory-merge.Base, merge.Base/2)))
	defer undo()
	p, err := o.plan(c.ErrOrStderr())
	if err != nil {
		return err
	}
	defer p.Close()
	if o.dryRun {
		return printed(p.Describe(c.OutOrStdout()))
	}
	if err := errors.Join(o.runnable(p), o.measuring().readable(c.Context(), c.ErrOrStderr())); err != nil {
		return err
	}
	if err := o.write(c.Context(), c.ErrOrStderr(), p); err != nil {
		return err
	}
	if len(o.texts) == 0 {
		return nil
	}
	return o.evaluate(c, p)
}

// write merges into OUT.
func (o *merging) write(ctx context.Context, w io.Writer, p *merge.Plan) error {
	if err := o.vacant(); err != nil {
		return err
	}
	began := time.Now()
	if err := p.Fits(o.limits); err != nil {
		return err
	}
	known := len(p.Warnings)
	if err := p.Tie(ctx, o.limits); err != nil {
		return stopped(ctx, err)
	}
	info, err := p.Provenance(version)
	if err != nil {
		return err
	}
	wanted := merge.FileOptions{Tokenizer: o.tokenizer, Title: filepath.Base(filepath.Clean(o.out))}
	if o.card {
		wanted.Card = &info
	}
	files, err := p.Files(wanted)
	if err != nil {
		return err
	}
	warnings(w, p.Warnings[known:])
	known = len(p.Warnings)
	f, err := o.folder(p)
	if err != nil {
		return err
	}
	defer f.Close()
	progress := w
	if o.quiet {
		progress = io.Discard
	}
	show := newETA(progress)
	defer show.erase()
	left := f.Left()
	what := fmt.Sprintf("merging %d tensors by %s", len(p.Tensors), p.Config.Method)
	if err := p.Run(ctx, f, o.limits, func(done int64) { show.see(what, done, left) }); err != nil {
		if errors.Is(err, fault.Data) { // with other inputs or options it begins anew
			f.Discard()
		}
		return stopped(ctx, err)
	}
	if err := f.Publish(files, info); err != nil {
		return err
	}
	read, written := p.Bytes()
	took := time.Since(began)
	show.erase()
	warnings(w, p.Warnings[known:])
	show.say("%s: %d tensors, %v from %v in %v", o.out, len(p.Tensors), unit.Bytes(written).Rounded(),
		unit.Bytes(read).Rounded(), took.Round(time.Millisecond))
	return nil
}

// vacant refuses to work for an output that is there, before anything is read.
func (o *merging) vacant() error {
	if _, err := os.Lstat(filepath.Clean(o.out)); err == nil {
		return fault.Statef("merge: %s: it is there already, and is not replaced", o.out)
	}
	return nil
}

// warnings writes a line for each.
func warnings(w io.Writer, list []string) {
	for _, line := range list {
		fmt.Fprintf(w, "warning: %s\n", line)
	}
}

// stopped prefers to say that the user stopped a merge, which goes on with --resume.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.Machinef("interrupted; the same command with --resume goes on")
	}
	return err
}

// folder opens OUT.part.
func (o *merging) folder(p *merge.Plan) (*merge.Folder, error) {
	layout, err := p.Layout()
	if err != nil {
		return nil, err
	}
	id, err := p.Identity(version)
	if err != nil {
		return nil, err
	}
	return merge.NewFolder(o.out, layout, p.Tensors, id, o.resume)
}
