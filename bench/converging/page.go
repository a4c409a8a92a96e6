// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"pleach/internal/fault"
)

// writePage writes the marked parts of the page and the figures beside it.
func writePage(file string, e experiment, all map[spec]*result) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fault.Configf("converging: --page: %w", err)
	}
	parts := []struct{ name, text string }{
		{"setting", e.setting()}, {"precision", e.precisionPart(all)}, {"beta2", e.betaPart(all)},
	}
	for _, p := range parts {
		if text, err = replace(text, p.name, p.text); err != nil {
			return fault.Configf("converging: %s: %w", file, err)
		}
	}
	base := strings.TrimSuffix(file, filepath.Ext(file))
	files := []struct {
		name string
		text []byte
	}{
		{base + ".svg", e.precisionChart(all).svg()},
		{base + "-beta2.svg", e.betaChart(all).svg()},
		{file, text},
	}
	for _, f := range files {
		if err := os.WriteFile(f.name, f.text, 0o666); err != nil {
			return fault.Machinef("converging: %w", err)
		}
	}
	return nil
}

// replace puts a text between two marks of a page, which are lines of their own.
func replace(page []byte, name, text string) ([]byte, error) {
	begin, end := fmt.Appendf(nil, "<!-- begin %s -->\n", name), fmt.Appendf(nil, "<!-- end %s -->\n", name)
	before, rest, ok := bytes.Cut(page, begin)
	_, after, also := bytes.Cut(rest, end)
	if !ok || !also {
		return nil, fmt.Errorf("mark %q: got none, want %q and later %q", name, begin, end)
	}
	return bytes.Join([][]byte{before, begin, []byte(text), end, after}, nil), nil
}

// setting says what all runs share.
func (e experiment) setting() string {
	s := e.set
	return fmt.Sprintf(`- model: preset %s with a vocabulary of %d
- a step: %d sequences of %d tokens; a run: %d steps, %.2f million tokens, none of them twice
- AdamW with β1 0.9 and decay 0.1; cosine after a warm-up of %g %%, to a floor of %s; clipping at 1
- peak of the learning rate: %g where precisions are compared, %s where values of β2 are
- seeds: %s. Runs of one seed begin with the same weights and see the same rows in the same order
- runs: %d
`, s.Preset, s.Vocabulary, s.Batch, s.Sequence, s.Steps, float64(s.tokens())/1e6, 100*warmup, s.Floor,
		e.lr, joined(e.betaRates), joined(e.seeds), len(e.specs()))
}

// precisionPart is table, band and verdict of the first comparison.
func (e experiment) precisionPart(all map[spec]*result) string {
	groups := e.precisions(all)
	t := newTable("precision", "seeds", "held out, nats per token", "bits per byte", "more than f32, nats",
		"its range", "norm of weights", "spikes", "largest norm of a gradient")
	for _, m := range e.modes {
		g, ok := groups[m]
		if !ok {
			continue
		}
		d, s := g.difference(), g.spikes()
		more, span := "", ""
		if m != plainF32 {
			more, span = d.signed(), d.span()
		}
		w := g.over(func(r *result) float64 { return r.weightNorm })
		t.row(g.label, fmt.Sprint(len(g.runs)), g.nats(), g.bits(), more, span, fmt.Sprintf("%.2f", w.mean),
			fmt.Sprint(s.count), g.largest())
	}
	var b strings.Builder
	b.WriteString(t.String() + "\n")
	for _, m := range []mode{again, mixed, sr, srMoment, plain16} {
		if g, ok := groups[m]; ok {
			fmt.Fprintf(&b, "- Band: after the warm-up the training loss of *%s* stays within %s nats of f32 in every seed.\n",
				g.label, number(g.band()))
		}
	}
	return b.String() + "\n" + verdict(groups) + "\n"
}

// verdict says whether plain bf16 is worse and the others are not.
func verdict(groups map[mode]group) string {
	plain, ok := groups[plain16]
	if !ok {
		return "Plain bf16 was not run."
	}
	d := plain.difference()
	said := fmt.Sprintf("On the held-out texts plain bf16 ends %.4f to %.4f nats above f32", d.min, d.max)
	var most float64
	for _, m := range []mode{mixed, sr, srMoment, again} {
		if g, ok := groups[m]; ok {
			most = max(most, g.difference().largest())
			said += fmt.Sprintf("; *%s* ends within %.4f of it", g.label, g.difference().largest())
		}
	}
	if g, ok := groups[plainF32]; ok && len(g.runs) > 1 {
		sd := g.over(func(r *result) float64 { return r.nats }).sd
		said += fmt.Sprintf(". Between seeds f32 has a standard deviation of %.4f", sd)
	}
	said += "."
	if d.min > most {
		return "**HLAT's finding is seen here.** " + said
	}
	return "**HLAT's finding is not seen here.** " + said
}

