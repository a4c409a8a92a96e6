// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "math"

// karcherMethod is the mean of directions on a sphere, times the mean length. The base
// is an input like the others, the whole tensor one vector. With α = 1/K over the K
// inputs that are longer than tol, u_i = x_i/‖x_i‖ of these, and u = Σ α·u_i divided by
// its length, or the first u_i if that is less than tol:
//
//	θ_i = arccos(u·u_i);  T = Σ α·θ_i/sin θ_i · (u_i − (u·u_i)·u) over θ_i ≥ tol
//	u ← cos‖T‖·u + sin‖T‖·T/‖T‖, divided by its length if that is more than tol
//
// up to max_iter times, or until ‖T‖ < tol. Then y = u · Σ ‖x_i‖/N over all N inputs,
// or 0 if all are too short. One input is the output.
//
// u is kept as coefficients of the u_i, in float64, and dot products come from those of
// the inputs.
//
// Karcher, "Riemannian center of mass and mollifier smoothing", 1977; arXiv:2603.04972.
func karcherMethod() *Method {
	return &Method{
		Name:      "karcher",
		Reference: "arXiv:2603.04972",
		Global:    []Parameter{{Name: "max_iter", Default: 10}, {Name: "tol", Default: 1e-5}},
		Base:      BaseInput,
		Crops:     CropCommon,
		New:       newKarcher,
	}
}

func newKarcher(p Problem) (Job, error) {
	switch len(p.Inputs) {
	case 0:
		return nil, p.complain("karcher", "got no models, want at least one")
	case 1:
		return copyOf(p, 0), nil
	}
	rounds, tol := p.Global.orElse("max_iter", 10), p.Global.orElse("tol", 1e-5)
	if rounds != math.Trunc(rounds) || math.Abs(rounds) > math.MaxInt32 {
		return nil, p.complain("karcher", "parameter max_iter: got %v, want a whole number", rounds)
	}
	return combination{p: p, inputs: p.everyInput(), base: -1, solve: func(coef []float64, g gram) error {
		karcher(coef, g, int(rounds), tol)
		return nil
	}}.overTensor(), nil
}

// karcher solves [karcherMethod].
func karcher(coef []float64, g gram, rounds int, tol float64) {
	norm := g.norms(len(coef))
	var valid []int
	var scale float64
	for i, n := range norm {
		if n > tol {
			valid = append(valid, i)
		}
		scale += float64(n / float64(len(norm)))
	}
	clear(coef)
	if len(valid) == 0 {
		return
	}
	u := sphericalMean(g.directions(valid), len(valid), rounds, tol)
	for i, k := range valid {
		coef[k] = scale * u[i] / norm[k]
	}
}

// directions is the matrix of some of the vectors, divided by their lengths.
func (g gram) directions(list []int) gram {
	var h gram
	for a, i := range list {
		for _, j := range list[:a] {
			h = append(h, g.cosine(i, j, 0))
		}
		h = append(h, 1)
	}
	return h
}

// sphericalMean are the coefficients of the mean of n directions.
func sphericalMean(h gram, n, rounds int, tol float64) []float64 {
	u := make([]float64, n)
	for i := range u {
		u[i] = 1 / float64(n)
	}
	if size := math.Sqrt(h.square(u)); size < tol {
		clear(u)
		u[0] = 1
	} else {
		multiply(u, 1/size)
	}
	for range rounds {
		tangent := h.tangent(u, tol)
		size := math.Sqrt(h.square(tangent))
		if size < tol || size == 0 {
			break
		}
		sine, cosine := math.Sincos(size)
		for i, t := range tangent {
			u[i] = float64(cosine*u[i]) + float64(sine*(t/size))
		}
		if size := math.Sqrt(h.square(u)); size > tol {
			multiply(u, 1/size)
		}
	}
	return u
}

// tangent is the mean of the directions, seen from u.
func (h gram) tangent(u []float64, tol float64) []float64 {
	sum := make([]float64, len(u))
	one := make([]float64, len(u))
	for i := range u {
		clear(one)
		one[i] = 1
		d := min(max(h.dot(u, one), -1), 1)
		angle := math.Acos(d)
		if angle < tol || angle == 0 {
			continue
		}
		f := angle / math.Sin(angle) / float64(len(u))
		for k := range sum {
			sum[k] += float64(f * (one[k] - float64(d*u[k])))
		}
	}
	return sum
}

func multiply(x []float64, c float64) {
	for i := range x {
		x[i] *= c
	}
}
