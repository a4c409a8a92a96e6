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
	"pleach/optim"
	"pleach/program"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestLosses trains for some steps and wants the bits of loss and norm that are in
// a file, one for every kind of kernels, and within a tolerance those of the oracle.
func TestLosses(t *testing.T) {
	for _, in := range []optim.Precision{optim.F32, optim.Mixed, optim.BF16SR, optim.BF16} {
		for _, s := range odds() {
			want := losses(t, oracle.New(), s, in)
			for _, k := range levels() {
				checkLosses(t, s, in, k, want)
			}
		}
	}
}

// checkLosses: in bf16, a difference in the last bit of a sum in float32 makes one of
// bf16 now and then, and that is a place of 2⁻⁸ in one number of many.
func checkLosses(t *testing.T, s model.Spec, in optim.Precision, k kernel.Level, want [][]float64) {
	t.Helper()
	e := cpu.New(cpu.Options{Level: k, Threads: 2})
	defer e.Close()
	inLoss, inNorm := 1e-6, 1e-5
	if in != optim.F32 {
		inLoss, inNorm = 1e-3, 1e-2
	}
	var file bytes.Buffer
	fmt.Fprintf(&file, "# step, loss, gradient norm: engine cpu, %v, %s\n", in, kinds(k, in))
	for n, r := range losses(t, e, s, in) {
		fmt.Fprintf(&file, "%d %x %x\n", n+1, r[0], r[1])
		near(t, fmt.Sprintf("%v, %v: loss of step %d", in, k, n+1), r[:1], want[n][:1], inLoss)
		near(t, fmt.Sprintf("%v, %v: norm of step %d", in, k, n+1), r[1:], want[n][1:], inNorm)
	}
	golden(t, fmt.Sprintf("losses/d%d.%v.%s.txt", s.D, in, kinds(k, in)), file.Bytes())
}

// kinds names the levels that agree with a level to the bit.
func kinds(k kernel.Level, in optim.Precision) string {
	switch {
	case k == kernel.Portable:
		return "portable"
	case in != optim.F32 && k == kernel.AVX512BF16:
		return "pairs"
	case in != optim.F32 && (k == kernel.AMX || k == kernel.AMXPlain):
		return "tiles"
	}
	return "vector"
}

// losses is loss and norm of each step: ten, or four in bf16, which has more levels
// and files.
func losses(t *testing.T, e engine.Engine, s model.Spec, in optim.Precision) (all [][]float64) {
	t.Helper()
	tr := newPrograms(t, e, s, laidOut{in: in}, model.Batch{B: 1, T: 67})
	tr.rate = 0.002
	start(t, tr.floats, s, 0.05)
	steps := 10
	if in != optim.F32 {
		steps = 4
	}
	for n := range steps {
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
