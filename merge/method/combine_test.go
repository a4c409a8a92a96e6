// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"pleach/internal/fault"
	"pleach/kernel"
)

// combining is a tensor to combine, with its inputs.
type combining struct {
	method string
	Problem
	in [][]float32
}

// newCombining is a problem on inputs of a shape, of which one may be the base. Weights
// are per input.
func newCombining(method string, shape []int, base int, in [][]float32, global Values,
	weights ...float64,
) combining {
	c := combining{method, Problem{
		Name: "model.norm.weight", Shape: shape, Base: base, Global: global, Level: kernel.Portable,
	}, in}
	number := 0
	for i := range in {
		input := Input{Model: fmt.Sprintf("m%d", i), Number: -1, Params: Values{}}
		if i != base {
			input.Number = number
			number++
		}
		if i < len(weights) && i != base {
			input.Params["weight"] = weights[i]
		}
		c.Inputs = append(c.Inputs, input)
	}
	return c
}

// job begins the problem.
func (c combining) job() (Job, error) {
	m, ok := Find(c.method)
	if !ok {
		return nil, fmt.Errorf("no method %q", c.method)
	}
	return m.New(c.Problem)
}

// solve is the output, with so many workers.
func (c combining) solve(t testing.TB, workers int) []float32 {
	t.Helper()
	j, err := c.job()
	if err != nil {
		t.Fatalf("%s: %v", c.method, err)
	}
	out := make([]float32, c.Len())
	if err := Solve(j, c.in, out, workers); err != nil {
		t.Fatalf("%s: %v", c.method, err)
	}
	return out
}

// farthest is the largest difference of a result from what it should be, by the
// largest that it should be.
func farthest(got []float32, want []float64) float64 {
	var most, size float64
	for i, w := range want {
		most = max(most, math.Abs(float64(got[i])-w))
		size = max(size, math.Abs(w))
	}
	if most == 0 {
		return 0
	}
	return most / size
}

// TestCombineVectors compares with numbers computed by hand, in float64.
func TestCombineVectors(t *testing.T) {
	b := []float32{0.5, -1, 0.25, 2, 1.5, -0.75, -2, 0.125}
	x := []float32{1, -1.25, 0.375, 1, 2.25, -0.6875, -2.375, 0.15625}
	y := []float32{0.1875, -1.5, 0.4375, 2.25, 0.25, -0.59375, -2.4375, 0.03125}
	shape := []int{2, 4}
	two, three := [][]float32{x, y}, [][]float32{x, y, b}
	for _, tt := range []struct {
		combining
		want string
	}{
		{
			newCombining("linear", shape, -1, two, nil, .3, .7),
			".43125 -1.425 .41875 1.875 .85 -.621875 -2.41875 .06875",
		},
		{
			newCombining("linear", shape, -1, two, Values{"normalize": 0}, 1, .5),
			"1.09375 -2 .59375 2.125 2.375 -.984375 -3.59375 .171875",
		},
		{
			newCombining("slerp", shape, 0, [][]float32{b, y}, Values{"t": .35}),
			".397680546 -1.19906967 .322195671 2.12900029 1.08090037 -.70866209 -2.19628505 .0938130728",
		},
		{
			newCombining("nuslerp", shape, -1, two, nil, .3, .7),
			".458343411 -1.49461246 .439280694 1.96034566 .906105822 -.653630541 -2.53936323 .0730385086",
		},
		{
			newCombining("nuslerp", shape, -1, two, Values{"nuslerp_flatten": 0}, .3, .7),
			".449643673 -1.47231608 .432704587 1.93303277 .900396669 -.650409582 -2.52713364 .0726024022",
		},
		{
			newCombining("nuslerp", shape, -1, two, Values{"nuslerp_flatten": 0, "nuslerp_row_wise": 1}, .3, .7),
			".434141159 -1.42732113 .418768995 1.87857859 .855983674 -.622933086 -2.41886156 .0689289678",
		},
		{
			newCombining("nuslerp", shape, 2, three, nil, .3, .7),
			".478257004 -1.73200177 .545251051 1.61898698 .583012566 -.531624639 -2.74425348 .0396256334",
		},
		{
			newCombining("multislerp", shape, -1, two, nil, .3, .7),
			".446449204 -1.49768925 .440026501 1.97769442 .87690694 -.652044018 -2.53936053 .0712077309",
		},
		{
			newCombining("multislerp", shape, 2, three, nil, .3, .7),
			".401046671 -1.6874264 .523531957 1.77681919 .474304449 -.543052777 -2.68023338 .035475189",
		},
		{
			newCombining("karcher", shape, 2, three, nil),
			".581808897 -1.30301301 .368333775 1.84423809 1.38621144 -.709383447 -2.36911397 .108679836",
		},
		{
			newCombining("model_stock", shape, 2, three, nil),
			".326582988 -.306331953 -.039028353 2.69366805 1.96244536 -.952319847 -1.24852628 .182805671",
		},
		{
			newCombining("model_stock", shape, 2, three, Values{"filter_wise": 1}),
			".405444556 -.621778225 .0924075935 2.37822178 2.56993025 -1.21809448 -.261363346 .258741281",
		},
		{
			newCombining("ram", shape, 2, three, Values{"epsilon": .1}),
			".59375 -1.375 .40625 1.625 1.25 -.59375 -2.40625 .125",
		},
		{
			newCombining("ramplus_tl", shape, 2, three, Values{"epsilon": .1}),
			".59375 -1.375 .40625 1.625 1.25 -.590625 -2.40625 .125",
		},
		{
			newCombining("nearswap", shape, 0, [][]float32{b, x}, Values{"t": .1}),
			".6 -1.1 .35 1.9 1.6 -.6875 -2.1 .15625",
		},
	} {
		var want []float64
		for _, s := range strings.Fields(tt.want) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, v)
		}
		if d := farthest(tt.solve(t, 1), want); d > 2e-7 {
			t.Errorf("%s %v: got %v, want %v: off by %.2g", tt.method, tt.Global, tt.solve(t, 1), want, d)
		}
	}
}

