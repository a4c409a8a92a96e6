// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/merge/method"
)

// Three tensors [2, 4] of the vectors below.
var (
	tensorB = []float32{0.5, -1, 0.25, 2, 1.5, -0.75, -2, 0.125}
	tensor1 = []float32{1, -1.25, 0.375, 1, 2.25, -0.6875, -2.375, 0.15625}
	tensor2 = []float32{0.1875, -1.5, 0.4375, 2.25, 0.25, -0.59375, -2.4375, 0.03125}
)

// small is a merge of tensors [2, 4], the first of which is the base if base is 0.
func small(
	name string, base int, global method.Values, per map[string][]float64, in ...[]float32,
) ([]float32, error) {
	types := slices.Repeat([]half.DType{half.F32}, len(in))
	r := row{Method: name, Set: "x", Base: base, Global: global, Per: per, Inputs: make([]int, len(in))}
	out, _, err := Merge(&method.Method{Name: name}, r.problem([]int{2, 4}), types, in, NewTwister(42))
	return out, err
}

// TestVectors has results that were computed in float64 from the formulas.
func TestVectors(t *testing.T) {
	w37 := map[string][]float64{"weight": {.3, .7}}
	w64 := map[string][]float64{"weight": {.6, .4}}
	half64 := map[string][]float64{"weight": {.6, .4}, "density": {.5, .5}}
	crumbs := map[string][]float64{"weight": {.6, .4}, "density": {.5, .5}, "gamma": {.125, .125}}
	three := [][]float32{tensorB, tensor1, tensor2}
	two := three[1:]
	for _, c := range []struct {
		name   string
		base   int
		in     [][]float32
		global method.Values
		per    map[string][]float64
		want   []float64
	}{
		{
			"linear", -1, two,
			method.Values{"normalize": 1},
			w37,
			[]float64{
				.43125, -1.425, .41875, 1.875, .85, -.621875, -2.41875, .06875,
			},
		},
		{
			"linear", -1, two, nil,
			map[string][]float64{"weight": {1, .5}},
			[]float64{
				1.09375, -2, .59375, 2.125, 2.375, -.984375, -3.59375, .171875,
			},
		},
		{
			"slerp", 0,
			[][]float32{tensorB, tensor2},
			method.Values{"t": .35},
			nil,
			[]float64{
				.397680546, -1.19906967, .322195671, 2.12900029, 1.08090037, -.70866209, -2.19628505, .0938130728,
			},
		},
		{
			"nuslerp", -1, two,
			method.Values{"nuslerp_flatten": 1},
			w37,
			[]float64{
				.458343411, -1.49461246, .439280694, 1.96034566, .906105822, -.653630541, -2.53936323, .0730385086,
			},
		},
		{
			"nuslerp", -1, two, nil, w37,
			[]float64{
				.449643673, -1.47231608, .432704587, 1.93303277, .900396669, -.650409582, -2.52713364, .0726024022,
			},
		},
		{
			"nuslerp", -1, two,
			method.Values{"nuslerp_row_wise": 1},
			w37,
			[]float64{
				.434141159, -1.42732113, .418768995, 1.87857859, .855983674, -.622933086, -2.41886156, .0689289678,
			},
		},
		{
			"nuslerp", 0, three,
			method.Values{"nuslerp_flatten": 1},
			w37,
			[]float64{
				.478257004, -1.73200177, .545251051, 1.61898698, .583012566, -.531624639, -2.74425348, .0396256334,
			},
		},
		{
			"multislerp", -1, two,
			method.Values{"normalize_weights": 1, "eps": 1e-8},
			w37,
			[]float64{
				.446449204, -1.49768925, .440026501, 1.97769442, .87690694, -.652044018, -2.53936053, .0712077309,
			},
		},
		{
			"multislerp", 0, three,
			method.Values{"normalize_weights": 1, "eps": 1e-8},
			w37,
			[]float64{
				.401046671, -1.6874264, .523531957, 1.77681919, .474304449, -.543052777, -2.68023338, .035475189,
			},
		},
		{
			"karcher", -1,
			[][]float32{tensor1, tensor2, tensorB},
			method.Values{"max_iter": 10, "tol": 1e-5},
			nil,
			[]float64{
				.581808897, -1.30301301, .368333775, 1.84423809, 1.38621144, -.709383447, -2.36911397, .108679836,
			},
		},
		{
			"task_arithmetic", 0, three,
			method.Values{"lambda": .7},
			w64,
			[]float64{
				.6225, -1.245, .355, 1.65, 1.465, -.68, -2.28, .111875,
			},
		},
		{
			"ties", 0, three,
			method.Values{"lambda": 1, "normalize": 1},
			half64,
			[]float64{
				1, -1.5, .25, 1, .25, -.75, -2.4, .125,
			},
		},
		{
			"ties", 0, three,
			method.Values{"lambda": 1},
			half64,
			[]float64{
				.8, -1.2, .25, 1.4, 1, -.75, -2.4, .125,
			},
		},
		{
			"breadcrumbs", 0, three,
			method.Values{"lambda": 1},
			crumbs,
			[]float64{
				.675, -1.35, .25, 2.1, 1.95, -.75, -2.4, .125,
			},
		},
		{
			"breadcrumbs_ties", 0, three,
			method.Values{"lambda": 1},
			crumbs,
			[]float64{
				.8, -1.35, .25, 2.1, 1.95, -.75, -2.4, .125,
			},
		},
		{
			"dare_linear", 0, three,
			method.Values{"lambda": 1, "rescale": 1},
			half64,
			[]float64{
				.5, -2.07368421, .435625, 2, 2.61375, -.75, -2.556875, -.0763157895,
			},
		},
		{
			"dare_ties", 0, three,
			method.Values{"lambda": 1, "rescale": 1},
			half64,
			[]float64{
				.5, -2.07368421, .435625, 2, 2.61375, -.75, -2.556875, -.0763157895,
			},
		},
		{
			"model_stock", 0, three, nil, nil,
			[]float64{
				.326582988, -.306331953, -.039028353, 2.69366805, 1.96244536, -.952319847, -1.24852628, .182805671,
			},
		},
		{
			"model_stock", 0, three,
			method.Values{"filter_wise": 1},
			nil,
			[]float64{
				.405444556, -.621778225, .0924075935, 2.37822178, 2.56993025, -1.21809448, -.261363346, .258741281,
			},
		},
		{
			"sce", 0, three,
			method.Values{"select_topk": 1},
			nil,
			[]float64{
				1, -1.38074811, .407687028, 1, .25, -.638469458, -2.40768703, .03125,
			},
		},
		{
			"sce", 0, three,
			method.Values{"select_topk": .5},
			nil,
			[]float64{
				1, -1.37817259, .25, 1, .25, -.75, -2, .125,
			},
		},
		{
			"ram", 0, three,
			method.Values{"epsilon": .1},
			nil,
			[]float64{
				.59375, -1.375, .40625, 1.625, 1.25, -.59375, -2.40625, .125,
			},
		},
		{
			"ramplus_tl", 0, three,
			method.Values{"epsilon": .1, "r": .1, "alpha": .2},
			nil,
			[]float64{
				.59375, -1.375, .40625, 1.625, 1.25, -.590625, -2.40625, .125,
			},
		},
		{
			"nearswap", 0,
			[][]float32{tensorB, tensor1},
			method.Values{"t": .1},
			nil,
			[]float64{
				.6, -1.1, .35, 1.9, 1.6, -.6875, -2.1, .15625,
			},
		},
		{
			"arcee_fusion", 0,
			[][]float32{tensorB, tensor1},
			nil, nil,
			[]float64{
				1, -1, .25, 1, 1.5, -.75, -2, .125,
			},
		},
		{
			"passthrough", -1,
			[][]float32{tensor1},
			nil,
			map[string][]float64{"scale": {.5}},
			[]float64{
				.5, -.625, .1875, .5, 1.125, -.34375, -1.1875, .078125,
			},
		},
	} {
		got, err := small(c.name, c.base, c.global, c.per, c.in...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for e, want := range c.want {
			if d := math.Abs(float64(got[e]) - want); d > 3e-6 {
				t.Errorf("%s %v, element %d: got %v, want %v", c.name, c.global, e, got[e], want)
			}
		}
	}
}

// TestRanked has the probabilities of the ranks of the first row of tensor1 − tensorB.
func TestRanked(t *testing.T) {
	for i, want := range []float64{.35, .45, .55, .65} {
		if got := ranked(4, .5, .15, half.F32)[i]; math.Abs(float64(got)-want) > 1e-6 {
			t.Errorf("rank %d: got %v, want %v", i+1, got, want)
		}
	}
	if got := ranked(1, .5, .15, half.F32)[0]; got != .5 {
		t.Errorf("one rank: got %v, want .5", got)
	}
}

func TestErrors(t *testing.T) {
	w := map[string][]float64{"weight": {1, 1}, "density": {.5, .9}, "epsilon": {.1, .2}}
	for _, c := range []struct {
		name string
		base int
		in   [][]float32
		want string
	}{
		{"core_space", 0, [][]float32{tensorB, tensor1}, "core_space"},
		{"ties", -1, [][]float32{tensorB, tensor1}, "no tensor of the base"},
		{"slerp", 0, [][]float32{tensorB, tensor1, tensor2}, "got 2 tensors besides the base"},
		{"nuslerp", -1, [][]float32{tensorB}, "got 1 tensors besides the base"},
		{"passthrough", -1, [][]float32{tensorB, tensor1}, "got 2 tensors, want 1"},
		{"della", 0, [][]float32{tensorB, tensor1, tensor2}, "density+epsilon"},
		{"linear", -1, [][]float32{tensorB, tensor1[:3]}, "got 3 elements"},
	} {
		_, err := small(c.name, c.base, nil, w, c.in...)
		if !errors.Is(err, fault.Config) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error of the configuration with %q", c.name, err, c.want)
		}
	}
	p := method.Problem{Shape: []int{1}, Base: -1, Inputs: make([]method.Input, 1)}
	m := &method.Method{Name: "passthrough"}
	if _, _, err := Merge(m, p, []half.DType{half.F64}, [][]float32{{1}}, nil); err == nil {
		t.Error("f64: got no error")
	}
}

