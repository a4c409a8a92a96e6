// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import "math"

// task is a method of the task-arithmetic family.
type task struct {
	sparsify  func(*job, []float32, int) ([]float32, error) // of input i; nil for none
	consensus bool                                          // only differences of the sign of the sum count
}

// taskRules are the methods of the family.
func taskRules() map[string]task {
	return map[string]task{
		"task_arithmetic":  {},
		"ties":             {(*job).magnitude, true},
		"dare_linear":      {(*job).random, false},
		"dare_ties":        {(*job).random, true},
		"breadcrumbs":      {(*job).outliers, false},
		"breadcrumbs_ties": {(*job).outliers, true},
		"della":            {(*job).della, true},
		"della_linear":     {(*job).della, false},
	}
}

// merge is the base plus lambda times the sum of the weighted differences from it,
// divided by the sum of their weights if normalize.
func (m task) merge(j *job) ([]float32, error) {
	if err := j.want(true, 0, many); err != nil {
		return nil, err
	}
	base, others := j.in[j.Base], j.Others()
	if len(others) == 0 {
		return base, nil
	}
	deltas, err := m.sparse(j, others)
	if err != nil {
		return nil, err
	}
	weights := j.weights(others)
	for i, d := range deltas {
		for e, x := range d {
			d[e] = j.r(x * weights[i])
		}
	}
	mixed, divisor := m.mix(j, deltas, weights)
	normalize, lambda := j.on("normalize"), j.global("lambda")
	for e, b := range base {
		x := mixed[e]
		if normalize {
			x = j.r(x / divisor(e))
		}
		if lambda != 1 {
			x = j.r(x * float32(lambda))
		}
		mixed[e] = j.r(b + x)
	}
	return mixed, nil
}

// sparse are the differences from the base of which a part is set to zero.
func (m task) sparse(j *job, others []int) ([][]float32, error) {
	deltas := j.differences(others)
	if m.sparsify == nil {
		return deltas, nil
	}
	for k, i := range others {
		var err error
		if deltas[k], err = m.sparsify(j, deltas[k], i); err != nil {
			return nil, err
		}
	}
	return deltas, nil
}

// mix is the sum of the differences, or of those of the majority's sign, and the sum
// of their weights.
func (m task) mix(j *job, deltas [][]float32, w []float32) (mixed []float32, divisor func(e int) float32) {
	if !m.consensus {
		s := j.r(j.sum(w))
		if abs(s) < j.r64(1e-8) {
			s = 1
		}
		return j.total(deltas), func(int) float32 { return s }
	}
	shares := j.elect(deltas, w)
	return j.total(deltas), func(e int) float32 {
		if s := shares[e]; s != 0 {
			return s
		}
		return 1
	}
}

// elect zeroes the elements whose sign is not that of the sum over the list, which is
// positive where the sum is zero, and returns the sum of the weights of the others.
func (j *job) elect(list [][]float32, w []float32) []float32 {
	masks := j.votes(list)
	for i, d := range list {
		for e, vote := range masks[i] {
			d[e] *= vote
			masks[i][e] = w[i] * vote
		}
	}
	return j.total(masks)
}

// votes are 1 where an element has the sign of the sum over the list, else 0.
func (j *job) votes(list [][]float32) [][]float32 {
	s := j.total(list)
	masks := make([][]float32, len(list))
	for i, d := range list {
		masks[i] = make([]float32, len(d))
		for e, x := range d {
			if x > 0 && s[e] >= 0 || x < 0 && !(s[e] >= 0) {
				masks[i][e] = 1
			}
		}
	}
	return masks
}

// sce is the base plus the sum of the differences, those of the majority's sign, with
// weights of their mean squares; of the elements that vary most among the models.
func (j *job) sce() ([]float32, error) {
	if err := j.want(true, 0, many); err != nil {
		return nil, err
	}
	base, others := j.in[j.Base], j.Others()
	if len(others) == 0 {
		return base, nil
	}
	deltas := j.differences(others)
	if part := j.global("select_topk"); part < 1 {
		j.keepVarying(deltas, part)
	}
	w := j.squareWeights(deltas)
	masks := j.votes(deltas)
	for i, d := range deltas {
		for e, x := range d {
			masks[i][e] *= w[i]
			d[e] = j.r(x * masks[i][e])
		}
	}
	mixed, shares := j.total(deltas), j.total(masks)
	least := j.r64(1e-6)
	for e, b := range base {
		mixed[e] = j.r(b + j.r(mixed[e]/max(shares[e], least)))
	}
	return mixed, nil
}

// squareWeights are the means of the squares of each of the list, divided by their
// sum.
func (j *job) squareWeights(list [][]float32) []float32 {
	w := make([]float32, len(list))
	square := make([]float32, j.Len())
	for i, d := range list {
		for e, x := range d {
			square[e] = j.r(x * x)
		}
		w[i] = j.r(j.sum(square) / float32(len(d)))
	}
	s := j.r(j.sum(w))
	for i, x := range w {
		if math.Abs(float64(s)) < 1e-6 {
			w[i] = j.r(1 / float32(len(w)))
		} else {
			w[i] = j.r(x / s)
		}
	}
	return w
}

// keepVarying zeroes all elements but the part of largest variance over the list.
func (j *job) keepVarying(list [][]float32, part float64) {
	variance := make([]float32, j.Len())
	varying := 0
	for e := range variance {
		variance[e] = j.r(float32(welford(list, e)))
		if variance[e] != 0 {
			varying++
		}
	}
	keep := max(0, int(float32(varying)*float32(part)))
	mask := make([]float32, len(variance))
	for _, e := range largest(variance, keep) {
		mask[e] = 1
	}
	for _, d := range list {
		for e, x := range mask {
			d[e] *= x
		}
	}
}

// welford is the variance of element e over the list.
func welford(list [][]float32, e int) float64 {
	var mean, m2 float64
	for i, d := range list {
		x := float64(d[e])
		delta := x - mean
		mean += delta / float64(i+1)
		m2 += float64(delta * (x - mean))
	}
	return m2 / float64(len(list))
}