// TestCombineGoldens compares with tensors that mergekit made. Methods that work on
// elements have its bits, the others agree within rounding: the norms and angles of
// mergekit are float32.
func TestCombineGoldens(t *testing.T) {
	file, err := os.Open("testdata/combine.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	var c combining
	var exact bool
	cases := map[string]int{}
	each := map[string][]string{}
	for lines.Scan() {
		word := strings.Fields(lines.Text())
		switch word[0] {
		case "case":
			c = combining{word[1], Problem{Name: word[1], Global: Values{}, Level: kernel.Portable}, nil}
			exact = word[2] == "exact"
			c.Base = int(number(t, word[3]))
			for _, d := range word[4:] {
				c.Shape = append(c.Shape, int(number(t, d)))
			}
			clear(each)
		case "global":
			c.Global[word[1]] = number(t, word[2])
		case "input":
			each[word[1]] = word[2:]
		case "in":
			p := Values{}
			for name, list := range each {
				p[name] = number(t, list[len(c.in)])
			}
			c.Inputs = append(c.Inputs, Input{Params: p})
			c.in = append(c.in, floats(t, word[1:]))
		case "out":
			cases[c.method]++
			sameAsGolden(t, c, floats(t, word[1:]), exact)
		}
	}
	if len(cases) != len(combinations()) {
		t.Errorf("methods with a golden: got %v, want all of %d", cases, len(combinations()))
	}
}

func sameAsGolden(t *testing.T, c combining, want []float32, exact bool) {
	t.Helper()
	got := c.solve(t, 1)
	wide := make([]float64, len(want))
	for i, w := range want {
		wide[i] = float64(w)
		if exact && math.Float32bits(got[i]) != math.Float32bits(w) {
			t.Errorf("%s %v: element %d: got %v, want %v", c.method, c.Global, i, got[i], w)
			return
		}
	}
	if d := farthest(got, wide); d > 6e-7 {
		t.Errorf("%s %v %v: off by %.2g", c.method, c.Shape, c.Global, d)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func floats(t *testing.T, words []string) []float32 {
	t.Helper()
	x := make([]float32, len(words))
	for i, w := range words {
		b, err := strconv.ParseUint(w, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		x[i] = math.Float32frombits(uint32(b))
	}
	return x
}

// TestCombineMistakes: what cannot be combined is an error for the user that says why.
func TestCombineMistakes(t *testing.T) {
	x, y, z := []float32{1, 2, 3}, []float32{-1, -2, -3}, []float32{0, 0, 0}
	shape := []int{3}
	for _, tt := range []struct {
		combining
		want string
	}{
		{newCombining("linear", shape, -1, nil, nil), "at least one"},
		{newCombining("linear", shape, -1, [][]float32{x, y}, nil, 1, -1), "whose sum is 0"},
		{newCombining("linear", shape, -1, [][]float32{x, y}, nil, 1), "weight of m1: got none"},
		{newCombining("linear", shape, 1, [][]float32{x, y}, nil, 1), "because it is base_model"},
		{newCombining("slerp", shape, 0, [][]float32{x, y}, nil), "parameter t"},
		{newCombining("slerp", shape, -1, [][]float32{x, y}, Values{"t": 0}), "no base and 2 other"},
		{newCombining("slerp", shape, 0, [][]float32{x, y, z}, Values{"t": 0}), "the base and 2 other"},
		{newCombining("nuslerp", shape, 0, [][]float32{x, y}, nil, 1, 1), "want two models"},
		{newCombining("nuslerp", shape, -1, [][]float32{x, y, z}, nil, 1, 1, 1), "want two models"},
		{newCombining("nuslerp", shape, -1, [][]float32{x, y}, nil, 1), "weight of m1"},
		{newCombining("multislerp", shape, -1, nil, nil), "at least one"},
		{newCombining("multislerp", shape, -1, [][]float32{x, y}, nil, 1, -1), "whose sum is 0"},
		{newCombining("multislerp", shape, -1, [][]float32{x, y, z}, nil, 1, 1, 1), "no direction"},
		{newCombining("multislerp", shape, 2, [][]float32{z, z, z, z}, nil, 1, 1, 1, 1), "no direction"},
		{newCombining("multislerp", shape, -1, [][]float32{x, y}, nil, 1), "weight of m1"},
		{newCombining("karcher", shape, -1, nil, nil), "at least one"},
		{newCombining("karcher", shape, -1, [][]float32{x, y}, Values{"max_iter": 2.5}), "whole number"},
		{newCombining("karcher", shape, -1, [][]float32{x, y}, Values{"max_iter": math.NaN()}), "whole number"},
		{newCombining("model_stock", shape, 0, [][]float32{x, y}, nil), "at least two"},
		{newCombining("model_stock", shape, -1, [][]float32{x, y}, nil), "the base and"},
		{newCombining("nearswap", shape, 0, [][]float32{x, y}, nil), "parameter t"},
		{newCombining("nearswap", shape, -1, [][]float32{x, y}, Values{"t": 0}), "no base"},
		{newCombining("nearswap", shape, 0, [][]float32{x}, Values{"t": 0}), "0 other"},
		{newCombining("ram", shape, -1, [][]float32{x, y}, nil), "no base"},
		{newCombining("ramplus_tl", shape, -1, [][]float32{x, y}, nil), "no base"},
		{newCombining("passthrough", shape, 1, [][]float32{x, y}, nil), "got 2"},
	} {
		j, err := tt.job()
		if err == nil {
			err = Solve(j, tt.in, make([]float32, tt.Len()), 1)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, fault.Config) ||
			!strings.Contains(err.Error(), "model.norm.weight") {
			t.Errorf("%s of %d inputs, base %d: got error %v, want one of the configuration with %q", tt.method,
				len(tt.in), tt.Base, err, tt.want)
		}
	}
	two := newCombining("linear", shape, -1, [][]float32{x, y}, nil)
	if _, err := two.job(); err == nil || !strings.Contains(err.Error(), "of m0") ||
		!strings.Contains(err.Error(), "of m1") {
		t.Errorf("two weights missing: got %v, want both models named", err)
	}
}

// TestCombineAlone: a tensor that only some models have.
func TestCombineAlone(t *testing.T) {
	x, y := []float32{1, -2, float32(math.Copysign(0, -1))}, []float32{4, 5, 6}
	shape := []int{3}
	for _, tt := range []struct {
		combining
		optional bool
		want     []float32 // nil: dropped
	}{
		{newCombining("slerp", shape, -1, [][]float32{x}, Values{"t": .5}), false, x},
		{newCombining("slerp", shape, 0, [][]float32{x}, Values{"t": .5}), false, x},
		{newCombining("nuslerp", shape, -1, [][]float32{x}, nil, 1), false, x},
		{newCombining("nuslerp", shape, 0, [][]float32{x}, nil, 1), false, x},
		{newCombining("multislerp", shape, -1, [][]float32{x}, nil, 1), false, x},
		{newCombining("multislerp", shape, 1, [][]float32{x, y}, nil, 1), false, x},
		{newCombining("multislerp", shape, 0, [][]float32{x}, nil), false, x},
		{newCombining("karcher", shape, -1, [][]float32{x}, nil), false, x},
		{newCombining("model_stock", shape, 0, [][]float32{x}, nil), false, x},
		{newCombining("model_stock", shape, 0, [][]float32{x, y}, nil), true, nil},
		{newCombining("model_stock", shape, -1, [][]float32{x, y}, nil), true, nil},
		{newCombining("nearswap", shape, 0, [][]float32{x}, Values{"t": .5}), true, x},
		{newCombining("ram", shape, 0, [][]float32{x}, nil), false, x},
		{newCombining("ramplus_tl", shape, 0, [][]float32{x}, nil), false, x},
		{newCombining("passthrough", shape, -1, [][]float32{x}, nil), false, x},
	} {
		tt.Optional = tt.optional
		if tt.want == nil {
			if _, err := tt.job(); !errors.Is(err, Dropped) {
				t.Errorf("%s: got %v, want it dropped", tt.method, err)
			}
			continue
		}
		for i, v := range tt.solve(t, 2) {
			if math.Float32bits(v) != math.Float32bits(tt.want[i]) {
				t.Errorf("%s, base %d: element %d: got %v, want %v", tt.method, tt.Base, i, v, tt.want[i])
			}
		}
	}
	zero := newCombining("passthrough", shape, -1, [][]float32{x}, nil)
	zero.Inputs[0].Params["scale"] = 0
	for i, v := range zero.solve(t, 1) {
		if v != 0 {
			t.Errorf("passthrough with scale 0: element %d: got %v, want 0", i, v)
		}
	}
}

// TestStockWarns: a ratio outside of [0, 1] is told, with the rows that have one.
func TestStockWarns(t *testing.T) {
	base := []float32{0, 0, 0, 0}
	apart := [][]float32{base, {1, 0, 1, 0}, {-1, .5, 1, .5}}
	near := [][]float32{base, {1, 0, 1, 0}, {1, .5, 1, .5}}
	for _, tt := range []struct {
		in    [][]float32
		rows  float64
		shape []int
		want  string
	}{
		{apart, 1, []int{2, 2}, "in 1 of 2 rows"},
		{[][]float32{base, {1, 0, 1, 0}, {-1, .5, -1, .5}}, 0, []int{4}, "got -"},
		{near, 0, []int{2, 2}, ""},
		{near, 1, []int{2, 2}, ""},
	} {
		c := newCombining("model_stock", tt.shape, 0, tt.in, Values{"filter_wise": tt.rows})
		j, err := c.job()
		if err != nil {
			t.Fatal(err)
		}
		if err := Solve(j, c.in, make([]float32, 4), 2); err != nil {
			t.Fatal(err)
		}
		got := j.(Warner).Warnings()
		if tt.want == "" && len(got) != 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("rows %v: got warnings %q, want %q", tt.rows, got, tt.want)
		}
	}
}
