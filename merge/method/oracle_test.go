// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pleach/kernel"
)

// The oracles of this file are the formulas again, on whole tensors in float64, one
// vector at a time and without dot products of inputs.

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func dotOf(x, y []float64) float64 {
	var s float64
	for i, v := range x {
		s += v * y[i]
	}
	return s
}

func normOf(x []float64) float64 { return math.Sqrt(dotOf(x, x)) }

// sumOf is Σ c_i·x_i.
func sumOf(c []float64, x ...[]float64) []float64 {
	y := make([]float64, len(x[0]))
	for i, v := range x {
		for e, a := range v {
			y[e] += c[i] * a
		}
	}
	return y
}

func minus(x, y []float64) []float64 { return sumOf([]float64{1, -1}, x, y) }
func times(x []float64, c float64) []float64 {
	return sumOf([]float64{c}, x)
}

func slerpOracle(v0, v1 []float64, t float64) []float64 {
	unit := func(v []float64) []float64 {
		if n := normOf(v); n > 1e-8 {
			return times(v, 1/n)
		}
		return v
	}
	d := dotOf(unit(v0), unit(v1))
	if math.Abs(d) > 0.9995 {
		return sumOf([]float64{1 - t, t}, v0, v1)
	}
	a := math.Acos(d)
	return sumOf([]float64{math.Sin(a-a*t) / math.Sin(a), math.Sin(a*t) / math.Sin(a)}, v0, v1)
}

func nuslerpOracle(v0, v1 []float64, t float64) []float64 {
	unit := func(v []float64) []float64 {
		u, n := slices.Clone(v), max(normOf(v), 1e-7)
		for i := range u {
			u[i] /= n
		}
		return u
	}
	a := math.Acos(min(max(dotOf(unit(v0), unit(v1)), -1), 1))
	if math.Abs(math.Sin(a)) < 1e-8 {
		return sumOf([]float64{1 - t, t}, v0, v1)
	}
	return times(sumOf([]float64{math.Sin((1 - t) * a), math.Sin(t * a)}, v0, v1), 1/math.Sin(a))
}

// multislerpOracle has the step along τ that the method does without.
func multislerpOracle(v [][]float64, w []float64, eps float64) []float64 {
	var unit [][]float64
	var length float64
	for i, x := range v {
		unit = append(unit, times(x, 1/(normOf(x)+eps)))
		length += w[i] * normOf(x)
	}
	m := sumOf(w, unit...)
	if normOf(m) < eps {
		return sumOf(w, v...)
	}
	m = times(m, 1/normOf(m))
	var tangents [][]float64
	for _, u := range unit {
		tangents = append(tangents, minus(u, times(m, dotOf(u, m))))
	}
	tau := sumOf(w, tangents...)
	r := normOf(tau) + eps
	return times(sumOf([]float64{math.Cos(r), math.Sin(r) / r}, m, tau), length)
}

func karcherOracle(x [][]float64, rounds int, tol float64) []float64 {
	var unit [][]float64
	var scale float64
	for _, v := range x {
		n := normOf(v)
		scale += n / float64(len(x))
		if n > tol {
			unit = append(unit, times(v, 1/n))
		}
	}
	if unit == nil {
		return make([]float64, len(x[0]))
	}
	alpha := slices.Repeat([]float64{1 / float64(len(unit))}, len(unit))
	u := sumOf(alpha, unit...)
	if n := normOf(u); n < tol {
		u = unit[0]
	} else {
		u = times(u, 1/n)
	}
	for range rounds {
		tangent := make([]float64, len(u))
		for i, v := range unit {
			d := min(max(dotOf(u, v), -1), 1)
			if a := math.Acos(d); a >= tol {
				tangent = sumOf([]float64{1, alpha[i] * a / math.Sin(a)}, tangent, minus(v, times(u, d)))
			}
		}
		n := normOf(tangent)
		if n < tol {
			break
		}
		u = sumOf([]float64{math.Cos(n), math.Sin(n) / n}, u, tangent)
		if n := normOf(u); n > tol {
			u = times(u, 1/n)
		}
	}
	return times(u, scale)
}

