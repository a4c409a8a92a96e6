// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"os"
	"path/filepath"
	"testing"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/half"
	"pleach/model"
	"pleach/program"
	"pleach/weights"
)

var (
	single = program.Layout{Compute: half.F32, Sum: half.F32}
	halved = program.Layout{Compute: half.BF16, Sum: half.F32}
)

// spec reads a file of configuration in a model directory.
func spec(t testing.TB, dir, file string) model.Spec {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	return c.Spec
}

// load writes the weights of a model directory into an engine that has compiled
// a program of it, as wide as the engine's type F.
func load[F float32 | float64](t testing.TB, e engine.Engine, s model.Spec, dir string) {
	t.Helper()
	set, err := weights.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	err = s.Transfer(func(w model.Tensor, lo int, dst []float32) error {
		return set.ReadFinite(w.Name, lo, lo+len(dst), dst)
	}, func(name string, lo int, x []float32) error {
		wide := make([]F, len(x))
		for i := range x {
			wide[i] = F(x[i])
		}
		return e.Write(program.Place{}, name, lo, program.ArrayOf(wide))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// floatsOf writes the weights of a model in a layout.
func floatsOf(e engine.Engine, s model.Spec, l program.Layout) *engine.Floats {
	f := engine.NewFloats(e)
	for _, p := range s.Held(l) {
		if f.Declare(p.Name, l.Compute); l.Quantized(p.Class) {
			f.DeclareInt8(p.Name, p.Row())
		}
	}
	return f
}

// newCPU is an engine that lasts as long as the test.
func newCPU(t testing.TB) engine.Engine {
	e := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func newScorer(t testing.TB, dir, file string, batch model.Batch, top int) *Scorer {
	t.Helper()
	e, s := newCPU(t), spec(t, dir, file)
	r, err := NewScorer(e, s, single, batch, top)
	if err != nil {
		t.Fatal(err)
	}
	load[float32](t, e, s, dir)
	return r
}

// newGenerator takes more positions than the model was made for, if T is more.
func newGenerator(t testing.TB, dir string, T int) *Generator {
	t.Helper()
	return newGeneratorIn(t, single, dir, T)
}

// newGeneratorIn computes in the types of a layout.
func newGeneratorIn(t testing.TB, l program.Layout, dir string, T int) *Generator {
	t.Helper()
	e, s := newCPU(t), spec(t, dir, "config.json")
	s.MaxT = max(s.MaxT, T)
	g, err := NewGenerator(e, s, l, T, 1)
	if err != nil {
		t.Fatal(err)
	}
	set, err := weights.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	f := engine.NewFloats(e)
	for _, p := range s.Whole() {
		f.Declare(p.Name, l.Compute)
	}
	err = s.Transfer(func(w model.Tensor, lo int, dst []float32) error {
		return set.ReadFinite(w.Name, lo, lo+len(dst), dst)
	}, f.Write)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
