// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import "pleach/half"

// karcher is the mean on the sphere of all inputs, found by steps along the mean of
// the tangents, times the mean of the norms. Norms are float32; a float32 number on
// the left of a product is rounded to the type of the inputs, on the right it is not.
func (j *job) karcher() ([]float32, error) {
	if len(j.in) == 1 {
		return j.in[0], nil
	}
	tol := j.global("tol")
	alpha := 1 / float64(len(j.in))
	var units [][]float32
	var share float64
	var scale float32
	for _, x := range j.in {
		n := norm(x, half.F32)
		scale += float32(float32(alpha) * n)
		if float64(n) > tol {
			units = append(units, j.over(x, n))
			share += alpha
		}
	}
	if len(units) == 0 {
		return make([]float32, j.Len()), nil
	}
	mean := j.sphereStart(units, float32(alpha/share), tol)
	tangent := make([]float32, len(mean))
	for range int(j.global("max_iter")) {
		if !j.sphereStep(mean, tangent, units, float32(alpha/share), tol) {
			break
		}
	}
	scale = j.r(scale)
	for e, x := range mean {
		mean[e] = j.r(scale * x)
	}
	return mean, nil
}

// over is x/n.
func (j *job) over(x []float32, n float32) []float32 {
	out := make([]float32, len(x))
	for e, v := range x {
		out[e] = j.r(v / n)
	}
	return out
}

// sphereStart is the mean of the units, made a unit itself.
func (j *job) sphereStart(units [][]float32, alpha float32, tol float64) []float32 {
	mean := make([]float32, len(units[0]))
	for _, u := range units {
		for e, x := range u {
			mean[e] = j.r(mean[e] + j.r(alpha*x))
		}
	}
	n := norm(mean, half.F32)
	if float64(n) < tol {
		return append(mean[:0], units[0]...)
	}
	return j.over(mean, n)
}

// sphereStep moves mean towards the units, along tangent, which it sets. It is false
// if mean stays.
func (j *job) sphereStep(mean, tangent []float32, units [][]float32, alpha float32, tol float64) bool {
	clear(tangent)
	for _, u := range units {
		d := clamp(j.r(dot(mean, u)), -1, 1)
		theta := j.r(acos(d))
		if float64(theta) < tol {
			continue
		}
		w := j.r(alpha * j.r(theta/j.r(sin(theta))))
		for e, x := range u {
			tangent[e] = j.r(tangent[e] + j.r(w*j.r(x-j.r(d*mean[e]))))
		}
	}
	n := norm(tangent, half.F32)
	if float64(n) < tol {
		return false
	}
	c, s := j.r(cos(n)), j.r(sin(n))
	for e, x := range mean {
		mean[e] = j.r(j.r(c*x) + j.r(s*j.r(tangent[e]/n)))
	}
	if n = norm(mean, half.F32); float64(n) > tol {
		for e, x := range mean {
			mean[e] = j.r(x / n)
		}
	}
	return true
}

// dot is Σ x·y, in float64: the library that torch calls has an order of its own.
func dot(x, y []float32) float32 {
	var s float64
	for e, v := range x {
		s += float64(float64(v) * float64(y[e]))
	}
	return float32(s)
}