// TestPromotion checks that inputs of two half types are merged in float32.
func TestPromotion(t *testing.T) {
	p := method.Problem{Shape: []int{1}, Base: -1, Inputs: []method.Input{
		{Params: method.Values{"weight": .5}}, {Params: method.Values{"weight": .5}},
	}}
	in := [][]float32{{1}, {1 + 1.0/1024}}
	out, dt, err := Merge(&method.Method{Name: "linear"}, p, []half.DType{half.BF16, half.F16}, in, nil)
	if err != nil || dt != half.F32 || out[0] != 1+1.0/2048 {
		t.Errorf("got %v %s %v, want %v f32", out, dt, err, 1+1.0/2048)
	}
}

// TestOnlyOne checks what becomes of an optional tensor of one model, and of one
// without elements.
func TestOnlyOne(t *testing.T) {
	for _, name := range []string{"slerp", "nuslerp", "arcee_fusion", "nearswap", "model_stock"} {
		p := method.Problem{Shape: []int{1}, Optional: true, Inputs: make([]method.Input, 1)}
		m := &method.Method{Name: name}
		if out, _, err := Merge(m, p, []half.DType{half.BF16}, [][]float32{{3}}, nil); err != nil || out[0] != 3 {
			t.Errorf("%s: got %v %v, want the base", name, out, err)
		}
	}
	for name, r := range rules() {
		p := method.Problem{Shape: []int{0, 4}, Inputs: make([]method.Input, 2)}
		types := []half.DType{half.BF16, half.BF16}
		out, dt, err := Merge(&method.Method{Name: name}, p, types, [][]float32{{}, {}}, nil)
		if len(out) != 0 || dt != r.result(half.BF16) || err != nil {
			t.Errorf("%s: got %v %s %v, want nothing", name, out, dt, err)
		}
	}
}

