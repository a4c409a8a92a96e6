// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "math"

// multislerpMethod is a mean direction with a mean length, the whole tensor being one
// vector.
//
//	v_i = x_i − base;  n_i = ‖v_i‖;  u_i = v_i/(n_i + eps);  m = Σ w_i·u_i
//	y = base + cos(eps)·m/‖m‖ · Σ w_i·n_i
//
// Weights are divided by their sum if normalize_weights. If ‖m‖ < eps, or is nothing
// but rounding, y = base + Σ w_i·v_i for two models, and an error for more. One model is
// the output; so is the base if it is alone.
//
// mergekit adds a step along τ = Σ w_i·(u_i − (u_i·m/‖m‖)·m/‖m‖), of length
// r = ‖τ‖ + eps. But Σ w_i·u_i is m, so τ is m − m: 0, or the rounding of it.
//
// Goddard, "Multi-SLERP", https://goddard.blog/posts/multislerp-wow-what-a-cool-idea.
func multislerpMethod() *Method {
	return &Method{
		Name:      "multislerp",
		Reference: "https://goddard.blog/posts/multislerp-wow-what-a-cool-idea",
		Global:    []Parameter{{Name: "normalize_weights", Default: 1}, {Name: "eps", Default: 1e-8}},
		PerModel:  []Parameter{{Name: "weight", Required: true}},
		Base:      BaseOptional,
		New:       newMultislerp,
	}
}

func newMultislerp(p Problem) (Job, error) {
	others := p.Others()
	switch {
	case len(others) == 1:
		return copyOf(p, others[0]), nil
	case len(p.Inputs) == 0:
		return nil, p.complain("multislerp", "got no models, want at least one")
	case len(others) == 0:
		return copyOf(p, p.Base), nil
	}
	w, err := p.weightsOf("multislerp", others)
	if err != nil {
		return nil, err
	}
	if p.Global.orElse("normalize_weights", 1) != 0 {
		var sum float64
		for _, x := range w {
			sum += x
		}
		if sum == 0 {
			return nil, p.complain("multislerp", "weights to divide by: got %v, whose sum is 0, want another "+
				"sum, or normalize_weights: false", w)
		}
		for i := range w {
			w[i] /= sum
		}
	}
	eps := p.Global.orElse("eps", 1e-8)
	return combination{p: p, inputs: others, base: p.Base, solve: func(coef []float64, g gram) error {
		if multislerp(coef, g, w, eps) {
			return nil
		}
		return p.complain("multislerp", "weighted directions of the models: got a sum of about 0, so no "+
			"direction, want other weights than %v", w)
	}}.overTensor(), nil
}

// multislerp solves [multislerpMethod]. It says whether there is a mean direction.
func multislerp(coef []float64, g gram, w []float64, eps float64) bool {
	clear(coef)
	norm := g.norms(len(w))
	var length, most float64 // Σ w·n, Σ |w|·‖u‖
	for i := range w {
		if norm[i] > 0 {
			coef[i] = w[i] / (norm[i] + eps) // of m
		}
		length += float64(w[i] * norm[i])
		most += math.Abs(float64(coef[i] * norm[i]))
	}
	squares := g.square(coef)
	if rounding := float64(len(w)) * 0x1p-50 * most * most; math.Sqrt(squares) < eps || squares <= rounding {
		copy(coef, w)
		return len(w) == 2
	}
	scale := math.Cos(eps) / math.Sqrt(squares) * length
	for i := range coef {
		coef[i] *= scale
	}
	return true
}
