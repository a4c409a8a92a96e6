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
	"pleach/data"
	"pleach/internal/fault"
	"pleach/internal/unit"
)

func newDataTokenize() *cobra.Command {
	var o tokenizing
	c := &cobra.Command{
		Use:   "tokenize RECIPE.yaml OUT [key=value …]",
		Short: "Write the documents of a recipe as ids, or its rows, once and for all runs",
		Long: `Tokenize writes the documents of each source of a recipe as ids into a folder of
OUT, in Arrow files compressed with zstd. A recipe whose source has that folder as
its path trains on the same rows, bit for bit, as one that reads the texts: with
any sequence, lanes, seed, weights and stages, but with the same tokenizer.

With --rows it writes the first N rows of the recipe as they are trained on, with
their documents and targets. A recipe reads them with

  sources: [{path: OUT, rows: true}]

An interrupted tokenize goes on where it was when it is started again.`,
		Example: `  pleach data tokenize recipe.yaml tokens
  pleach data tokenize recipe.yaml rows --rows 100000
  pleach data tokenize recipe.yaml rows --rows all`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	c.Flags().StringVar(&o.rows, "rows", "", "write so many `rows` of the run, or all of them, rather than documents")
	return c
}

// tokenizing is what data tokenize is told.
type tokenizing struct{ rows string }

func (o *tokenizing) run(c *cobra.Command, args []string) error {
	var rows int64
	if o.rows != "" && o.rows != "all" {
		n, err := unit.Count(o.rows)
		if err != nil || n < 1 {
			return errUsage(c, "--rows: got %q, want a number above 0, or all", o.rows)
		}
		rows = n
	}
	out := args[1]
	r, err := config.Load(args[0], args[2:])
	if err != nil {
		return err
	}
	steps := func(p *prepared) []func() error { return []func() error{p.openModel, p.setSequence} }
	switch o.rows {
	case "":
	case "all":
		steps = func(p *prepared) []func() error {
			return []func() error{
				p.setOptions, p.openModel, p.setSequence, p.setOptimizer, p.openData, func() error { return p.setLength(c.Context()) },
			}
		}
	default:
		steps = func(p *prepared) []func() error { return []func() error{p.openModel, p.setSequence, p.openData} }
	}
	p, err := prepareSteps(c.Context(), r, steps)
	if err != nil {
		return err
	}
	defer p.close()
	unlock, err := lockNew(out)
	if err != nil {
		return err
	}
	defer unlock()
	if o.rows == "" {
		return p.writeTokens(c, out)
	}
	if o.rows == "all" {
		rows = p.steps * int64(p.rows)
	}
	return p.writeRows(c, out, rows)
}

// lockNew makes a folder and locks it against others who write there.
func lockNew(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fault.Machinef("%w", err)
	}
	return blob.Lock(dir)
}

func (p *prepared) writeTokens(c *cobra.Command, out string) error {
	spec, enc, err := p.dataSpec()
	if err != nil {
		return err
	}
	show := newETA(c.ErrOrStderr())
	defer show.erase()
	var last data.Tokenized
	done := func() {
		if last.Source != "" {
			what := ""
			if len(last.Skipped) > 0 {
				what = ", left out " + counts(last.Skipped)
			}
			show.say("%s: %s documents, %s tokens%s", filepath.Join(out, last.Source), amount(float64(last.Documents)),
				amount(float64(last.Tokens)), what)
		}
	}
	err = data.Tokenize(c.Context(), spec, enc, out, func(t data.Tokenized) {
		if t.Source != last.Source {
			done()
			show.began = time.Now()
		}
		last = t
		what := fmt.Sprintf("%s: %s documents, %s tokens", t.Source, amount(float64(t.Documents)), amount(float64(t.Tokens)))
		show.see(what, t.Done, t.Total)
	})
	if stopped := interrupted(c.Context()); stopped != nil {
		return stopped
	}
	if err == nil {
		done()
	}
	return err
}

func (p *prepared) writeRows(c *cobra.Command, out string, rows int64) error {
	show := newETA(c.ErrOrStderr())
	defer show.erase()
	wrote := int64(0)
	stop := context.AfterFunc(c.Context(), p.loader.Close)
	defer stop()
	err := data.WriteRows(c.Context(), p.loader, rows, out, func(done, total int64) {
		wrote = done
		show.see(fmt.Sprintf("%s of %s rows", amount(float64(done)), amount(float64(total))), done, total)
	})
	if stopped := interrupted(c.Context()); stopped != nil {
		return stopped
	}
	if errors.Is(err, io.EOF) {
		show.say("the sources end after %d rows", wrote)
		err = nil
	}
	if err == nil {
		show.say("%s: %d rows of %d ids", out, wrote, p.recipe.Data.Sequence+1)
	}
	return err
}
