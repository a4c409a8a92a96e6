// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import "pleach/half"

// linear is Σ w·M, divided by Σ w, in float32 with fused additions, then rounded.
func (j *job) linear() ([]float32, error) {
	if err := j.want(false, 0, many); err != nil {
		return nil, err
	}
	out := make([]float32, j.Len())
	w := make([]float32, len(j.in))
	for i, x := range j.in {
		w[i] = float32(j.param(i, "weight"))
		for e, v := range x {
			out[e] = fma(v, w[i], out[e])
		}
	}
	if j.on("normalize") {
		s := sum(w, half.F32, nil)
		for e := range out {
			out[e] /= s
		}
	}
	return j.rounded(out), nil
}

// passthrough is the only input, times scale if that is given.
func (j *job) passthrough() ([]float32, error) {
	if len(j.in) != 1 {
		return nil, j.errorf("got %d tensors, want 1", len(j.in))
	}
	scale, ok := j.Inputs[0].Params["scale"]
	if !ok {
		return j.in[0], nil
	}
	out := make([]float32, j.Len())
	for e, x := range j.in[0] {
		out[e] = j.r(x * float32(scale))
	}
	return out, nil
}

// nearswap is w·b + (1−w)·a with w = t/|a−b| of at most 1, where t/x is the rounded
// 1/x times t.
func (j *job) nearswap() ([]float32, error) {
	if err := j.want(true, 1, 1); err != nil {
		return nil, err
	}
	a, b := j.in[j.Base], j.in[j.Others()[0]]
	t, least := float32(j.global("t")), j.r64(1e-6)
	out := make([]float32, len(a))
	for e, x := range a {
		d := max(abs(j.r(x-b[e])), least)
		w := clamp(j.r(j.r(1/d)*t), 0, 1)
		out[e] = j.r(j.r(w*b[e]) + j.r(j.r(1-w)*x))
	}
	return out, nil
}

// modelStock is τ·mean + (1−τ)·base, with τ of the mean cosine between differences,
// of the tensor or of each of its rows.
func (j *job) modelStock() ([]float32, error) {
	if len(j.in) == 1 && j.Base == 0 && j.Optional {
		return j.in[0], nil
	}
	if err := j.want(true, 2, many); err != nil {
		return nil, err
	}
	row := j.Len()
	if j.on("filter_wise") && len(j.Shape) > 0 {
		row = j.Shape[len(j.Shape)-1]
	}
	others := j.Others()
	n := float32(len(others))
	tau := j.stock(j.meanCosines(j.differences(others), row), n)
	out := make([]float32, j.Len())
	for e, b := range j.in[j.Base] {
		var mean float32
		for _, i := range others {
			mean = j.r(mean + j.in[i][e])
		}
		mean = j.r(mean / n)
		t := tau[e/row]
		out[e] = j.r(j.r(t*mean) + j.r(j.r(1-t)*b))
	}
	return out, nil
}

// meanCosines are the means over pairs of differences of the cosines between them,
// of each row.
func (j *job) meanCosines(delta [][]float32, row int) []float32 {
	rows := j.Len() / max(1, row)
	norms := make([][]float32, len(delta))
	for i, d := range delta {
		norms[i] = make([]float32, rows)
		for k := range rows {
			norms[i][k] = j.r(norm(d[k*row:(k+1)*row], j.t))
		}
	}
	var list [][]float32
	product := make([]float32, row)
	least := j.r64(1e-6)
	for a := range delta {
		for b := a + 1; b < len(delta); b++ {
			cosines := make([]float32, rows)
			for k := range rows {
				for e := range product {
					product[e] = j.r(delta[a][k*row+e] * delta[b][k*row+e])
				}
				size := max(j.r(norms[a][k]*norms[b][k]), least)
				cosines[k] = clamp(j.r(j.r(j.sum(product))/size), -1, 1)
			}
			list = append(list, cosines)
		}
	}
	return j.meanOver(list)
}

// meanOver is the mean over the list, rounded once. One column is summed as a row.
func (j *job) meanOver(list [][]float32) []float32 {
	var out []float32
	if len(list[0]) == 1 {
		column := make([]float32, len(list))
		for i, x := range list {
			column[i] = x[0]
		}
		out = []float32{j.sum(column)}
	} else {
		out = make([]float32, len(list[0]))
		columns(out, func(i int) []float32 { return list[i] }, len(list))
	}
	for k, s := range out {
		out[k] = j.r(s / float32(len(list)))
	}
	return out
}

// stock is n·c/(1 + (n−1)·c), 0 where that has no value, for each cosine.
func (j *job) stock(cosines []float32, n float32) []float32 {
	tau := make([]float32, len(cosines))
	for k, c := range cosines {
		below := j.r(1 + j.r((n-1)*c))
		if abs(below) >= j.r64(1e-6) {
			tau[k] = j.r(j.r(n*c) / below)
		}
	}
	return tau
}
