// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pleach/blob"
	"pleach/data"
	"pleach/internal/fault"
	"pleach/merge"
	"pleach/model"
)

// find is the folder of a model or adapter that a configuration names: a folder, the
// newest checkpoint of a run directory, or a snapshot in the cache of the hub.
func (o *merging) find(path, revision string) (string, error) {
	if hasFile(path, "config.json") || hasFile(path, "adapter_config.json") {
		return path, nil
	}
	if _, err := os.Stat(path); err == nil {
		return modelDir(path)
	}
	cache := o.cache
	if cache == "" {
		cache = blob.HubCache()
	}
	dir, err := blob.HubSnapshot(cache, path, revision)
	if err != nil {
		return "", fault.Configf("model %s: there is no such folder, and %w; fetch it with: pleach get hf://%s", path, err, path)
	}
	return dir, nil
}

// measuring is how texts are measured.
func (o *merging) measuring() *measuring {
	return &measuring{compute: o.compute, texts: o.texts, sequence: o.sequence, field: o.field}
}

// readable reads the first document of every text, so that one that is not there is
// told before models are merged and not after.
func (o *measuring) readable(ctx context.Context, w io.Writer) error {
	if len(o.texts) == 0 {
		return nil
	}
	from, err := newReach(ctx, w)
	if err != nil {
		return err
	}
	defer from.close()
	for _, t := range o.texts {
		name, file, _ := strings.Cut(t, "=")
		src := data.Source{Paths: []string{file}, Access: from.Access, Name: name, Field: o.field}
		for _, err := range data.Documents(src) {
			if err != nil {
				return fmt.Errorf("merge: --evaluate: %s: %w", name, err)
			}
			break
		}
	}
	return nil
}

// runnable refuses to measure models that cannot be run, or not with windows of this
// length, before they are merged and not after.
func (o *merging) runnable(p *merge.Plan) error {
	if len(o.texts) == 0 {
		return nil
	}
	for _, m := range p.Models {
		c, err := model.ParseConfig(m.Text)
		if err != nil {
			return fmt.Errorf("merge: --evaluate: model %s: %w", m.Name, err)
		}
		if o.sequence > c.MaxT {
			return fault.Configf("merge: --sequence: got %d, model %s has %d positions", o.sequence, m.Name, c.MaxT)
		}
	}
	return nil
}

// modelRow is a row of the table of perplexities.
type modelRow struct {
	name string
	all  []measured
}

// evaluate measures all inputs and the output.
func (o *merging) evaluate(c *cobra.Command, p *merge.Plan) error {
	rows, err := o.measureInputs(c, p)
	if err != nil {
		return err
	}
	m, err := openModel(o.out)
	if err != nil {
		return err
	}
	defer m.close()
	all, err := o.measuring().measureAll(c.Context(), c.ErrOrStderr(), m, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", o.out, err)
	}
	return printModels(c.OutOrStdout(), append(rows, modelRow{o.out, all}))
}

func (o *merging) measureInputs(c *cobra.Command, p *merge.Plan) ([]modelRow, error) {
	var rows []modelRow
	for _, in := range p.Models {
		opened := merge.Opened{Model: in}
		text, err := opened.ConfigText()
		if err != nil {
			return nil, err
		}
		m, err := newSource(in.Name, in.Dir, text, opened)
		if err == nil {
			err = m.openTokenizer()
		}
		if err != nil {
			return nil, err
		}
		all, err := o.measuring().measureAll(c.Context(), c.ErrOrStderr(), m, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		}
		rows = append(rows, modelRow{in.Name, all})
	}
	return rows, nil
}

// printModels is a table of perplexities: models down, texts across. Models of
// different vocabularies are compared in bits per byte.
func printModels(w io.Writer, rows []modelRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "model\t")
	for _, r := range rows[0].all {
		fmt.Fprintf(t, "%s: perplexity\tbits/byte\t", r.Name)
	}
	fmt.Fprintln(t)
	for _, row := range rows {
		fmt.Fprintf(t, "%s\t", row.name)
		for _, r := range row.all {
			fmt.Fprintf(t, "%.4f\t%s\t", r.Perplexity, r.bits())
		}
		fmt.Fprintln(t)
	}
	return printed(t.Flush())
}

// merged is the output of a plan as a model that is not written. Its tokenizer is
// written into a folder that undo removes.
func (o *merging) merged(c *cobra.Command, p *merge.Plan) (m *source, undo func(), err error) {
	if err := p.Tie(c.Context(), o.limits); err != nil {
		return nil, nil, stopped(c.Context(), err)
	}
	to := merge.NewMemory(p)
	if err := p.Run(c.Context(), to, o.limits, nil); err != nil {
		return nil, nil, stopped(c.Context(), err)
	}
	files, err := p.Files(merge.FileOptions{Tokenizer: true})
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "pleach-merge-")
	if err != nil {
		return nil, nil, fault.Machinef("merge: %w", err)
	}
	undo = func() { _ = os.RemoveAll(dir) }
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			undo()
			return nil, nil, fault.Machinef("merge: %w", err)
		}
	}
	m, err = newSource("the merge", dir, files["config.json"], to)
	if err == nil {
		err = m.openTokenizer()
	}
	if err != nil {
		undo()
		return nil, nil, err
	}
	return m, undo, nil
}
