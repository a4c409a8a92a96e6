// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"math"

	"pleach/half"
)

// slerpChunk is the number of elements whose norms and products are summed at a time.
const slerpChunk = 1 << 20

// slerp interpolates on the sphere between the base and the other input, both seen as
// one vector, in float32; of nearly parallel ones (|cos| > 0.9995) on the line.
func (j *job) slerp() ([]float32, error) {
	if err := j.want(true, 1, 1); err != nil {
		return nil, err
	}
	a, b := j.in[j.Base], j.in[j.Others()[0]]
	t := float32(j.global("t"))
	ca, cb := 1-t, t
	if d := slerpCosine(a, b); abs(d) <= 0.9995 {
		theta := acos(d)
		ca = sin(float32((1-t)*theta)) / sin(theta)
		cb = sin(float32(t*theta)) / sin(theta)
	}
	out := make([]float32, len(a))
	for e, x := range a {
		out[e] = j.r(float32(ca*x) + float32(cb*b[e]))
	}
	return out, nil
}

// slerpCosine is the cosine between a and b.
func slerpCosine(a, b []float32) float32 {
	na, nb := chunkNorm(a), chunkNorm(b)
	buffer := make([]float32, min(len(a), slerpChunk))
	var parts []float32
	for lo := 0; lo < len(a); lo += slerpChunk {
		part := buffer[:min(slerpChunk, len(a)-lo)]
		for e := range part {
			part[e] = a[lo+e] / na * (b[lo+e] / nb)
		}
		parts = append(parts, sum(part, half.F32, nil))
	}
	return clamp(sum(parts, half.F32, nil), -1, 1)
}

// chunkNorm is the norm of the norms of chunks of x, or 1 for a vector of almost 0.
func chunkNorm(x []float32) float32 {
	var parts []float32
	for lo := 0; lo < len(x); lo += slerpChunk {
		parts = append(parts, norm(x[lo:min(len(x), lo+slerpChunk)], half.F32))
	}
	if n := norm(parts, half.F32); n > 1e-8 {
		return n
	}
	return 1
}

// sin, cos and acos are those of float64, rounded.
func sin(x float32) float32  { return float32(math.Sin(float64(x))) }
func cos(x float32) float32  { return float32(math.Cos(float64(x))) }
func acos(x float32) float32 { return float32(math.Acos(float64(x))) }

// vectors is how a tensor falls into vectors: count of them, of n elements stride
// apart, the first elements of which are gap apart.
type vectors struct{ count, n, stride, gap int }

// along are the vectors of a shape: the whole tensor, or along the last or the first
// dimension.
func along(shape []int, size int, flat, first bool) vectors {
	if flat || len(shape) == 0 {
		return vectors{1, size, 1, size}
	}
	if first && len(shape) > 1 && size > shape[0] {
		cols := size / shape[0]
		return vectors{cols, shape[0], cols, 1}
	}
	n := shape[len(shape)-1]
	if first {
		n = size
	}
	return vectors{size / n, n, 1, n}
}

// nuslerp interpolates on the sphere between two inputs, or their differences from
// the base, as whole vectors or along a dimension.
func (j *job) nuslerp() ([]float32, error) {
	if err := j.want(false, 2, 2); err != nil {
		return nil, err
	}
	others := j.Others()
	w0, w1 := j.param(others[0], "weight"), j.param(others[1], "weight")
	t := 0.5
	if s := w0 + w1; math.Abs(s) >= 1e-6 {
		t = w1 / s
	}
	a, b := j.in[others[0]], j.in[others[1]]
	if j.Base >= 0 {
		d := j.differences(others)
		a, b = d[0], d[1]
	}
	v := along(j.Shape, j.Len(), j.on("nuslerp_flatten"), j.on("nuslerp_row_wise"))
	out := make([]float32, len(a))
	cosines := j.cosines(a, b, v)
	for k, c := range cosines {
		j.arc(out, a, b, v, k, c, t)
	}
	if j.Base >= 0 {
		for e, x := range j.in[j.Base] {
			out[e] = j.r(x + out[e])
		}
	}
	return out, nil
}

// arc sets vector k of out to what lies at t between those of a and b, whose cosine
// is c.
func (j *job) arc(out, a, b []float32, v vectors, k int, c float32, t float64) {
	ca, cb := float32(1-t), float32(t)
	below := float32(1)
	if j.r(1-j.r(c*c)) > j.r64(1e-16) {
		theta := j.r(acos(c))
		below = j.r(sin(theta))
		ca, cb = j.r(sin(j.r(ca*theta))), j.r(sin(j.r(cb*theta)))
	}
	for i := range v.n {
		e := k*v.gap + i*v.stride
		out[e] = j.r(j.r(j.r(ca*a[e])+j.r(cb*b[e])) / below)
	}
}