func stockOracle(x [][]float64, b []float64) []float64 {
	var cosines float64
	var pairs int
	for i := range x {
		for j := range i {
			p, q := minus(x[i], b), minus(x[j], b)
			cosines += min(max(dotOf(p, q)/max(normOf(p)*normOf(q), 1e-6), -1), 1)
			pairs++
		}
	}
	n, c := float64(len(x)), cosines/float64(pairs)
	ratio := n * c / (1 + (n-1)*c)
	mean := sumOf(slices.Repeat([]float64{1 / n}, len(x)), x...)
	return sumOf([]float64{ratio, 1 - ratio}, mean, b)
}

// ramOracle is ram, or ramplus_tl if r is not 0.
func ramOracle(x [][]float64, b []float64, eps, r, alpha float64) []float64 {
	counts := make([]float64, len(b))
	changed := func(i, e int) bool { return math.Abs(x[i][e]-b[e]) > eps }
	for e := range b {
		for i := range x {
			if changed(i, e) {
				counts[e]++
			}
		}
	}
	y := slices.Clone(b)
	for i := range x {
		var shared, unique float64
		for e := range b {
			if changed(i, e) && counts[e] > 1 {
				shared++
			} else if changed(i, e) {
				unique++
			}
		}
		lambda := 1 + r*min(max(shared/max(unique, eps), 0), alpha)
		for e := range b {
			if !changed(i, e) {
				continue
			}
			if counts[e] == 1 {
				y[e] += lambda * (x[i][e] - b[e])
			} else {
				y[e] += (x[i][e] - b[e]) / counts[e]
			}
		}
	}
	return y
}

// along applies f to every vector of tensors of a shape: vectors are rows, along the
// last dimension, or columns, along the first.
func along(shape []int, columns bool, f func(x ...[]float64) []float64, x ...[]float64) []float64 {
	n := len(x[0])
	length, stride := n, 1
	if len(shape) > 1 {
		length = shape[len(shape)-1]
		if columns {
			length, stride = shape[0], n/shape[0]
		}
	}
	y := make([]float64, n)
	for k := range n / length {
		at := func(i int) int {
			if columns && len(shape) > 1 {
				return i*stride + k
			}
			return k*length + i
		}
		var v [][]float64
		for _, t := range x {
			u := make([]float64, length)
			for i := range u {
				u[i] = t[at(i)]
			}
			v = append(v, u)
		}
		for i, a := range f(v...) {
			y[at(i)] = a
		}
	}
	return y
}

// oracle is what a problem should give.
func (c combining) oracle() []float64 {
	var x [][]float64
	var w []float64
	for _, k := range c.Others() {
		x = append(x, wide(c.in[k]))
		w = append(w, c.Inputs[k].Params["weight"])
	}
	var b []float64
	fromBase := x
	if c.Base >= 0 {
		b = wide(c.in[c.Base])
		fromBase = nil
		for _, v := range x {
			fromBase = append(fromBase, minus(v, b))
		}
	}
	onBase := func(y []float64) []float64 {
		if b == nil {
			return y
		}
		return sumOf([]float64{1, 1}, b, y)
	}
	switch c.method {
	case "linear":
		y := sumOf(w, x...)
		if c.Global.orElse("normalize", 1) != 0 {
			return times(y, 1/dotOf(w, slices.Repeat([]float64{1}, len(w))))
		}
		return y
	case "slerp":
		return slerpOracle(b, x[0], c.Global["t"])
	case "nuslerp":
		two := func(v ...[]float64) []float64 { return nuslerpOracle(v[0], v[1], w[1]/(w[0]+w[1])) }
		if c.Global.orElse("nuslerp_flatten", 1) != 0 {
			return onBase(two(fromBase...))
		}
		return onBase(along(c.Shape, c.Global["nuslerp_row_wise"] != 0, two, fromBase...))
	case "multislerp":
		if c.Global.orElse("normalize_weights", 1) != 0 {
			w = times(w, 1/dotOf(w, slices.Repeat([]float64{1}, len(w))))
		}
		return onBase(multislerpOracle(fromBase, w, c.Global.orElse("eps", 1e-8)))
	case "karcher":
		x = nil
		for _, v := range c.in {
			x = append(x, wide(v))
		}
		return karcherOracle(x, int(c.Global.orElse("max_iter", 10)), c.Global.orElse("tol", 1e-5))
	case "model_stock":
		if c.Global["filter_wise"] == 0 {
			return stockOracle(x, b)
		}
		return along(c.Shape, false, func(v ...[]float64) []float64 { return stockOracle(v[1:], v[0]) },
			append([][]float64{b}, x...)...)
	case "ram":
		return ramOracle(x, b, c.Global.orElse("epsilon", 1e-5), 0, 0)
	case "ramplus_tl":
		return ramOracle(x, b, c.Global.orElse("epsilon", 1e-5), c.Global.orElse("r", .1),
			c.Global.orElse("alpha", .2))
	case "nearswap":
		y := make([]float64, len(b))
		for i, a := range b {
			u := min(max(c.Global["t"]/max(math.Abs(a-x[0][i]), 1e-6), 0), 1)
			y[i] = u*x[0][i] + (1-u)*a
		}
		return y
	}
	return times(x[0], c.Inputs[0].Params["scale"])
}

