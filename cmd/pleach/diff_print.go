// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"pleach/merge/compare"
)

// metric is a figure and how it is shown.
type metric struct {
	name   string // in JSON, and of --metric
	head   string // of a column
	says   string
	task   bool // it takes a base
	signed bool // it has two sides of 0
	format string
	scale  float64
	of     func(compare.Figures) float64
}

// metrics are all of them, in the order of columns.
func metrics() []metric {
	const percent = "%.1f %%"
	return []metric{
		{
			"distance", "distance", "distance, ‖A−B‖/‖A‖", false, false, "%#.3g", 1,
			func(f compare.Figures) float64 { return f.Distance },
		},
		{
			"cosine", "cosine", "cosine of the angle between A and B", false, false, "%.5f", 1,
			func(f compare.Figures) float64 { return f.Cosine },
		},
		{
			"equal", "equal", "part of the numbers that are equal", false, false, percent, 100,
			func(f compare.Figures) float64 { return f.Equal },
		},
		{
			"moved_a", "moved A", "how far A is from the base, ‖ΔA‖/‖base‖", true, false, "%#.3g", 1,
			func(f compare.Figures) float64 { return f.TaskA },
		},
		{
			"moved_b", "moved B", "how far B is from the base, ‖ΔB‖/‖base‖", true, false, "%#.3g", 1,
			func(f compare.Figures) float64 { return f.TaskB },
		},
		{
			"task_cosine", "task cos", "cosine of the angle between the task vectors ΔA and ΔB",
			true, true, "%.3f", 1,
			func(f compare.Figures) float64 { return f.TaskCosine },
		},
		{
			"both", "both", "part of the numbers that neither model left as they were", true, false, percent, 100,
			func(f compare.Figures) float64 { return f.Both },
		},
		{
			"opposed", "opposed", "part of the numbers moved by both in which the signs of ΔA and ΔB differ",
			true, false, percent, 100,
			func(f compare.Figures) float64 { return f.Opposed },
		},
		{
			"opposed_weighted", "weighted", "the same, with each number counted as |ΔA|+|ΔB|",
			true, false, percent, 100,
			func(f compare.Figures) float64 { return f.OpposedWeighted },
		},
	}
}

// show prints the figure of a pair; – for one that is not defined.
func (m metric) show(s *compare.Sums, i, j int) string {
	x := m.of(s.Figures(i, j))
	if x != x {
		return "–"
	}
	return m.text(x)
}

func (m metric) text(x float64) string { return fmt.Sprintf(m.format, m.scale*x) }

// pairOfLetters are the words A and B, which a pair is called in texts, alone or in
// ΔA.
var pairOfLetters = regexp.MustCompile(`\b[AB]\b`)

// as is a text that speaks of the pair A and B, for models i and j.
func as(text string, i, j int) string {
	return pairOfLetters.ReplaceAllStringFunc(text, func(s string) string {
		if s == "A" {
			return letter(i)
		}
		return letter(j)
	})
}

func letter(i int) string { return string(rune('A' + i)) }

// print lists the models and prints each pair.
func (d *comparison) print(w io.Writer, pair func(w io.Writer, i, j int)) error {
	var b bytes.Buffer
	t := newTable(&b)
	for i, m := range d.models {
		t.row(letter(i), "%s", visible(m.Name))
	}
	if d.base != nil {
		t.row("base", "%s", visible(d.base.Name))
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "%d tensors, %s elements\n", len(d.result.Tensors), grouped(float64(d.grid.All.Elements)))
	for _, note := range d.result.Notes {
		fmt.Fprintln(&b, visible(note))
	}
	for i := range d.models {
		for j := i + 1; j < len(d.models); j++ {
			pair(&b, i, j)
		}
	}
	_, err := w.Write(b.Bytes())
	return printed(err)
}

// tables prints the figures of a pair by layer and by kind, and what they say.
func (d *comparison) tables(w io.Writer, shown []metric, i, j int) {
	fmt.Fprintf(w, "\n%s\n", as("A and B", i, j))
	head := make([]string, len(shown))
	for k, m := range shown {
		head[k] = as(m.head, i, j)
	}
	cells := func(s *compare.Sums) []string {
		row := make([]string, len(shown))
		for k, m := range shown {
			row[k] = m.show(s, i, j)
		}
		return row
	}
	layers := columns{head: head, first: "layer"}
	for k := range d.grid.Rows {
		layers.add(d.grid.Rows[k].Label, cells(&d.grid.Rows[k].All))
	}
	layers.add("all", cells(&d.grid.All))
	layers.print(w)
	kinds := columns{head: head, first: "kind"}
	for k, s := range d.grid.ByKind {
		kinds.add(d.grid.Kinds[k], cells(s))
	}
	fmt.Fprintln(w)
	kinds.print(w)
	fmt.Fprintln(w)
	for _, line := range d.words(i, j) {
		fmt.Fprintln(w, visible(line))
	}
}

// byKind prints one figure of a pair by layer and kind.
func (d *comparison) byKind(w io.Writer, m metric, i, j int) {
	fmt.Fprintf(w, "\n%s: %s\n", as("A and B", i, j), as(m.says, i, j))
	t := columns{head: append(slices.Clone(d.grid.Kinds), "all"), first: "layer"}
	cell := func(s *compare.Sums) string {
		if s == nil {
			return ""
		}
		return m.show(s, i, j)
	}
	row := func(label string, cells []*compare.Sums, all *compare.Sums) {
		texts := make([]string, 0, len(cells)+1)
		for _, s := range cells {
			texts = append(texts, cell(s))
		}
		t.add(label, append(texts, cell(all)))
	}
	for k := range d.grid.Rows {
		r := &d.grid.Rows[k]
		row(r.Label, r.Cells, &r.All)
	}
	row("all", d.grid.ByKind, &d.grid.All)
	t.print(w)
}

