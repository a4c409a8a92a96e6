// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/merge/compare"
	"pleach/weights"
)

// diff is what the verb is told.
type diff struct {
	compute
	base, metric, html, memory string
	asJSON                     bool
}

func newDiff() *cobra.Command {
	var o diff
	c := &cobra.Command{
		Use:   "diff MODEL MODEL [MODEL …]",
		Short: "How models differ, layer by layer: what to know before they are merged",
		Long: `Diff compares models, each with each, and prints for every layer and every kind of
tensor

  distance   ‖A−B‖/‖A‖
  cosine     of the angle between A and B
  equal      part of the numbers that are the same in both

and with --base, the model that all of them were made from, also what their task
vectors ΔA = A − base and ΔB = B − base are:

  moved_a, moved_b   ‖ΔA‖/‖base‖, ‖ΔB‖/‖base‖
  task_cosine        of the angle between ΔA and ΔB
  both               part of the numbers that neither model left as they were
  opposed            part of these that the models moved in opposite directions
  opposed_weighted   the same, with each number counted as |ΔA|+|ΔB|

Task vectors of chance have a cosine of 0 and are opposed in half of the numbers.
The weights of norms are few but large, so distances over a layer count them much;
by kind they stand apart.

--metric prints one of these by layer and kind; --html writes a page with a map of
each; --json prints each tensor, layer and kind, without the figures that would be
0/0. Kinds are read off the names of tensors.

Of vocabularies of other sizes the rows are compared that all models have. Models
whose tensors have other names or shapes are refused. Weights are read once, in
little memory; the figures have the same bits for any number of threads.`,
		Example: `  pleach diff llama-2-7b my-llama
  pleach diff math-7b code-7b --base llama-2-7b --html diff.html
  pleach diff math-7b code-7b chat-7b --base llama-2-7b --metric opposed
  pleach diff runs/a runs/b --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.flags(c)
	c.Flags().StringVar(&o.base, "base", "", "the `model` that the others were made from")
	c.Flags().StringVar(&o.metric, "metric", "", "print only this figure, by layer and kind")
	c.Flags().StringVar(&o.html, "html", "", "also write a page into this `file`")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print a JSON object for each tensor, layer and kind of each pair")
	c.Flags().StringVar(&o.memory, "max-memory", "1 GiB", "what buffers may take")
	return c
}

// mostModels is how many models have a letter.
const mostModels = 26

func (o *diff) run(c *cobra.Command, args []string) error {
	if err := o.check(c); err != nil {
		return err
	}
	var memory unit.Bytes
	if err := memory.UnmarshalText([]byte(o.memory)); err != nil {
		return errUsage(c, "--max-memory: %v", err)
	}
	switch n := len(args); {
	case n == 1:
		return errUsage(c, "got one model, want two or more; to compare it with its base, give the base first")
	case n > mostModels:
		return errUsage(c, "got %d models, want %d at most", n, mostModels)
	case o.asJSON && o.metric != "":
		return errUsage(c, "got --json and --metric, want one of them")
	}
	shown, err := o.metrics(c)
	if err != nil {
		return err
	}
	d, err := openDiff(args, o.base)
	if err != nil {
		return err
	}
	defer d.close()
	show := newETA(c.ErrOrStderr())
	job := compare.Job{
		Models: d.models, Base: d.base, Level: o.level, Threads: o.threads, Memory: int64(memory),
		Progress: func(done, total int64) { show.see("comparing", done, total) },
	}
	d.result, err = compare.Run(c.Context(), job)
	show.erase()
	if err != nil {
		return stoppable(c.Context(), err)
	}
	d.grid = d.result.Grid()
	if o.html != "" {
		if err := writePage(c.ErrOrStderr(), o.html, d.page); err != nil {
			return err
		}
	}
	switch {
	case o.asJSON:
		for _, note := range d.result.Notes {
			fmt.Fprintln(c.ErrOrStderr(), "note:", visible(note))
		}
		return d.printJSON(c.OutOrStdout())
	case o.metric != "":
		return d.print(c.OutOrStdout(), func(w io.Writer, i, j int) { d.byKind(w, shown[0], i, j) })
	}
	return d.print(c.OutOrStdout(), func(w io.Writer, i, j int) { d.tables(w, shown, i, j) })
}

// metrics are those to show, of which --metric may choose one.
func (o *diff) metrics(c *cobra.Command) ([]metric, error) {
	var names []string
	var shown []metric
	for _, m := range metrics() {
		if m.task && o.base == "" {
			if m.name == o.metric {
				return nil, errUsage(c, "--metric %s: it takes a --base", m.name)
			}
			continue
		}
		names = append(names, m.name)
		if o.metric == "" || o.metric == m.name {
			shown = append(shown, m)
		}
	}
	if len(shown) == 0 {
		return nil, errUsage(c, "--metric: got %q, want one of %s", o.metric, strings.Join(names, ", "))
	}
	return shown, nil
}

// comparison is models, and what came of comparing them.
type comparison struct {
	models []compare.Model
	base   *compare.Model // nil for none
	result *compare.Result
	grid   *compare.Grid
}

// openDiff opens models and their base, which may be empty. They are called as they
// were given.
func openDiff(paths []string, base string) (_ *comparison, err error) {
	d := &comparison{}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	var from os.FileInfo
	if base != "" {
		m, info, err := openWeights(base)
		if err != nil {
			return d, err
		}
		d.base, from = &m, info
	}
	for _, p := range paths {
		m, info, err := openWeights(p)
		if err != nil {
			return d, err
		}
		d.models = append(d.models, m)
		if from != nil && os.SameFile(from, info) {
			return d, fault.Configf("diff: model %s: it is the base, so it has no task vector", p)
		}
	}
	return d, nil
}

// openWeights opens the weights of a model directory, of which nothing else is
// needed, or of the newest checkpoint of a run directory.
func openWeights(path string) (m compare.Model, info os.FileInfo, err error) {
	dir := path
	if !hasFile(dir, "model.safetensors") && !hasFile(dir, "model.safetensors.index.json") {
		if dir, err = modelDir(path); err != nil {
			return m, nil, err
		}
	}
	if info, err = os.Stat(dir); err != nil {
		return m, nil, fault.Dataf("opening model %s: %w", path, err)
	}
	set, err := weights.OpenDir(dir)
	if err != nil {
		return m, nil, fault.As(fault.Data, fmt.Errorf("opening model %s: %w", path, err))
	}
	return compare.Model{Name: filepath.Clean(path), Weights: set}, info, nil
}

func (d *comparison) close() {
	for _, m := range d.models {
		_ = m.Weights.Close()
	}
	if d.base != nil {
		_ = d.base.Weights.Close()
	}
}

// figureLine is what --json prints: figures of a pair of models over a tensor, a
// layer, a kind or all.
type figureLine struct {
	Scope    string   `json:"scope"`
	Name     string   `json:"name,omitempty"`
	Shape    []int    `json:"shape,omitempty"`
	Layer    *int     `json:"layer,omitempty"`
	Kind     string   `json:"kind,omitempty"`
	A        string   `json:"a"`
	B        string   `json:"b"`
	Base     string   `json:"base,omitempty"`
	Elements int64    `json:"elements"`
	Distance *float64 `json:"distance,omitempty"`
	Cosine   *float64 `json:"cosine,omitempty"`
	Equal    *float64 `json:"equal,omitempty"`

	MovedA          *float64 `json:"moved_a,omitempty"`
	MovedB          *float64 `json:"moved_b,omitempty"`
	TaskCosine      *float64 `json:"task_cosine,omitempty"`
	Both            *float64 `json:"both,omitempty"`
	Opposed         *float64 `json:"opposed,omitempty"`
	OpposedWeighted *float64 `json:"opposed_weighted,omitempty"`
}

// printJSON prints tensors, layers, kinds and all, each pair by pair.
func (d *comparison) printJSON(w io.Writer) error {
	layer := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	for _, t := range d.result.Tensors {
		l := figureLine{Scope: "tensor", Name: t.Name, Shape: t.Shape, Layer: layer(t.Layer), Kind: t.Kind}
		if err := d.printPairs(w, l, &t.Sums); err != nil {
			return err
		}
	}
	for i := range d.grid.Rows {
		r := &d.grid.Rows[i]
		l := figureLine{Scope: "layer", Name: r.Label, Layer: layer(r.Layer)}
		if err := d.printPairs(w, l, &r.All); err != nil {
			return err
		}
	}
	for i, s := range d.grid.ByKind {
		if err := d.printPairs(w, figureLine{Scope: "kind", Kind: d.grid.Kinds[i]}, s); err != nil {
			return err
		}
	}
	return d.printPairs(w, figureLine{Scope: "all"}, &d.grid.All)
}

func (d *comparison) printPairs(w io.Writer, l figureLine, s *compare.Sums) error {
	if d.base != nil {
		l.Base = d.base.Name
	}
	for i := range d.models {
		for j := i + 1; j < len(d.models); j++ {
			f := s.Figures(i, j)
			l.A, l.B, l.Elements = d.models[i].Name, d.models[j].Name, f.Elements
			l.Distance, l.Cosine, l.Equal = defined(f.Distance), defined(f.Cosine), defined(f.Equal)
			l.MovedA, l.MovedB, l.TaskCosine = defined(f.TaskA), defined(f.TaskB), defined(f.TaskCosine)
			l.Both, l.Opposed = defined(f.Both), defined(f.Opposed)
			l.OpposedWeighted = defined(f.OpposedWeighted)
			if err := printInert(w, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// defined is nil for NaN, which JSON lacks.
func defined(x float64) *float64 {
	if x != x {
		return nil
	}
	return &x
}