// variants are problems of all methods on random inputs of a shape. Models lie around a
// base at a distance.
func variants(shape []int, spread float64, r *rand.Rand) []combining {
	n := 1
	for _, d := range shape {
		n *= d
	}
	in := make([][]float32, 4)
	for k := range in {
		in[k] = make([]float32, n)
		for i := range in[k] {
			in[k][i] = float32(r.NormFloat64())
			if k > 0 {
				in[k][i] = in[0][i] + float32(spread*r.NormFloat64()*float64(r.IntN(2)))
			}
		}
	}
	b, two, three := in[:1], in[1:3], in[1:]
	withBase := append(slices.Clone(two), b...)
	middle := [][]float32{in[1], in[0], in[2]}
	all := append(slices.Clone(three), b...)
	scaled := newCombining("passthrough", shape, -1, b, nil)
	scaled.Inputs[0].Params["scale"] = -1.7
	rows := Values{"nuslerp_flatten": 0}
	columns := Values{"nuslerp_flatten": 0, "nuslerp_row_wise": 1}
	return []combining{
		newCombining("linear", shape, -1, three, nil, .3, 1.7, -.4),
		newCombining("linear", shape, -1, in, Values{"normalize": 0}, .3, 1.7, -.4, .25),
		newCombining("slerp", shape, 1, [][]float32{in[1], in[0]}, Values{"t": .35}),
		newCombining("nuslerp", shape, -1, two, nil, .3, .7),
		newCombining("nuslerp", shape, 1, middle, nil, .3, 0, .7),
		newCombining("nuslerp", shape, -1, two, rows, .3, .7),
		newCombining("nuslerp", shape, 2, withBase, rows, .3, .7),
		newCombining("nuslerp", shape, -1, two, columns, .3, .7),
		newCombining("nuslerp", shape, 1, middle, columns, .3, 0, .7),
		newCombining("multislerp", shape, -1, three, nil, .3, .7, .2),
		newCombining("multislerp", shape, 3, all, Values{"normalize_weights": 0, "eps": .01}, .3, .7, .2),
		newCombining("karcher", shape, 3, all, nil),
		newCombining("karcher", shape, -1, three, Values{"max_iter": 2, "tol": 1e-7}),
		newCombining("model_stock", shape, 0, in, nil),
		newCombining("model_stock", shape, 3, all, Values{"filter_wise": 1}),
		newCombining("ram", shape, 0, in, Values{"epsilon": .1 * spread}),
		newCombining("ramplus_tl", shape, 3, all, Values{"epsilon": .1 * spread, "r": .3, "alpha": .7}),
		newCombining("nearswap", shape, 1, [][]float32{in[1], in[0]}, Values{"t": .1 * spread}),
		scaled,
	}
}

// TestCombineOracles compares with the formulas in float64 on shapes with vectors of any
// length, and with tensors of several chunks. Those of many vectors have vectors long
// enough that none are nearly opposite: float32 cannot be right there.
func TestCombineOracles(t *testing.T) {
	const seed, large = 3, 1_000_000
	r := rand.New(rand.NewPCG(seed, 0))
	for _, shape := range [][]int{
		{},
		{1},
		{37},
		{1, 53},
		{53, 1},
		{5, 7},
		{3, 4, 5},
		{64, 33},
		{3, 1, 9},
		{3, 20000},
		{3000, 20},
		{40000},
		{70, 5000},
		{16, 140001},
	} {
		for _, spread := range []float64{.02, .5, 2} {
			n := (&Problem{Shape: shape}).Len()
			if n > large/10 && spread != .5 {
				continue
			}
			for i, c := range variants(shape, spread, r) {
				if n > large && c.Global["nuslerp_row_wise"] == 0 {
					continue // nothing that smaller tensors do not have
				}
				want := c.oracle()
				if d := farthest(c.solve(t, 2), want); !(d <= 1e-6) {
					t.Errorf("%s (variant %d, seed %d) %v %v, spread %v: off by %.2g", c.method, i, seed, shape, c.Global,
						spread, d)
				}
			}
		}
	}
}

