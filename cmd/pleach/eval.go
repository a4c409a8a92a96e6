// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"pleach/data"
	"pleach/eval"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/optim"
)

// measuring is what eval is told.
type measuring struct {
	compute
	texts    []string // NAME=FILE
	sequence int
	field    string
	json     bool
}

func newEval() *cobra.Command {
	var o measuring
	c := &cobra.Command{
		Use:   "eval MODEL --perplexity NAME=FILE …",
		Short: "Perplexity and bits per byte of held-out texts",
		Long: `Eval measures how well a model predicts texts that it was not trained on. FILE is
a text file, a JSONL file, or a folder of them; NAME is what the result is called.

Each document is scored in rolling windows of --sequence ids: every id once, the
first one after begin-of-sequence, or end-of-sequence where there is none.
Perplexity is e to the mean negative log-probability of an id. Bits per byte
divides by the UTF-8 bytes of the text instead, so it also compares models of
different tokenizers.

With --json a text is a line of
{"name","documents","tokens","bytes","nll_nats","perplexity","bits_per_byte","seconds","sequence"}.`,
		Example: `  pleach eval runs/mine --perplexity novels=held-out/ --perplexity code=held.jsonl
  pleach eval llama-2-7b --perplexity wiki=wiki.test.txt --sequence 2048 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			return o.run(c, args[0])
		},
	}
	o.flags(c)
	o.precisionFlag(c, optim.F32.String())
	c.Flags().StringArrayVar(&o.texts, "perplexity", nil, "a text to measure, NAME=FILE; may be repeated")
	c.Flags().IntVar(&o.sequence, "sequence", 0,
		"ids of a window; 0: the model's positions, at most 4096, as far as memory goes")
	c.Flags().StringVar(&o.field, "field", "text", "of a JSONL line, the text or a list of ids")
	c.Flags().BoolVar(&o.json, "json", false, "print lines of JSON")
	return c
}

func (o *measuring) check(c *cobra.Command) error {
	if len(o.texts) == 0 {
		return errUsage(c, "--perplexity: got none, want NAME=FILE at least once")
	}
	if err := o.checkTexts(c, "--perplexity"); err != nil {
		return err
	}
	return o.compute.check(c)
}

// checkTexts checks the texts that a flag names, and --sequence.
func (o *measuring) checkTexts(c *cobra.Command, flag string) error {
	seen := map[string]bool{}
	for _, t := range o.texts {
		name, file, ok := strings.Cut(t, "=")
		if !ok || name == "" || file == "" {
			return errUsage(c, "%s: got %q, want NAME=FILE", flag, t)
		}
		if seen[name] {
			return errUsage(c, "%s: %s is there twice", flag, name)
		}
		seen[name] = true
	}
	if o.sequence < 0 {
		return errUsage(c, "--sequence: got %d, want 1 or more", o.sequence)
	}
	return nil
}

// measured is a line of the result.
type measured struct {
	Name        string  `json:"name"`
	Documents   int64   `json:"documents"`
	Tokens      int64   `json:"tokens"`
	Bytes       int64   `json:"bytes"`
	NLL         float64 `json:"nll_nats"`
	Perplexity  float64 `json:"perplexity"`
	BitsPerByte float64 `json:"bits_per_byte"`
	Seconds     float64 `json:"seconds"`
	Sequence    int     `json:"sequence"`
}

func (o *measuring) run(c *cobra.Command, path string) error {
	m, err := openModel(path)
	if err != nil {
		return err
	}
	defer m.close()
	all, err := o.measureAll(c.Context(), c.ErrOrStderr(), m, func(r measured) error {
		if o.json {
			return printJSON(c.OutOrStdout(), r)
		}
		return nil
	})
	if err != nil || o.json {
		return err
	}
	return printMeasured(c.OutOrStdout(), all)
}

// measureAll measures all texts with a model. done is told each result.
func (o *measuring) measureAll(
	ctx context.Context, w io.Writer, m *source, done func(measured) error,
) ([]measured, error) {
	T, err := o.window(w, m)
	if err != nil {
		return nil, err
	}
	first, err := firstOf(m.specials())
	if err != nil {
		return nil, err
	}
	s := &scorer{compute: o.compute, source: m}
	defer s.close()
	var all []measured
	for _, t := range o.texts {
		name, file, _ := strings.Cut(t, "=")
		r, err := o.measure(ctx, w, s, name, file, T, first)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if all = append(all, r); done != nil {
			if err := done(r); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// window is the number of ids of a window. Where that is left open, it is halved
// until a row of it fits into memory.
func (o *measuring) window(w io.Writer, m *source) (int, error) {
	if o.sequence > m.config.MaxT {
		return 0, fault.Configf("--sequence: got %d, the model has %d positions", o.sequence, m.config.MaxT)
	}
	if o.sequence > 0 {
		return o.sequence, nil
	}
	most := min(m.config.MaxT, 4096)
	for T := most; ; T /= 2 {
		p, err := model.Score(m.config.Spec, o.layout(m), 0, model.Batch{B: 1, T: T}, 0)
		if err != nil {
			return 0, err
		}
		err = fitsMemory(fmt.Sprintf("model %s with a row of %d ids", m.dir, T), o.options(), p)
		if err == nil {
			if T < most {
				fmt.Fprintf(w, "windows of %d ids: memory does not suffice for %d\n", T, most)
			}
			return T, nil
		}
		if T < 128 {
			return 0, err
		}
	}
}

func (o *measuring) measure(
	ctx context.Context, w io.Writer, s *scorer, name, file string, T int, first int32,
) (measured, error) {
	show := newMeter(w)
	defer show.erase()
	began := time.Now()
	from, err := newReach(ctx, w)
	if err != nil {
		return measured{}, err
	}
	defer from.close()
	src := data.Source{Paths: []string{file}, Access: from.Access, Name: name, Field: o.field}
	r, err := eval.Perplexity(s, T, first, heldOutOf(ctx, src, s.source, func(ids int) {
		show.add(ids, name)
	}))
	if err != nil {
		return measured{}, err
	}
	if math.IsNaN(r.NLL) || math.IsInf(r.NLL, 0) {
		return measured{}, fault.Dataf("the loss is %v: the model computes beyond float32", r.NLL)
	}
	return measured{
		Name: name, Documents: r.Documents, Tokens: r.Tokens, Bytes: r.Bytes, NLL: r.NLL,
		Perplexity: r.Perplexity(), BitsPerByte: r.BitsPerByte(), Seconds: time.Since(began).Seconds(), Sequence: T,
	}, nil
}

// heldOutOf are the documents of a text as ids, read as they are asked for. seen
// gets the number of ids of each.
func heldOutOf(
	ctx context.Context, src data.Source, m *source, seen func(ids int),
) iter.Seq2[eval.Document, error] {
	return func(yield func(eval.Document, error) bool) {
		for d, err := range data.Documents(src) {
			var got eval.Document
			if err == nil {
				got, err = m.document(d)
			}
			if err == nil {
				err = interrupted(ctx)
			}
			if !yield(got, err) || err != nil {
				return
			}
			seen(len(got.IDs))
		}
	}
}

// document is the ids of a document, which must be of the model's vocabulary.
func (s *source) document(d data.Document) (eval.Document, error) {
	if d.IDs == nil {
		t, err := s.needTokenizer()
		if err != nil {
			return eval.Document{}, fmt.Errorf("%s: %w", d.ID, err)
		}
		return eval.Document{IDs: t.Encode(nil, d.Text), Bytes: len(d.Text)}, t.Err()
	}
	for i, id := range d.IDs {
		if id < 0 || int(id) >= s.config.V {
			return eval.Document{}, fault.Dataf("%s: id %d at %d: the vocabulary has %d", d.ID, id, i, s.config.V)
		}
	}
	return eval.Document{IDs: d.IDs}, nil
}

// bits are the bits per byte for a table, a dash where the text is not known.
func (r measured) bits() string {
	if r.Bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f", r.BitsPerByte)
}

func printMeasured(w io.Writer, all []measured) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "text\tdocuments\ttokens\tbytes\tperplexity\tbits/byte\tseconds\t")
	for _, r := range all {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%.4f\t%s\t%.1f\t\n",
			r.Name, r.Documents, r.Tokens, r.Bytes, r.Perplexity, r.bits(), r.Seconds)
	}
	return printed(t.Flush())
}
