// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"
	"os"
	"path/filepath"
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

func TestGoldens(t *testing.T) {
	es, err := os.ReadDir(filepath.Join("testdata", "golden", "cases"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		t.Run(e.Name(), func(t *testing.T) {
			p := goldenPlan(t, e.Name(), Options{Seed: 42, Compat: os.Getenv("COMPAT") != ""})
			m := NewMemory(p)
			if err := p.Run(t.Context(), m, Limits{Memory: 1 << 30, Threads: 2, Level: kernel.Best()}, nil); err != nil {
				t.Fatal(err)
			}
			want, err := weights.OpenFiles(blob.Local(filepath.Join("testdata", "golden", "cases", e.Name())), "expected.safetensors")
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			if len(want.Tensors()) != len(m.Tensors()) {
				t.Errorf("got %d tensors, want %d", len(m.Tensors()), len(want.Tensors()))
			}
			worst, differ, n := 0.0, 0, 0
			for _, w := range want.Tensors() {
				i, ok := m.byName[w.Name]
				if !ok {
					t.Errorf("tensor %s is not there", w.Name)
					continue
				}
				got := make([]float32, w.Len())
				if err := m.ReadFinite(w.Name, 0, w.Len(), got); err != nil {
					t.Fatal(err)
				}
				x := make([]float32, w.Len())
				if err := want.Read(w.Name, 0, w.Len(), x); err != nil {
					t.Fatal(err)
				}
				if m.tensors[i].DType != w.DType {
					t.Errorf("%s: got %v, want %v", w.Name, m.tensors[i].DType, w.DType)
				}
				most := make([]float32, w.Len())
				for _, in := range p.Tensors[i].Inputs {
					y := make([]float32, w.Len())
					if err := p.Models[in.Model].Read(in.Name, 0, w.Len(), y); err != nil {
						t.Fatal(err)
					}
					for k, v := range y {
						most[k] = max(most[k], v, -v)
					}
				}
				for k, v := range x {
					n++
					if got[k] != v {
						differ++
						u := math.Abs(float64(got[k])-float64(v)) / ulpAt(w.DType, max(most[k], v, -v))
						worst = max(worst, u)
					}
				}
			}
			t.Logf("%d of %d differ, %.1f ulp at worst", differ, n, worst)
		})
	}
}

// ulpAt is the distance of numbers of a type at v.
func ulpAt(t half.DType, v float32) float64 {
	bits := map[half.DType]int{half.F32: 23, half.F16: 10, half.BF16: 7}[t]
	_, e := math.Frexp(math.Abs(float64(v)))
	return math.Ldexp(1, e-1-bits)
}
