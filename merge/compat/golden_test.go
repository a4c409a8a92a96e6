// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pleach/blob"
	"pleach/half"
	"pleach/merge/method"
	"pleach/weights"
)

const golden = "../testdata/golden"

// openSet is a file of safetensors.
func openSet(t *testing.T, dir, file string) *weights.Set {
	t.Helper()
	s, err := weights.OpenFiles(blob.Local(filepath.Join(golden, dir)), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// readTensor is a tensor in float32.
func readTensor(t *testing.T, s *weights.Set, name string) (weights.Tensor, []float32) {
	t.Helper()
	info, ok := s.Lookup(name)
	if !ok {
		t.Fatalf("got no %s, want one", name)
	}
	x := make([]float32, info.Len())
	if err := s.Read(name, 0, len(x), x); err != nil {
		t.Fatal(err)
	}
	return info, x
}

// mergeNames are the tensors of the golden models in the order of mergekit, which
// fixes the random numbers of each.
func mergeNames(s *weights.Set) []string {
	var names []string
	for _, w := range s.Tensors() {
		names = append(names, w.Name)
	}
	slices.Sort(names)
	return names
}

// TestGolden merges whole models with one random stream.
func TestGolden(t *testing.T) {
	weight := []float64{.6, .4, .3}
	density := map[string][]float64{"weight": weight, "density": {.5, .3, .8}}
	for _, c := range []struct {
		name, method string
		global       method.Values
		per          map[string][]float64
	}{
		{"dare_linear", "dare_linear", method.Values{"lambda": 1, "rescale": 1}, density},
		{
			"dare_linear-plain", "dare_linear",
			method.Values{"lambda": 1},
			map[string][]float64{"weight": weight, "density": {.5, 1, .8}},
		},
		{"dare_ties", "dare_ties", method.Values{"lambda": 1, "rescale": 1}, density},
		{
			"della", "della",
			method.Values{"lambda": 1, "rescale": 1, "normalize": 1},
			map[string][]float64{"weight": weight, "density": {.5, .3, .8}, "epsilon": {.15, .15, .15}},
		},
		{
			"della_linear", "della_linear",
			method.Values{"lambda": .5, "rescale": 1},
			map[string][]float64{"weight": weight, "density": {.5, .3, .66}, "epsilon": {.05, .15, .3}},
		},
		{"ties", "ties", method.Values{"lambda": 1, "normalize": 1}, density},
		{
			"breadcrumbs_ties", "breadcrumbs_ties",
			method.Values{"lambda": 1, "rescale": 1, "normalize": 1},
			map[string][]float64{"weight": weight, "density": {.5, .9, .8}, "gamma": {.01, .05, .3}},
		},
		{"model_stock", "model_stock", nil, nil},
		{"model_stock-filter_wise", "model_stock", method.Values{"filter_wise": 1}, nil},
		{"sce", "sce", method.Values{"select_topk": 1}, nil},
		{"sce-topk", "sce", method.Values{"select_topk": .5}, nil},
		{"ram", "ram", method.Values{"epsilon": .01}, nil},
		{"ramplus_tl", "ramplus_tl", method.Values{"epsilon": .01, "r": .1, "alpha": .2}, nil},
	} {
		for _, kind := range []string{"f32", "bf16", "f16"} {
			t.Run(c.name+"-"+kind, func(t *testing.T) {
				var models []*weights.Set
				for _, name := range []string{"a", "b", "c", "base"} {
					models = append(models, openSet(t, fmt.Sprintf("models/%s-%s", name, kind), "model.safetensors"))
				}
				expected := openSet(t, "cases/"+c.name+"-"+kind, "expected.safetensors")
				r := row{Set: kind, Base: 3, Global: c.global, Per: c.per, Inputs: make([]int, 4)}
				gen := NewTwister(42)
				for _, name := range mergeNames(expected) {
					checkTensor(t, c.method, name, r, models, expected, gen)
				}
			})
		}
	}
}

// checkTensor merges one tensor of models.
func checkTensor(
	t *testing.T, doing, name string, r row, models []*weights.Set, expected *weights.Set, gen *Twister,
) {
	t.Helper()
	var in [][]float32
	var types []half.DType
	var shape []int
	for _, m := range models {
		info, x := readTensor(t, m, name)
		in, types, shape = append(in, x), append(types, info.DType), info.Shape
	}
	out, dt, err := Merge(&method.Method{Name: doing}, r.problem(shape), types, in, gen)
	if err != nil {
		t.Fatal(err)
	}
	info, want := readTensor(t, expected, name)
	if dt != info.DType {
		t.Errorf("%s: got %s, want %s", name, dt, info.DType)
	}
	if !slices.Equal(out, want) {
		t.Errorf("%s: got other elements than mergekit's", name)
	}
}
