// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math"
	"math/rand/v2"
	"testing"
)

// near fails if a result is farther from another than rounding.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if d := farthest(got, wide(want)); !(d <= 1e-6) {
		t.Errorf("%s: got %v, want %v: off by %.2g", what, got[:4], want[:4], d)
	}
}

// TestCombineAlgebra: what the formulas say about each other.
func TestCombineAlgebra(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 0))
	random := func() []float32 {
		x := make([]float32, 60)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	shape := []int{5, 12}
	x, y, z := random(), random(), random()

	half := newCombining("linear", shape, -1, [][]float32{x, y, z}, nil, .25, .5, 1).solve(t, 1)
	twice := newCombining("linear", shape, -1, [][]float32{x, y, z}, nil, .5, 1, 2).solve(t, 1)
	near(t, "linear with weights times 2", twice, half)

	for i, want := range [][]float32{x, y} {
		s := newCombining("slerp", shape, 0, [][]float32{x, y}, Values{"t": float64(i)})
		near(t, "slerp at an end", s.solve(t, 1), want)
	}
	s := newCombining("slerp", shape, 0, [][]float32{x, y}, Values{"t": .7}).solve(t, 1)
	n := newCombining("nuslerp", shape, -1, [][]float32{x, y}, nil, .3, .7).solve(t, 1)
	near(t, "nuslerp and slerp", n, s)
	u := newCombining("nuslerp", shape, -1, [][]float32{x, y}, nil, .5, -.5).solve(t, 1)
	v := newCombining("nuslerp", shape, -1, [][]float32{x, y}, nil, 1, 1).solve(t, 1)
	near(t, "nuslerp with weights that cancel", u, v)

	// Of equal inputs, the result is that.
	rows, columns := Values{"nuslerp_flatten": 0}, Values{"nuslerp_flatten": 0, "nuslerp_row_wise": 1}
	same, two := [][]float32{x, x, x}, [][]float32{x, x}
	for _, c := range []combining{
		newCombining("linear", shape, -1, same, nil, 1, 2, 3),
		newCombining("slerp", shape, 0, two, Values{"t": .4}),
		newCombining("nuslerp", shape, -1, two, nil, .3, .7),
		newCombining("nuslerp", shape, 0, same, nil, 0, .3, .7),
		newCombining("nuslerp", shape, -1, two, rows, .3, .7),
		newCombining("nuslerp", shape, -1, two, columns, .3, .7),
		newCombining("multislerp", shape, -1, same, nil, 1, 2, 3),
		newCombining("multislerp", shape, 2, same, nil, 1, 2),
		newCombining("karcher", shape, -1, same, nil),
		newCombining("model_stock", shape, 0, same, nil),
		newCombining("model_stock", shape, 0, same, Values{"filter_wise": 1}),
		newCombining("ram", shape, 0, same, nil),
		newCombining("ramplus_tl", shape, 0, same, nil),
		newCombining("nearswap", shape, 0, two, Values{"t": .1}),
	} {
		near(t, c.method+" of equal inputs", c.solve(t, 1), x)
	}
}

// TestCombineEdges are vectors without a direction, and those that are opposite.
func TestCombineEdges(t *testing.T) {
	x := []float32{3, -1, 2, 5}
	opposite := []float32{-3, 1, -2, -5}
	third := []float32{-1, 1. / 3, -2. / 3, -5. / 3} // opposite within rounding
	zero := make([]float32, 4)
	shape := []int{2, 2}
	rows := Values{"nuslerp_flatten": 0}
	mix := func(a, b float32, u, v []float32) []float32 {
		y := make([]float32, len(u))
		for i := range y {
			y[i] = a*u[i] + b*v[i]
		}
		return y
	}
	for _, tt := range []struct {
		combining
		want []float32
	}{
		{newCombining("slerp", shape, 0, [][]float32{x, opposite}, Values{"t": .25}), mix(.75, .25, x, opposite)},
		{newCombining("slerp", shape, 0, [][]float32{zero, zero}, Values{"t": .25}), zero},
		// 0 has no direction: the angle is a right one.
		{newCombining("slerp", shape, 0, [][]float32{x, zero}, Values{"t": .5}), mix(math.Sqrt2/2, 0, x, zero)},
		{newCombining("nuslerp", shape, -1, [][]float32{x, opposite}, nil, .75, .25), mix(.75, .25, x, opposite)},
		{newCombining("nuslerp", shape, -1, [][]float32{x, opposite}, rows, .75, .25), mix(.75, .25, x, opposite)},
		{newCombining("nuslerp", shape, -1, [][]float32{zero, zero}, rows, .75, .25), zero},
		{newCombining("multislerp", shape, -1, [][]float32{x, opposite}, nil, .5, .5), zero},
		{newCombining("multislerp", shape, -1, [][]float32{zero, zero, x}, nil, .5, .25, .25), mix(.25, 0, x, x)},
		{newCombining("multislerp", shape, 2, [][]float32{x, x, x}, nil, .5, .5), x},
		{newCombining("karcher", shape, -1, [][]float32{zero, zero}, nil), zero},
		{newCombining("karcher", shape, -1, [][]float32{zero, x}, nil), mix(.5, 0, x, x)},
		{newCombining("karcher", shape, -1, [][]float32{x, opposite}, nil), x},
		{newCombining("karcher", shape, -1, [][]float32{x, third}, nil), mix(2./3, 0, x, x)},
		{newCombining("model_stock", shape, 0, [][]float32{zero, x, opposite}, nil), zero},
		{newCombining("nearswap", shape, 0, [][]float32{x, zero}, Values{"t": 10}), zero},
		{newCombining("nearswap", shape, 0, [][]float32{x, zero}, Values{"t": 0}), x},
	} {
		near(t, tt.method, tt.solve(t, 1), tt.want)
	}
	// What is no number stays none.
	bad := []float32{float32(math.NaN()), 1, 2, 3}
	for _, c := range variants(shape, 1, rand.New(rand.NewPCG(1, 0))) {
		c.in[0] = bad
		if got := c.solve(t, 1); got[0] == got[0] {
			t.Errorf("%s with a NaN in input 0: got %v, want NaN", c.method, got[0])
		}
	}
}

// TestSlerpThreshold: directions whose dot product is above 0.9995 are on a line, those
// below it on an arc, which is longer from 0.
func TestSlerpThreshold(t *testing.T) {
	for _, tt := range []struct{ angle, want float64 }{
		{.0300, math.Cos(.0300 / 2)}, // cos .0300 = 0.99955
		{.0330, 1},                   // cos .0330 = 0.99946
		{math.Pi - .0300, math.Sin(.0300 / 2)},
		{math.Pi - .0330, 1},
	} {
		in := [][]float32{{1, 0}, {float32(math.Cos(tt.angle)), float32(math.Sin(tt.angle))}}
		y := newCombining("slerp", []int{2}, 0, in, Values{"t": .5}).solve(t, 1)
		if got := math.Hypot(float64(y[0]), float64(y[1])); math.Abs(got-tt.want) > 2e-5 {
			t.Errorf("directions at an angle of %v: got a length of %v, want %v", tt.angle, got, tt.want)
		}
	}
}
