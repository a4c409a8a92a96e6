// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pleach/blob"
	"pleach/internal/fault"
	"pleach/merge"
)

// sweeping is a parameter and its values.
type sweeping struct {
	name   string // of the parameter
	model  string // whose parameter it is; empty: of the merge
	values []float64
}

// mostValues bounds a sweep, which is that many evaluations.
const mostValues = 1000

// parseSweep reads NAME=A:B:STEP or NAME@MODEL=A:B:STEP.
func parseSweep(s string) (*sweeping, error) {
	const want = "want NAME=A:B:STEP, such as t=0:1:0.1, or NAME@MODEL=A:B:STEP for a parameter of one model"
	i := strings.LastIndex(s, "=")
	if i <= 0 {
		return nil, fmt.Errorf("got %q, %s", s, want)
	}
	w := &sweeping{}
	w.name, w.model, _ = strings.Cut(s[:i], "@")
	parts := strings.Split(s[i+1:], ":")
	if len(parts) != 3 || w.name == "" {
		return nil, fmt.Errorf("got %q, %s", s, want)
	}
	var x [3]float64
	for k, p := range parts {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("got %q in %q, %s", p, s, want)
		}
		x[k] = v
	}
	from, to, step := x[0], x[1], x[2]
	if step <= 0 || to < from {
		return nil, fmt.Errorf("got %q, want a step above 0 and an end that is not below the beginning", s)
	}
	n := math.Floor((to-from)/step+1e-9) + 1
	if n > mostValues {
		return nil, fmt.Errorf("got %.0f values, want %d at most", n, mostValues)
	}
	for k := range int(n) {
		// Rounded, so that 0.1 + 0.2 is called 0.3.
		v, _ := strconv.ParseFloat(strconv.FormatFloat(from+float64(k)*step, 'g', 12, 64), 64)
		w.values = append(w.values, v)
	}
	return w, nil
}

func (w *sweeping) String() string {
	if w.model != "" {
		return w.name + " of " + w.model
	}
	return w.name
}

// swept is the merge at one value.
type swept struct {
	value float64
	all   []measured
}

// runSweep measures the merge at all values, and writes the curve into OUT.
func (o *merging) runSweep(c *cobra.Command) error {
	if err := o.vacant(); err != nil {
		return err
	}
	text, err := os.ReadFile(o.config)
	if err != nil {
		return fault.Configf("merge: %w", err)
	}
	// A value that cannot be is told now, and not when others have been measured.
	for i, v := range o.steps.values {
		w := io.Discard
		if i == 0 {
			w = c.ErrOrStderr()
		}
		p, err := o.planFor(w, text, v)
		if err != nil {
			return err
		}
		p.Close()
	}
	if err := o.measuring().readable(c.Context(), c.ErrOrStderr()); err != nil {
		return err
	}
	var inputs []modelRow
	var points []swept
	show := newETA(c.ErrOrStderr())
	defer show.erase()
	for i, v := range o.steps.values {
		p, err := o.planFor(io.Discard, text, v)
		if err != nil {
			return err
		}
		if i == 0 {
			inputs, err = o.measureInputs(c, p)
		}
		if err == nil {
			var all []measured
			all, err = o.measureMerged(c, p)
			points = append(points, swept{v, all})
		}
		p.Close()
		if err != nil {
			return err
		}
		show.say("%v = %g: %s", o.steps, v, perplexities(points[i].all))
		show.see(o.steps.String(), int64(i+1), int64(len(o.steps.values)))
	}
	show.erase()
	if err := printModels(c.OutOrStdout(), inputs); err != nil {
		return err
	}
	fmt.Fprintln(c.OutOrStdout())
	if err := o.printSweep(c.OutOrStdout(), points); err != nil {
		return err
	}
	return blob.Local(filepath.Dir(filepath.Clean(o.out))).Publish(filepath.Base(o.out), func(t blob.Tree) error {
		return errors.Join(
			t.Write("sweep.csv", func(w io.Writer) error { return o.sweepCSV(w, inputs, points) }),
			t.Write("sweep.html", func(w io.Writer) error { return o.sweepPage(w, inputs, points) }),
			t.Write("mergekit_config.yml", func(w io.Writer) error { _, err := w.Write(text); return err }))
	})
}

// planFor is the plan with one value of the parameter.
func (o *merging) planFor(w io.Writer, text []byte, v float64) (*merge.Plan, error) {
	config, err := merge.ParseConfig(o.config, text)
	if err != nil {
		return nil, err
	}
	if err := config.Set(o.steps.name, o.steps.model, v); err != nil {
		return nil, err
	}
	p, err := o.planOf(w, config)
	if err != nil {
		return nil, fmt.Errorf("%v = %g: %w", o.steps, v, err)
	}
	return p, nil
}

// measureMerged measures the output of a plan without writing it.
func (o *merging) measureMerged(c *cobra.Command, p *merge.Plan) ([]measured, error) {
	m, undo, err := o.merged(c, p)
	if err != nil {
		return nil, err
	}
	defer undo()
	return o.measuring().measureAll(c.Context(), c.ErrOrStderr(), m, nil)
}

// perplexities are results in a few words.
func perplexities(all []measured) string {
	var list []string
	for _, r := range all {
		list = append(list, fmt.Sprintf("%s %.4f", r.Name, r.Perplexity))
	}
	return strings.Join(list, ", ")
}

// printSweep is the curve as a table. The best value for each text is marked.
func (o *merging) printSweep(w io.Writer, points []swept) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%v\t", o.steps)
	for _, r := range points[0].all {
		fmt.Fprintf(t, "%s: perplexity\tbits/byte\t\t", r.Name)
	}
	fmt.Fprintln(t)
	for i, p := range points {
		fmt.Fprintf(t, "%g\t", p.value)
		for k, r := range p.all {
			mark := ""
			if i == best(points, k) {
				mark = "best"
			}
			fmt.Fprintf(t, "%.4f\t%s\t%s\t", r.Perplexity, r.bits(), mark)
		}
		fmt.Fprintln(t)
	}
	return printed(t.Flush())
}

// best is the point with the lowest loss on text k.
func best(points []swept, k int) int {
	at := 0
	for i, p := range points {
		if p.all[k].NLL < points[at].all[k].NLL {
			at = i
		}
	}
	return at
}

// sweepCSV is the curve, with the inputs as rows without a value.
func (o *merging) sweepCSV(w io.Writer, inputs []modelRow, points []swept) error {
	var b strings.Builder
	fmt.Fprintf(&b, "model,%s", csvField(o.steps.String()))
	for _, r := range points[0].all {
		fmt.Fprintf(&b, ",%s,%s", csvField(r.Name+" perplexity"), csvField(r.Name+" bits_per_byte"))
	}
	b.WriteByte('\n')
	row := func(model, value string, all []measured) {
		fmt.Fprintf(&b, "%s,%s", csvField(model), value)
		for _, r := range all {
			fmt.Fprintf(&b, ",%.6f,%.6f", r.Perplexity, r.BitsPerByte)
		}
		b.WriteByte('\n')
	}
	for _, m := range inputs {
		row(m.name, "", m.all)
	}
	for _, p := range points {
		row("merged", strconv.FormatFloat(p.value, 'g', -1, 64), p.all)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// csvField quotes a field if it has to be (RFC 4180).
func csvField(s string) string {
	if strings.ContainsAny(s, ",\"\r\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
