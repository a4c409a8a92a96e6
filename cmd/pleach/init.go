// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pleach/blob"
	"pleach/config"
	"pleach/data"
	"pleach/engine/cpu"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/model"
	"pleach/optim"
	"pleach/plan"
	"pleach/token"
)

func newInit() *cobra.Command {
	var s starter
	c := &cobra.Command{
		Use:   "init TEXT…",
		Short: "Write a starter recipe for these documents and this machine",
		Long: `Init looks at files and folders of text or JSON lines, says what it found and what
it left out and why, and writes a recipe that pleach train runs as it is.

Without --model it also trains a tokenizer on the documents, and picks a model
that sees them in about an hour on this machine. With --model the recipe
continues the pre-training of that model.`,
		Example: `  pleach init ~/notes ~/articles.jsonl
  pleach init corpus/ --model ./llama-3.2-1b --out runs/mine`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s.w = c.ErrOrStderr()
			return s.run(c.Context(), args)
		},
	}
	c.Flags().StringVar(&s.from, "model", "", "continue this model directory instead of starting from scratch")
	c.Flags().StringVar(&s.out, "out", "pleach-run", "folder for the recipe, the tokenizer and the run")
	return c
}

// starter writes a first recipe.
type starter struct {
	from, out string
	w         io.Writer
}

func (s *starter) run(ctx context.Context, paths []string) error {
	file := filepath.Join(s.out, "recipe.yaml")
	if _, err := os.Stat(file); err == nil {
		return fault.Configf("%s is there already: want another --out", file)
	}
	from, err := newReach(ctx, s.w)
	if err != nil {
		return err
	}
	defer from.close()
	found, err := data.Scan(paths, from.Access)
	if err != nil {
		return err
	}
	s.report(found)
	text, err := s.recipe(found)
	if err != nil {
		return err
	}
	if _, err := config.Parse(file, []byte(text), nil); err != nil {
		return fmt.Errorf("init wrote a recipe that it cannot read: %w", err)
	}
	if err := writeFile(s.out, "recipe.yaml", []byte(text)); err != nil {
		return err
	}
	fmt.Fprintf(s.w, "\nwrote %s; next:\n  pleach train %s --dry-run\n  pleach train %s\n", file, file, file)
	return nil
}

// report says what there is and what was left out.
func (s *starter) report(r *data.Report) {
	for _, f := range r.Found {
		about := "about "
		if f.Exact {
			about = ""
		}
		kind := map[string]string{"text": "text", "jsonl": "JSON lines", "parquet": "Parquet", "arrow": "Arrow"}[f.Format]
		if f.Source.Field != "" {
			kind += fmt.Sprintf(", field %q", f.Source.Field)
		}
		fmt.Fprintf(s.w, "%s: %d files of %s, %v, %s%d documents\n", strings.Join(f.Source.Paths, " "), f.Files, kind,
			unit.Bytes(f.Bytes).Rounded(), about, f.Documents)
	}
	for _, why := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(s.w, "left out %d: %s, such as %s\n", r.Skipped[why], why, r.Examples[why])
	}
}

// sizes is what a starter recipe is made of, chosen for a number of tokens and
// a speed.
type sizes struct {
	preset   string
	sequence int
	rows     int
	epochs   int
	seconds  float64 // that it should take
	rate     float64
}

func (s *starter) recipe(r *data.Report) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# A starter recipe, written by pleach init. Every key is described in docs/recipe.md.\n")
	bytes := int64(0)
	for _, f := range r.Found {
		bytes += f.Text
	}
	if s.from != "" {
		if err := s.continued(&b); err != nil {
			return "", err
		}
	} else if err := s.fresh(&b, r, bytes); err != nil {
		return "", err
	}
	return b.String() + sourcesYAML(r.Found), nil
}

// fresh starts from scratch: a tokenizer is trained, a preset chosen.
func (s *starter) fresh(b *strings.Builder, r *data.Report, bytes int64) error {
	size := vocabularySize(bytes)
	fmt.Fprintf(s.w, "training a tokenizer of %d tokens\n", size)
	t, err := token.Train(someText(r.Found), token.TrainOptions{Size: size, Threads: defaultThreads()})
	if err != nil {
		return err
	}
	if err := t.Save(filepath.Join(s.out, "tokenizer")); err != nil {
		return err
	}
	tokens := float64(bytes) / bytesPerToken(t, r.Found)
	z, err := choose(tokens, t.Size())
	if err != nil {
		return err
	}
	spec, err := model.Preset(z.preset, t.Size())
	if err != nil {
		return err
	}
	fmt.Fprintf(s.w, "about %s tokens; at %.3g GFLOP/s the preset %s (%s parameters) sees them %d times in about %s\n",
		amount(tokens), z.rate/1e9, z.preset, amount(float64(spec.Count())), z.epochs,
		unit.Duration(math.Ceil(z.seconds/60)*60e9))
	fmt.Fprintf(b, "model: {preset: %s, vocabulary: ./tokenizer}   # %s parameters\n", z.preset, amount(float64(spec.Count())))
	s.training(b, z, 1e-3)
	return nil
}

