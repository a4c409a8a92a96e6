// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pleach/blob"
	"pleach/half"
	"pleach/kernel"
	"pleach/weights"
)

func goldenPlan(t *testing.T, name string, o Options) *Plan {
	t.Helper()
	dir := filepath.Join("testdata", "golden")
	file := filepath.Join(dir, "cases", name, "config.yml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig(file, text)
	if err != nil {
		t.Fatal(err)
	}
	o.Find = func(path, _ string) (string, error) { return filepath.Join(dir, path), nil }
	p, err := NewPlan(c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// goldenBounds are how far the results of methods may be from mergekit's, in units in
// the last place of the type of the output at the largest operand of an element: for
// exact arithmetic with inputs in float32, and for mergekit's rounding. Where it is
// not 0, mergekit's own sums of float32 are the reason, or, for linear, that it fuses
// products and sums. A method that is not there has 0.
var goldenBounds = map[string][2]float64{
	"linear":        {2, 0},
	"slerp":         {3, 1},
	"nuslerp":       {6, 12},
	"multislerp":    {8, 0},
	"karcher":       {5, 3},
	"model_stock":   {12, 0},
	"sce":           {4, 0},
	"ties-plain":    {4, 0},
	"breadcrumbs_t": {6, 0},
}

func goldenBound(name string, compat bool) (bound float64) {
	longest := 0
	for prefix, b := range goldenBounds {
		if strings.HasPrefix(name, prefix) && len(prefix) > longest {
			longest, bound = len(prefix), b[0]
			if compat {
				bound = b[1]
			}
		}
	}
	return bound
}

// inFloat32 says whether mergekit computed a case in float32, without chance.
func inFloat32(name string) bool {
	if strings.HasPrefix(name, "dare") || strings.HasPrefix(name, "della") {
		return false
	}
	return strings.HasSuffix(name, "-f32") && !strings.Contains(name, "as-bf16") || name == "linear-to-bf16"
}

// TestGoldens merges tiny models as mergekit did (testdata/golden/make.py).
func TestGoldens(t *testing.T) {
	es, err := os.ReadDir(filepath.Join("testdata", "golden", "cases"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		for _, compat := range []bool{false, true} {
			if !compat && !inFloat32(e.Name()) {
				continue
			}
			t.Run(fmt.Sprintf("%s/compat=%t", e.Name(), compat), func(t *testing.T) {
				p := goldenPlan(t, e.Name(), Options{Seed: 42, Compat: compat})
				m := NewMemory(p)
				if err := p.Run(t.Context(), m, Limits{Memory: 1 << 30, Threads: 2, Level: kernel.Best()}, nil); err != nil {
					t.Fatal(err)
				}
				differ, worst := compareGolden(t, p, m, e.Name())
				if bound := goldenBound(e.Name(), compat); worst > bound {
					t.Errorf("%d elements differ, %.1f units in the last place at worst, want %v at most", differ, worst, bound)
				}
			})
		}
	}
}

// compareGolden compares an output with what mergekit wrote.
func compareGolden(t *testing.T, p *Plan, m *Memory, name string) (differ int, worst float64) {
	t.Helper()
	dir := filepath.Join("testdata", "golden", "cases", name)
	want, err := weights.OpenFiles(blob.Local(dir), "expected.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if len(want.Tensors()) != len(m.Tensors()) {
		t.Errorf("got %d tensors, want %d", len(m.Tensors()), len(want.Tensors()))
	}
	for _, w := range want.Tensors() {
		i, ok := m.byName[w.Name]
		if !ok {
			t.Errorf("tensor %s is not there", w.Name)
			continue
		}
		if got := m.tensors[i]; got.DType != w.DType || !slices.Equal(got.Shape, w.Shape) {
			t.Errorf("tensor %s: got %v %d, want %v %d", w.Name, got.DType, got.Shape, w.DType, w.Shape)
			continue
		}
		got, x, most := make([]float32, w.Len()), make([]float32, w.Len()), largestOf(t, p, i)
		if err := errors.Join(m.ReadFinite(w.Name, 0, w.Len(), got), want.Read(w.Name, 0, w.Len(), x)); err != nil {
			t.Fatal(err)
		}
		for k, v := range x {
			if got[k] != v {
				differ++
				worst = max(worst, math.Abs(float64(got[k])-float64(v))/ulpAt(w.DType, max(most[k], v, -v)))
			}
		}
	}
	return differ, worst
}

// largestOf are the largest magnitudes among the inputs of each element.
func largestOf(t *testing.T, p *Plan, i int) []float32 {
	t.Helper()
	most := make([]float32, p.Tensors[i].Len())
	for _, in := range p.Tensors[i].Inputs {
		y := make([]float32, len(most))
		if err := p.Models[in.Model].Read(in.Name, 0, len(y), y); err != nil {
			t.Fatal(err)
		}
		for k, v := range y {
			most[k] = max(most[k], v, -v)
		}
	}
	return most
}

// ulpAt is the distance of numbers of a type at v.
func ulpAt(t half.DType, v float32) float64 {
	bits := map[half.DType]int{half.F32: 23, half.F16: 10, half.BF16: 7}[t]
	_, e := math.Frexp(math.Abs(float64(v)))
	return math.Ldexp(1, e-1-bits)
}
