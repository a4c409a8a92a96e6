// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "math"

// nuslerpMethod turns one model towards another, or with a base the difference of one
// towards that of the other.
//
//	t = w_1/(w_0 + w_1), ½ if |w_0 + w_1| < 1e-6;  v_i = x_i − base
//	cos θ = u_0·u_1, u_i = v_i/max(‖v_i‖, 1e-7)
//	y = base + (1−t)·v_0 + t·v_1 if |sin θ| < 1e-8, else
//	y = base + (sin((1−t)·θ)·v_0 + sin(t·θ)·v_1)/sin θ
//
// Vectors are whole tensors; without nuslerp_flatten they are along the last
// dimension, or with nuslerp_row_wise along the first one. A tensor that only one input
// has is that.
func nuslerpMethod() *Method {
	return &Method{
		Name: "nuslerp",
		Global: []Parameter{
			{Name: "nuslerp_row_wise", Default: 0}, {Name: "nuslerp_flatten", Default: 1},
		},
		PerModel: []Parameter{{Name: "weight", Required: true}},
		Base:     BaseOptional,
		Crops:    CropCommon,
		New:      newNuslerp,
	}
}

func newNuslerp(p Problem) (Job, error) {
	if len(p.Inputs) == 1 {
		return copyOf(p, 0), nil
	}
	others := p.Others()
	if len(others) != 2 {
		return nil, p.complain("nuslerp", "inputs: got %s, want two models besides a base", p.inventory())
	}
	w, err := p.weightsOf("nuslerp", others)
	if err != nil {
		return nil, err
	}
	t := 0.5
	if sum := w[0] + w[1]; !(math.Abs(sum) < 1e-6) {
		t = w[1] / sum
	}
	two := combination{p: p, inputs: others, base: p.Base, solve: func(coef []float64, g gram) error {
		nuslerp(coef, g, t)
		return nil
	}}
	switch {
	case p.Global.orElse("nuslerp_flatten", 1) != 0:
		return two.overTensor(), nil
	case p.Global.orElse("nuslerp_row_wise", 0) != 0:
		return two.overColumns(), nil
	}
	return two.overRows(), nil
}

// nuslerp solves [nuslerpMethod] for vectors 0 and 1.
func nuslerp(coef []float64, g gram, t float64) {
	const least, flat = 1e-7, 1e-8
	angle := math.Acos(g.cosine(0, 1, least))
	if math.Abs(math.Sin(angle)) < flat {
		coef[0], coef[1] = 1-t, t
		return
	}
	turn(coef, angle, t)
}
