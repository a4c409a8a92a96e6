// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "math"

// slerpMethod turns a base towards another model, the whole tensor being one vector.
//
//	d = u_0·u_1, u_i = v_i/‖v_i‖, or v_i if ‖v_i‖ ≤ 1e-8
//	y = (1−t)·v_0 + t·v_1 if |d| > 0.9995, else with θ = arccos d
//	y = sin((1−t)·θ)/sin θ · v_0 + sin(t·θ)/sin θ · v_1
//
// v_0 is the base. The coefficients are computed in float64 and rounded to float32. A
// tensor that only one of the two has is that.
//
// Shoemake, "Animating rotation with quaternion curves", 1985.
func slerpMethod() *Method {
	return &Method{
		Name:      "slerp",
		Reference: "Shoemake 1985",
		Global:    []Parameter{{Name: "t", Required: true}},
		Base:      BaseRequired,
		Crops:     CropCommon,
		New:       newSlerp,
	}
}

func newSlerp(p Problem) (Job, error) {
	if len(p.Inputs) == 1 {
		return copyOf(p, 0), nil
	}
	others := p.Others()
	if p.Base < 0 || len(others) != 1 {
		return nil, p.complain("slerp", "inputs: got %s, want the base and one other model", p.inventory())
	}
	t, err := p.globalOf("slerp", "t")
	if err != nil {
		return nil, err
	}
	two := combination{p: p, inputs: []int{p.Base, others[0]}, base: -1}
	two.solve = func(coef []float64, g gram) error {
		slerp(coef, g, t)
		return nil
	}
	return two.overTensor(), nil
}

// slerp solves [slerpMethod] for vectors 0 and 1.
func slerp(coef []float64, g gram, t float64) {
	const least, parallel = 1e-8, 0.9995
	d := g.cosine(0, 1, 0)
	if a, b := g.norm(0), g.norm(1); a <= least || b <= least {
		d = g.at(0, 1)
		for _, n := range []float64{a, b} {
			if n > least {
				d /= n
			}
		}
		d = min(max(d, -1), 1)
	}
	if math.Abs(d) > parallel {
		coef[0], coef[1] = 1-t, t
		return
	}
	turn(coef, math.Acos(d), t)
}

// turn sets the coefficients of spherical interpolation over an angle.
func turn(coef []float64, angle, t float64) {
	sine := math.Sin(angle)
	coef[0] = math.Sin((1-t)*angle) / sine
	coef[1] = math.Sin(t*angle) / sine
}