// columns is a table of numbers: the first column on the left, the others on the
// right of their places.
type columns struct {
	first string
	head  []string
	rows  [][]string // each with its label first
}

func (t *columns) add(label string, cells []string) {
	t.rows = append(t.rows, append([]string{visible(label)}, cells...))
}

func (t *columns) print(w io.Writer) {
	all := append([][]string{append([]string{t.first}, t.head...)}, t.rows...)
	widths := make([]int, len(all[0]))
	for _, row := range all {
		for k, cell := range row {
			widths[k] = max(widths[k], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range all {
		line := fmt.Sprintf("%-*s", widths[0], row[0])
		for k, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", widths[k+1], cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// The cosine above which slerp is defined as the weighted mean.
const slerpIsLinear = 0.9995

// words say what the figures of a pair mean, as far as it follows from them.
func (d *comparison) words(i, j int) []string {
	f := d.grid.All.Figures(i, j)
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, as(fmt.Sprintf(format, args...), i, j)) }
	say("A and B are %.3g of ‖A‖ apart, with a cosine of %.5f; %s of the numbers are equal.",
		f.Distance, f.Cosine, inPercent(f.Equal))
	if f.Equal == 1 {
		return lines
	}
	if d.base != nil {
		d.taskWords(f, say, i, j)
		return lines
	}
	d.extremes(say, "They differ most", func(f compare.Figures) float64 { return f.Distance }, "%.3g", 1, i, j)
	linear := 0
	for k := range d.result.Tensors {
		if d.result.Tensors[k].Sums.Figures(i, j).Cosine > slerpIsLinear {
			linear++
		}
	}
	if linear > 0 {
		say("In %d of %d tensors the cosine is above %v, where slerp is linear.",
			linear, len(d.result.Tensors), slerpIsLinear)
	}
	if f.Cosine < 0.5 {
		say("Models that come from one base are closer as a rule; means of models that do not seldom work.")
	}
	return lines
}

// taskWords say what task vectors have in common.
func (d *comparison) taskWords(f compare.Figures, say func(format string, args ...any), i, j int) {
	if f.TaskCosine != f.TaskCosine {
		say("One of them has not moved from the base.")
		return
	}
	say("From the base, A moved %.3g of its norm and B %.3g; the cosine of their task vectors is %.3f: %s.",
		f.TaskA, f.TaskB, f.TaskCosine, direction(f.TaskCosine))
	if r := f.TaskB / f.TaskA; r > 3 || r < 1./3 {
		far, near := "B", "A"
		if r < 1 {
			far, near, r = near, far, 1/r
		}
		say("%s moved %.1f times as far as %s: with equal weights it outweighs %s in a sum.", far, r, near, near)
	}
	if f.Both == 0 {
		say("No number was moved by both.")
		return
	}
	say("Both moved %s of the numbers, %s of these in opposite directions (%s when weighted by how far).",
		inPercent(f.Both), inPercent(f.Opposed), inPercent(f.OpposedWeighted))
	weighted := func(f compare.Figures) float64 { return f.OpposedWeighted }
	d.extremes(say, "They are opposed most", weighted, "%.1f %%", 100, i, j)
	if f.Both*f.OpposedWeighted >= 0.1 {
		say("Where directions are opposed a sum (task_arithmetic, linear) cancels; " +
			"ties and dare_ties keep the side with more weight.")
	}
}

// direction is a cosine of task vectors in words.
func direction(c float64) string {
	switch {
	case c >= 0.7:
		return "much the same direction, which a sum counts twice"
	case c >= 0.2:
		return "directions that share a part"
	case c > -0.2:
		return "nearly orthogonal, so a sum (task_arithmetic) keeps most of both"
	case c > -0.7:
		return "directions that are opposed in part"
	}
	return "opposite directions, which a sum cancels"
}

// extremes names the layer and the kind with the largest figure, and how small it gets.
func (d *comparison) extremes(say func(format string, args ...any), what string, of func(compare.Figures) float64,
	format string, scale float64, i, j int,
) {
	var parts []string
	see := func(kind string, n int, at func(k int) (string, *compare.Sums)) {
		best, label, least := math.Inf(-1), "", math.Inf(1)
		for k := range n {
			name, s := at(k)
			if x := of(s.Figures(i, j)); name != "" && x == x {
				least = min(least, x)
				if x > best {
					best, label = x, name
				}
			}
		}
		if best > least {
			parts = append(parts, fmt.Sprintf("in %s %s ("+format+", least "+format+")", kind, label, scale*best, scale*least))
		}
	}
	see("layer", len(d.grid.Rows), func(k int) (string, *compare.Sums) {
		r := &d.grid.Rows[k]
		if r.Layer < 0 {
			return "", &r.All
		}
		return r.Label, &r.All
	})
	see("tensors of kind", len(d.grid.Kinds), func(k int) (string, *compare.Sums) {
		return d.grid.Kinds[k], d.grid.ByKind[k]
	})
	if len(parts) > 0 {
		say("%s %s.", what, strings.Join(parts, " and "))
	}
}
