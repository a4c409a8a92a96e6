// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/engine/oracle"
	"pleach/kernel"
	"pleach/model"
	"pleach/program"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestLosses trains for ten steps and wants the bits of loss and norm that are in
// a file, one for portable kernels and one for all others, who agree to the bit,
// and within a tolerance those of the oracle.
func TestLosses(t *testing.T) {
	for _, s := range odds() {
		want := losses(t, oracle.New(), s)
		for _, k := range kernel.Levels() {
			e := cpu.New(cpu.Options{Level: k, Threads: 2})
			defer e.Close()
			name := "vector"
			if k == kernel.Portable {
				name = "portable"
			}
			got := losses(t, e, s)
			var file bytes.Buffer
			fmt.Fprintf(&file, "# step, loss, gradient norm: engine cpu, f32, %s\n", name)
			for n, r := range got {
				fmt.Fprintf(&file, "%d %x %x\n", n+1, r[0], r[1])
				near(t, fmt.Sprintf("%v: loss of step %d", k, n+1), r[:1], want[n][:1], 1e-6)
				near(t, fmt.Sprintf("%v: norm of step %d", k, n+1), r[1:], want[n][1:], 1e-5)
			}
			golden(t, fmt.Sprintf("losses/d%d.%s.txt", s.D, name), file.Bytes())
		}
	}
}

// losses is loss and norm of each step.
func losses(t *testing.T, e engine.Engine, s model.Spec) (all [][]float64) {
	t.Helper()
	tr := newPrograms(t, e, s, fast, model.Batch{B: 1, T: 67})
	tr.rate = 0.002
	start(t, e, s, 0.05)
	for n := range 10 {
		r := tr.step(n+1, 2*n, 2)
		all = append(all, []float64{r[program.ReportLoss], r[program.ReportNorm]})
	}
	return all
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, got, 0o644))
	}
	want, err := os.ReadFile(name)
	if must(t, err); !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s, want\n%s", name, got, want)
	}
}

// TestPrint wants the passes and steps of a small model to be those in a file.
func TestPrint(t *testing.T) {
	l := fast
	l.Recompute = program.Selective
	s := model.Spec{L: 1, D: 64, H: 4, G: 2, K: 16, F: 96, V: 500, MaxT: 64, Eps: 1e-5, Rope: program.Rope{Theta: 10_000}}
	p, err := model.Accumulate(s, l, 0, model.Batch{B: 2, T: 64})
	must(t, err)
	var file bytes.Buffer
	must(t, cpu.Print(&file, p, cpu.Options{Level: kernel.Portable}, 2))
	golden(t, "accumulate.txt", file.Bytes())
}
