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
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pleach/config"
	"pleach/data"
	"pleach/internal/fault"
	"pleach/track"
)

// origin is what data where is told.
type origin struct {
	step   int64
	row    int64 // −1: all
	asJSON bool
}

func newDataWhere() *cobra.Command {
	var o origin
	c := &cobra.Command{
		Use:   "where RUN --step N",
		Short: "The documents of a step of a run",
		Long: `Where names the documents that a step of a run was trained on, in the order of
their rows: which row, how many ids of the document lie in it and from which on,
the source, and the name. It makes the rows of the step again, from the nearest
checkpoint before it or from the start of the run, and so needs the recipe, the
event log and the corpus as they were. A corpus that has changed is refused.`,
		Example: `  pleach data where runs/mine --step 1200
  pleach data where runs/mine --step 1200 --row 38402
  pleach data where runs/mine --step 1200 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("step") {
				return errUsage(c, "want --step N")
			}
			return o.run(c, args[0])
		},
	}
	c.Flags().Int64Var(&o.step, "step", 0, "the step, counted from 1")
	c.Flags().Int64Var(&o.row, "row", -1, "only this row of it, as the event log counts them")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print a JSON object")
	return c
}

func (o *origin) run(c *cobra.Command, dir string) error {
	h, err := readHistory(dir, o.step)
	if err != nil {
		return err
	}
	first, last := h.step.Rows[0], h.step.Rows[1]
	if o.row >= 0 && (o.row < first || o.row > last) {
		return errUsage(c, "--row: got %d, step %d has the rows %d … %d", o.row, o.step, first, last)
	}
	r, err := config.Load(filepath.Join(dir, "run.yaml"), nil)
	if err != nil {
		return fault.As(fault.State, err)
	}
	r.Out = dir // it may have been moved
	p, err := prepareData(c.Context(), r)
	if err != nil {
		return err
	}
	defer p.close()
	rows, err := p.again(c.Context(), h, c.ErrOrStderr())
	if err != nil {
		return err
	}
	names := p.sourceNames()
	list := places{Step: o.step, Rows: h.step.Rows}
	for i := range rows {
		if o.row < 0 || rows[i].Index == o.row {
			list.add(&rows[i], names)
		}
	}
	return list.print(c.OutOrStdout(), o.asJSON)
}

// history is what the event log of a run says of a step.
type history struct {
	step    track.Step
	changed bool // the run has gone on with another corpus at some time
}

// readHistory finds a step: of a run that was resumed its last line counts.
func readHistory(dir string, step int64) (history, error) {
	var h history
	var low, high int64
	name := filepath.Join(dir, "events.jsonl")
	f, err := os.Open(name)
	if err != nil {
		return h, fault.Statef("run directory: the event log: %w", err)
	}
	defer f.Close()
	_, err = track.Read(f, func(r track.Record) error {
		switch e := r.Event.(type) {
		case track.Step:
			if low == 0 || e.Step < low {
				low = e.Step
			}
			high = max(high, e.Step)
			if e.Step == step {
				h.step = e
			}
		case track.Warning:
			h.changed = h.changed || strings.HasPrefix(e.Reason, corpusChanged)
		}
		return nil
	})
	if err != nil {
		return h, fmt.Errorf("run directory: %s: %w", name, err)
	}
	if h.step.Step == 0 {
		return h, fault.Configf("data where: --step: got %d, %s has the steps %d … %d", step, name, low, high)
	}
	return h, nil
}

// again makes the rows of a step as they were.
func (p *prepared) again(ctx context.Context, h history, w io.Writer) ([]data.Row, error) {
	dir := p.recipe.Out
	what, err := p.changes()
	if err != nil {
		return nil, err
	}
	if what != "" {
		return nil, fault.Statef("run directory %s: the corpus has changed since the run: %s; "+
			"its rows cannot be made again", dir, what)
	}
	first, last := h.step.Rows[0], h.step.Rows[1]
	state, err := nearest(dir, first, w)
	if err != nil {
		return nil, err
	}
	switch {
	case state != nil:
		if err := p.loader.Restore(state.Data); err != nil {
			return nil, fmt.Errorf("run directory %s: the checkpoint of step %d: %w", dir, state.Step, err)
		}
	case h.changed:
		return nil, fault.Statef("run directory %s: the corpus was changed during the run, and no checkpoint is left "+
			"from before step %d: its rows cannot be made again", dir, h.step.Step)
	}
	rows, err := p.serve(ctx, newETA(w), first, int(last-first+1))
	if errors.Is(err, io.EOF) {
		return nil, fault.Statef("run directory %s: the sources end before row %d, which step %d had", dir, last, h.step.Step)
	}
	return rows, err
}

// places are the documents of a step.
type places struct {
	Step      int64    `json:"step"`
	Rows      [2]int64 `json:"rows"` // first and last
	Documents []place  `json:"documents"`
}

// place is a part of a document in a row.
type place struct {
	Row     int64  `json:"row"`
	Lane    int    `json:"lane"`
	Tokens  int    `json:"tokens"`  // its ids in the row
	Targets int    `json:"targets"` // of these that carry loss
	Offset  int    `json:"offset"`  // the first one in the document
	Source  string `json:"source"`
	Name    string `json:"name"`
}

func (l *places) add(r *data.Row, sources []string) {
	for _, s := range r.Docs {
		p := place{
			Row: r.Index, Lane: r.Lane, Tokens: s.To - s.From, Offset: s.Offset, Source: sources[s.Source], Name: s.ID,
		}
		for i := max(s.From, 1); i < s.To; i++ {
			if r.Labels[i-1] >= 0 {
				p.Targets++
			}
		}
		l.Documents = append(l.Documents, p)
	}
}

func (l *places) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printInert(w, l)
	}
	fmt.Fprintf(w, "step %d, rows %d … %d\n", l.Step, l.Rows[0], l.Rows[1])
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "row\ttokens\ttargets\tfrom\tsource\tdocument")
	for _, p := range l.Documents {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%s\t%s\n", p.Row, p.Tokens, p.Targets, p.Offset, visible(p.Source), visible(p.Name))
	}
	return printed(t.Flush())
}
