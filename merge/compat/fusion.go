// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"math"
	"slices"
)

// ram is the base plus the differences, each element divided by the number of models
// that change it by more than epsilon.
func (j *job) ram() ([]float32, error) { return j.agents(false) }

// ramPlus is ram where what a single model changes has the factor 1 + r·ρ, in
// float32. ρ, up to alpha, is the number of elements that the model shares with others
// by that of those that it has alone.
func (j *job) ramPlus() ([]float32, error) { return j.agents(true) }

// agents is ram or ramPlus.
func (j *job) agents(plus bool) ([]float32, error) {
	if err := j.want(true, 0, many); err != nil {
		return nil, err
	}
	base, others := j.in[j.Base], j.Others()
	if len(others) == 0 {
		return base, nil
	}
	deltas := j.differences(others)
	counts := j.changed(deltas)
	r := j.r
	if plus {
		r = func(x float32) float32 { return x }
	}
	for _, d := range deltas {
		factor := float32(1)
		if plus {
			factor = j.uniqueFactor(d, counts)
		}
		for e, x := range d {
			if n := counts[e]; n > 1 {
				d[e] = j.r(x / j.r(n))
			} else {
				d[e] = r(x * factor)
			}
		}
	}
	out := make([]float32, j.Len())
	columns(out, func(i int) []float32 { return deltas[i] }, len(deltas))
	for e, b := range base {
		out[e] = r(b + r(out[e]))
	}
	return out, nil
}

// changed zeroes differences of at most epsilon and counts the others.
func (j *job) changed(deltas [][]float32) []float32 {
	epsilon := j.r64(j.global("epsilon"))
	counts := make([]float32, j.Len())
	for _, d := range deltas {
		for e, x := range d {
			if abs(x) > epsilon {
				counts[e]++
			} else {
				d[e] *= 0
			}
		}
	}
	return counts
}

// uniqueFactor is λ = 1 + r·min(ρ, alpha) of a model's differences.
func (j *job) uniqueFactor(d, counts []float32) float32 {
	var shared, unique int
	for e, x := range d {
		switch {
		case x == 0:
		case counts[e] > 1:
			shared++
		default:
			unique++
		}
	}
	rho := float32(shared) / max(float32(unique), float32(j.global("epsilon")))
	return 1 + float32(float32(j.global("r"))*clamp(rho, 0, float32(j.global("alpha"))))
}

// arceeFusion takes the other input where its score, |difference| times the
// divergence of the row's softmax, is at least median + 1.5·(q3 − q1), else the base.
// mergekit takes quantiles of 10⁶ random scores where there are more; these are of all.
func (j *job) arceeFusion() ([]float32, error) {
	if err := j.want(true, 1, 1); err != nil {
		return nil, err
	}
	base, other := j.in[j.Base], j.in[j.Others()[0]]
	row := max(1, j.Len())
	if len(j.Shape) > 0 {
		row = max(1, j.Shape[len(j.Shape)-1])
	}
	scores := make([]float32, len(base))
	for lo := 0; lo < len(base); lo += row {
		k := j.divergence(other[lo:lo+row], base[lo:lo+row])
		for e := lo; e < lo+row; e++ {
			scores[e] = j.r(abs(j.r(other[e]-base[e])) * k)
		}
	}
	threshold := j.threshold(scores)
	out := make([]float32, len(base))
	for e, b := range base {
		var mask float32
		if scores[e] >= threshold {
			mask = 1
		}
		out[e] = b + float32(j.r(other[e]-b)*mask)
	}
	return out, nil
}

// threshold is median + 1.5·(q3 − q1) of scores.
func (j *job) threshold(scores []float32) float32 {
	if len(scores) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(scores))
	quantile := func(q float32) float32 { return sorted[int(q*float32(len(sorted)-1))] }
	return j.r(quantile(0.5) + j.r(1.5*j.r(quantile(0.75)-quantile(0.25))))
}

// divergence is Σ p·log(p/q) of the softmax of two rows.
func (j *job) divergence(x, y []float32) float32 {
	p, q := j.softmax(x), j.softmax(y)
	for e, v := range p {
		p[e] = j.r(v * j.r(float32(math.Log(float64(j.r(v/q[e]))))))
	}
	return j.r(j.sum(p))
}

// softmax is that of x, plus 1e-8.
func (j *job) softmax(x []float32) []float32 {
	out := make([]float32, len(x))
	highest := slices.Max(x)
	var s float64
	for e, v := range x {
		out[e] = float32(math.Exp(float64(v - highest)))
		s += float64(out[e])
	}
	for e, v := range out {
		out[e] = j.r(j.r(v/float32(s)) + j.r64(1e-8))
	}
	return out
}