// TestBytes checks that no method allocates more than Bytes says.
func TestBytes(t *testing.T) {
	for name := range rules() {
		for _, others := range []int{0, 1, 2, 4} {
			for _, dt := range []half.DType{half.F32, half.BF16} {
				checkBytes(t, name, others, dt)
			}
		}
	}
}

// checkBytes merges so many tensors and a base.
func checkBytes(t *testing.T, name string, others int, dt half.DType) {
	const n = 1 << 14
	m := &method.Method{Name: name}
	p := method.Problem{Shape: []int{128, n / 128}, Global: method.Values{
		"t": .5, "lambda": .5, "normalize": 1, "rescale": 1, "select_topk": .5, "max_iter": 9,
		"filter_wise": 1, "nuslerp_row_wise": 1,
	}}
	var in [][]float32
	g := NewTwister(1)
	for range others + 1 {
		x := make([]float32, n)
		for e := range x {
			x[e] = round(g.Float32()-.5, dt)
		}
		in = append(in, x)
		p.Inputs = append(p.Inputs, method.Input{Params: method.Values{
			"weight": .5, "density": .5, "epsilon": .1, "scale": 2,
		}})
	}
	types := slices.Repeat([]half.DType{dt}, len(in))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := Merge(m, p, types, in, NewTwister(1))
	runtime.ReadMemStats(&after)
	// What was allocated in all is at least the peak.
	used, limit := int64(after.TotalAlloc-before.TotalAlloc), Bytes(m, n, others+1)
	if err == nil && used > limit {
		t.Errorf("%s of %d in %s: got %d bytes, want %d at most", name, others+1, dt, used, limit)
	}
}