// continued goes on from a model: its tokenizer, a low learning rate, warmed up
// again.
func (s *starter) continued(b *strings.Builder) error {
	m, err := openModel(s.from)
	if err != nil {
		return err
	}
	defer m.close()
	if _, err := m.needTokenizer(); err != nil {
		return err
	}
	dir, err := filepath.Abs(s.from)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.w, "continuing %s: %s parameters\n", dir, amount(float64(m.config.Count())))
	fmt.Fprintf(b, "model: %q\n", dir)
	s.training(b, sizes{sequence: min(m.config.MaxT, 512), rows: 8, epochs: 1}, 3e-5)
	return nil
}

func (s *starter) training(b *strings.Builder, z sizes, lr float64) {
	fmt.Fprintf(b, `train:
  until: %d epoch
  batch: %d sequences
  optimizer: {adamw: {lr: %g}}
  schedule: {cosine: {warmup: 2 %%, floor: 10 %%}}
checkpoint: {every: 10min, keep: 2}
out: ./run
# What a held-out text costs is measured during the run; alarm warns of forgetting:
# evaluate:
#   every: 100 steps
#   perplexity: {mine: heldout.jsonl, general: {path: general.txt, alarm: 5 %%}}
data:
  sequence: %d
  sources: # weights are KiB, so that every document is seen as often as the others
`, z.epochs, z.rows, lr, z.sequence)
}

// sourcesYAML lists what was found as data.sources.
func sourcesYAML(found []data.Found) string {
	var b strings.Builder
	for _, f := range found {
		var paths []string
		for _, p := range f.Source.Paths {
			if abs, err := filepath.Abs(p); err == nil && !blob.IsRemote(p) {
				p = abs
			}
			paths = append(paths, fmt.Sprintf("%q", p))
		}
		fmt.Fprintf(&b, "    - {path: [%s], weight: %d", strings.Join(paths, ", "), max(1, f.Text>>10))
		src := f.Source
		switch {
		case src.Field != "":
			fmt.Fprintf(&b, ", format: %s, field: %q", f.Format, src.Field)
			if src.ID != "" {
				fmt.Fprintf(&b, ", id: %q", src.ID)
			}
			if src.Mask != "" {
				fmt.Fprintf(&b, ", mask: %q", src.Mask)
			}
		case f.Documents < 8 && f.Bytes > 1<<16: // few long texts: their lines spread better over lanes
			b.WriteString(", format: lines")
		default:
			b.WriteString(", format: text")
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// vocabularySize grows with the text: what a tokenizer can learn from it.
func vocabularySize(bytes int64) int {
	switch {
	case bytes < 1<<20:
		return 1024
	case bytes < 16<<20:
		return 4096
	case bytes < 256<<20:
		return 16384
	}
	return 32000
}

// sampled is how much text a starter looks at.
const sampled = 16 << 20

// someText is documents of all sources in turn, up to a limit in all.
func someText(found []data.Found) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, f := range found {
			left := sampled / len(found)
			for d, err := range data.Documents(f.Source) {
				if left -= len(d.Text); err != nil || left < 0 {
					break
				}
				if len(d.Text) > 0 && !yield(d.Text) {
					return
				}
			}
		}
	}
}

// bytesPerToken is measured on the first MiB.
func bytesPerToken(t *token.Tokenizer, found []data.Found) float64 {
	bytes, ids := 0, 0
	for text := range someText(found) {
		text = text[:min(len(text), 1<<18)]
		bytes, ids = bytes+len(text), ids+len(t.Encode(nil, text))
		if bytes > 1<<20 {
			break
		}
	}
	return float64(max(bytes, 1)) / float64(max(ids, 1))
}

// hour is how long a starter run should take at most.
const hour = 3600.0

// choose is the largest preset of the ladder that fits into memory, for which the
// text is not too small, and which sees it in an hour; and how often it does.
func choose(tokens float64, vocabulary int) (sizes, error) {
	z := sizes{sequence: 256, rows: 8}
	run, err := options(0)
	if err != nil {
		return z, err
	}
	precision := usualPrecision(run.Level) // the recipe leaves it open
	e, layout := cpu.New(run), precision.Layout()
	defer e.Close()
	z.rate = usualShare * e.Peak(layout.Compute)
	flops := 0.0
	for _, name := range []string{"tiny", "mini", "small", "quick", "d512"} {
		spec, err := model.Preset(name, vocabulary)
		if err != nil {
			return z, err
		}
		p, err := plan.Choose(plan.Request{
			Spec: spec, Layout: layout, AdamW: precision.Apply(optim.AdamW{}), Sequence: z.sequence, Rows: z.rows,
			Threads: run.Threads, Free: true, Memory: available(), Other: beside(),
		}, predictor(run))
		if err != nil && z.preset != "" {
			break // too large; the one before is not
		}
		if err != nil {
			return z, err
		}
		n := float64(p.FLOPs) / float64(z.rows*z.sequence)
		enough := tokens*4 >= float64(spec.Count()) // seen up to four times, a token for a parameter
		if z.preset == "" || enough && n*tokens/z.rate < hour {
			z.preset, flops = name, n
		}
	}
	z.epochs = int(min(4, max(1, hour/(flops*tokens/z.rate))))
	z.seconds = float64(z.epochs) * flops * tokens / z.rate
	return z, nil
}

// usualShare is the part of the kernels' peak that a training step reaches.
const usualShare = 0.7