// cosines are those between the vectors of a and b.
func (j *job) cosines(a, b []float32, v vectors) []float32 {
	ua, ub := j.units(a, v), j.units(b, v)
	for e, x := range ub {
		ua[e] = j.r(ua[e] * x)
	}
	out := make([]float32, v.count)
	if v.stride > 1 {
		columns(out, func(i int) []float32 { return ua[i*v.stride:][:v.count] }, v.n)
	} else {
		for k := range out {
			out[k] = j.sum(ua[k*v.gap:][:v.n])
		}
	}
	for k, s := range out {
		out[k] = clamp(j.r(s), -1, 1)
	}
	return out
}

// units are the vectors of x, divided by their norms or by 1e-7.
func (j *job) units(x []float32, v vectors) []float32 {
	out := make([]float32, len(x))
	least := j.r64(1e-7)
	for k := range v.count {
		at := k * v.gap
		var n float32
		if v.stride > 1 {
			n = columnNorm(x, at, v.stride, v.n)
		} else {
			n = norm(x[at:at+v.n], j.t)
		}
		n = max(j.r(n), least)
		for i := range v.n {
			e := at + i*v.stride
			out[e] = j.r(x[e] / n)
		}
	}
	return out
}

// multislerp is the weighted mean on the sphere, in the plane that touches it at the
// weighted mean of the unit vectors, times the mean of the norms.
func (j *job) multislerp() ([]float32, error) {
	others := j.Others()
	if len(others) == 1 || len(others) == 0 {
		return j.in[append(others, j.Base)[0]], nil
	}
	list := make([][]float32, len(others))
	for k, i := range others {
		list[k] = j.in[i]
	}
	if j.Base >= 0 {
		list = j.differences(others)
	}
	w := j.barycentric(others)
	out, err := j.sphereMean(list, w)
	if err == nil && j.Base >= 0 {
		for e, x := range out {
			out[e] = j.r(x + j.in[j.Base][e])
		}
	}
	return out, err
}

// barycentric are the weights, divided by their sum if normalize_weights.
func (j *job) barycentric(others []int) []float32 {
	w := j.weights(others)
	if j.on("normalize_weights") {
		s := j.r(j.sum(w))
		for k, x := range w {
			w[k] = j.r(x / s)
		}
	}
	return w
}

// sphereMean is multislerp without a base.
func (j *job) sphereMean(list [][]float32, w []float32) ([]float32, error) {
	eps := j.r64(j.global("eps"))
	units := make([][]float32, len(list))
	norms := make([]float32, len(list))
	for i, x := range list {
		n := j.r(norm(x, j.t))
		norms[i] = j.r(n * w[i])
		units[i] = make([]float32, len(x))
		below := j.r(n + eps)
		for e, v := range x {
			units[i][e] = j.r(v / below)
		}
	}
	mean := j.combined(units, w)
	n := j.r(norm(mean, j.t))
	if n < eps {
		if len(list) != 2 {
			return nil, j.errorf("got a weighted mean of zero, want other weights")
		}
		return j.twoMean(list, w), nil
	}
	for e, x := range mean {
		mean[e] = j.r(x / n)
	}
	tangent := j.tangent(units, mean, w)
	n = j.r(j.r(norm(tangent, j.t)) + eps)
	c, s := j.r(cos(n)), j.r(j.r(sin(n))/n)
	length := j.r(j.sum(norms))
	for e, x := range mean {
		mean[e] = j.r(j.r(j.r(x*c)+j.r(tangent[e]*s)) * length)
	}
	return mean, nil
}

// twoMean is Σ w·x of two.
func (j *job) twoMean(list [][]float32, w []float32) []float32 {
	out := make([]float32, len(list[0]))
	for e := range out {
		out[e] = j.r(j.r(list[0][e]*w[0]) + j.r(list[1][e]*w[1]))
	}
	return out
}

// combined is Σ w·x, every product rounded.
func (j *job) combined(list [][]float32, w []float32) []float32 {
	products := make([][]float32, len(list))
	for i, x := range list {
		products[i] = make([]float32, len(x))
		for e, v := range x {
			products[i][e] = j.r(v * w[i])
		}
	}
	return j.total(products)
}

// tangent is Σ w·(u − (u·m)·m). It overwrites the units.
func (j *job) tangent(units [][]float32, mean, w []float32) []float32 {
	product := make([]float32, len(mean))
	for _, u := range units {
		for e, x := range u {
			product[e] = j.r(x * mean[e])
		}
		d := j.r(j.sum(product))
		for e, x := range u {
			u[e] = j.r(x - j.r(d*mean[e]))
		}
	}
	return j.combined(units, w)
}