// betaPart is table and verdicts of the second comparison.
func (e experiment) betaPart(all map[spec]*result) string {
	t := newTable("learning rate", "precision", "β2", "seeds", "held out, nats per token",
		fmt.Sprintf("more than with %g, nats", e.betas[0]), "its range", "spikes", "of one step", "steps in spikes",
		"largest norm of a gradient", "steps refused")
	var said strings.Builder
	for _, lr := range e.betaRates {
		for _, m := range e.betaModes {
			for i, g := range e.slower(m, lr, all) {
				d, s := g.difference(), g.spikes()
				more, span := "", ""
				if i > 0 {
					more, span = d.signed(), d.span()
					fmt.Fprintf(&said, "- Rate %g, %s", lr, betaVerdict(g, e.betas[0], e.betas[i]))
				}
				refused := 0
				for _, r := range g.runs {
					refused += r.refused
				}
				t.row(fmt.Sprint(lr), g.label, fmt.Sprint(e.betas[i]), fmt.Sprint(len(g.runs)), g.nats(), more, span,
					fmt.Sprint(s.count), share(s.single, s.count), fmt.Sprint(s.steps), g.largest(), fmt.Sprint(refused))
			}
		}
	}
	return t.String() + "\n" + said.String() + "\n" + e.betaFinding(all) + "\n"
}

// betaVerdict says whether a β2 is worse than the first.
func betaVerdict(g group, first, beta float64) string {
	d := g.difference()
	word := "not clearly better or worse on the held-out texts"
	switch {
	case d.min > 0:
		word = "worse on the held-out texts in every seed"
	case d.max < 0:
		word = "better on the held-out texts in every seed"
	}
	more, fewer := g.spikier()
	return fmt.Sprintf("%s: β2 %g is %s than %g, with more steps in spikes in %d of %d seeds and fewer in %d.\n",
		g.label, beta, word, first, more, len(g.runs), fewer)
}

// spikier is in how many seeds there are more steps in spikes than in the runs
// that are compared with, and in how many fewer.
func (g group) spikier() (more, fewer int) {
	for i, r := range g.runs {
		switch a, b := r.spikes.steps, g.base[i].spikes.steps; {
		case a > b:
			more++
		case a < b:
			fewer++
		}
	}
	return more, fewer
}

// unstable reports whether every seed is worse and has more steps in spikes.
func (g group) unstable() bool {
	more, _ := g.spikier()
	return g.difference().min > 0 && more == len(g.runs)
}

// betaFinding says where a later β2 is unstable with stochastic rounding.
func (e experiment) betaFinding(all map[spec]*result) string {
	var where []string
	for _, lr := range e.betaRates {
		for _, m := range e.betaModes {
			for i, g := range e.slower(m, lr, all) {
				if i > 0 && g.unstable() {
					where = append(where, fmt.Sprintf("*%s* with β2 %g at the rate %g", g.label, e.betas[i], lr))
				}
			}
		}
	}
	const sense = "unstable (worse, and with more steps in spikes, in every seed)"
	if len(where) == 0 {
		return "**HLAT's finding on β2 is not seen here.** No run is " + sense + "."
	}
	return "Here is " + sense + ": " + strings.Join(where, "; ") + "."
}

func (g group) nats() string { return g.over(func(r *result) float64 { return r.nats }).String() }
func (g group) bits() string { return g.over(func(r *result) float64 { return r.bits }).String() }

// largest is the largest norm of a gradient.
func (g group) largest() string {
	return fmt.Sprintf("%.2f", g.over(func(r *result) float64 { return r.norm }).max)
}

// String is mean and deviation, the latter if there is one.
func (s summary) String() string { return fmt.Sprintf("%.4f", s.mean) + s.deviation() }

func (s summary) signed() string { return fmt.Sprintf("%+.4f", s.mean) + s.deviation() }
func (s summary) span() string   { return fmt.Sprintf("%+.4f to %+.4f", s.min, s.max) }

func (s summary) deviation() string {
	if s.n < 2 {
		return ""
	}
	return fmt.Sprintf(" ± %.4f", s.sd)
}

// number is x, or what is wrong with it.
func number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "no number of"
	}
	return fmt.Sprintf("%.4f", x)
}

func joined[T any](all []T) string {
	var words []string
	for _, v := range all {
		words = append(words, fmt.Sprint(v))
	}
	return strings.Join(words, ", ")
}

func share(n, of int) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(of))
}

// table is one of Markdown.
type table struct{ strings.Builder }

func newTable(head ...string) *table {
	t := &table{}
	t.row(head...)
	fmt.Fprintf(t, "|---%s|\n", strings.Repeat("|---:", len(head)-1))
	return t
}

func (t *table) row(cells ...string) { fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | ")) }