// solveShuffled is the output if chunks are visited in any order, with scratch full of
// NaN, and only the inputs that a pass needs.
func solveShuffled(t *testing.T, c combining, r *rand.Rand) []float32 {
	t.Helper()
	j, err := c.job()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, c.Len())
	scratch := make([]float32, j.Scratch())
	for {
		p, err := j.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			return out
		}
		list := slices.Clone(p.Chunks)
		if list == nil {
			list = r.Perm(Chunks(len(out), j.Chunk()))
		}
		r.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
		for _, i := range list {
			for k := range scratch {
				scratch[k] = float32(math.NaN())
			}
			if err := p.Do(p.chunk(i, j.Chunk(), c.in, out, scratch)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCombineSameBits: neither the number of workers nor the order of chunks changes a
// bit, and inputs stay as they are.
func TestCombineSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	for _, shape := range [][]int{{70, 700}, {9000, 11}, {2, 31, 900}, {3, 150000}, {46, 131072}, {50001}} {
		for i, c := range variants(shape, .3, r) {
			if c.Len() > 1_000_000 && c.Global["nuslerp_row_wise"] == 0 {
				continue
			}
			before := make([][]float32, len(c.in))
			for k, x := range c.in {
				before[k] = slices.Clone(x)
			}
			want := c.solve(t, 1)
			for _, got := range [][]float32{c.solve(t, 2), c.solve(t, 8), solveShuffled(t, c, r)} {
				if k := firstOther(got, want); k >= 0 {
					t.Errorf("%s (variant %d) %v: element %d: got %v, want %v", c.method, i, shape, k, got[k], want[k])
				}
			}
			for k, x := range c.in {
				if firstOther(x, before[k]) >= 0 {
					t.Errorf("%s (variant %d) %v: input %d changed", c.method, i, shape, k)
				}
			}
		}
	}
}

// TestCombineLevels: every set of instructions gives the same bits.
func TestCombineLevels(t *testing.T) {
	for i, c := range variants([]int{7, 300, 9}, .3, rand.New(rand.NewPCG(6, 0))) {
		want := c.solve(t, 1)
		for _, l := range kernel.Levels() {
			c.Level = l
			got := c.solve(t, 1)
			if k := firstOther(got, want); k >= 0 {
				t.Errorf("%s (variant %d) on %v: element %d: got %v, want %v", c.method, i, l, k, got[k], want[k])
			}
		}
	}
}

// firstOther is the first element whose bits differ, −1 for none.
func firstOther(x, y []float32) int {
	for i, v := range x {
		if math.Float32bits(v) != math.Float32bits(y[i]) {
			return i
		}
	}
	return -1
}

// TestCombineMemory: a job says an upper bound of what it holds, which hardly grows with
// a tensor.
func TestCombineMemory(t *testing.T) {
	for _, c := range variants([]int{1, 1}, 1, rand.New(rand.NewPCG(1, 0))) {
		for _, shape := range [][]int{{128256, 8192}, {8192, 28672}, {1 << 30}, {64, 2048, 1408}} {
			c.Shape = shape
			j, err := c.job()
			if err != nil {
				t.Fatal(err)
			}
			if m := j.Memory(); m < 0 || m > 96<<20 {
				t.Errorf("%s %v %v: got %d bytes, want less", c.method, shape, c.Global, m)
			}
			if j.Chunk() < 1 || j.Chunk() > 1<<20 || j.Scratch() > 1<<20 {
				t.Errorf("%s %v %v: got chunks of %d and scratch of %d elements", c.method, shape, c.Global,
					j.Chunk(), j.Scratch())
			}
		}
	}
}

// TestCombineEmpty: a tensor of no elements is no mistake.
func TestCombineEmpty(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, shape := range [][]int{{0}, {0, 3}, {3, 0}} {
		for _, c := range variants(shape, 1, r) {
			if got := c.solve(t, 2); len(got) != 0 {
				t.Errorf("%s %v: got %v, want nothing", c.method, shape, got)
			}
		}
	}
}
