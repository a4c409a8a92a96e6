// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// group is the runs of one row of a table: the same in everything but the seed.
type group struct {
	label string
	runs  []*result // of the seeds that are done in both
	base  []*result // the runs that they are compared with, seed by seed
}

// compare pairs the runs like of with those like to. A seed counts if both are
// done.
func compare(label string, of, to spec, seeds []int, all map[spec]*result) group {
	g := group{label: label}
	for _, seed := range seeds {
		of.Seed, to.Seed = seed, seed
		if a, b := all[of], all[to]; a != nil && b != nil {
			g.runs, g.base = append(g.runs, a), append(g.base, b)
		}
	}
	return g
}

// over summarizes a number of each run.
func (g group) over(f func(*result) float64) summary {
	var x []float64
	for _, r := range g.runs {
		x = append(x, f(r))
	}
	return summarize(x)
}

// difference summarizes what the held-out texts cost more than in the runs they
// are compared with, in nats per token.
func (g group) difference() summary {
	var x []float64
	for i, r := range g.runs {
		x = append(x, r.nats-g.base[i].nats)
	}
	return summarize(x)
}

// curve is the difference of the training loss in each bin.
func (g group) curve() []summary {
	c := make([]summary, bins)
	for b := range c {
		var x []float64
		for i, r := range g.runs {
			x = append(x, r.loss[b]-g.base[i].loss[b])
		}
		c[b] = summarize(x)
	}
	return c
}

// band is how far the curve of any seed gets from 0 after the warm-up.
func (g group) band() float64 {
	var most float64
	for _, s := range g.curve()[firstBin:] {
		if math.IsNaN(s.mean) {
			return math.NaN()
		}
		most = max(most, s.largest())
	}
	return most
}

func (g group) spikes() spikes {
	var s spikes
	for _, r := range g.runs {
		s = s.add(r.spikes)
	}
	return s
}

// precisions are the groups of the first comparison, each against f32. Those
// without a run are left out.
func (e experiment) precisions(all map[spec]*result) map[mode]group {
	to := spec{Mode: plainF32, Beta2: e.betas[0], LR: e.lr}
	groups := map[mode]group{}
	for _, m := range e.modes {
		of := to
		of.Mode = m
		if g := compare(m.label(), of, to, e.seeds, all); len(g.runs) > 0 {
			groups[m] = g
		}
	}
	return groups
}

// slower are the groups of one mode and rate in the second comparison, each
// against the first β2.
func (e experiment) slower(m mode, lr float64, all map[spec]*result) []group {
	to := spec{Mode: m, Beta2: e.betas[0], LR: lr}
	var groups []group
	for _, b := range e.betas {
		of := to
		of.Beta2 = b
		if g := compare(m.label(), of, to, e.seeds, all); len(g.runs) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}
