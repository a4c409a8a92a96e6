// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"pleach/engine/cpu"
	"pleach/kernel"
	"pleach/model"
	"pleach/optim"
)

// odds are models that leave no loop without a remainder.
func odds() []model.Spec {
	untied := odd
	untied.Tied, untied.AttnBias, untied.MLPBias = false, false, false
	untied.D, untied.H, untied.G, untied.K, untied.F, untied.V = 130, 4, 1, 34, 66, 700
	return []model.Spec{odd, untied}
}

// TestThreads wants the same bits for any number of threads.
func TestThreads(t *testing.T) {
	for _, in := range precisions {
		for _, s := range odds() {
			want := history(t, s, in, 1, 2)
			for _, threads := range []int{2, 3, 4} {
				sameHistory(t, fmt.Sprintf("%v, D %d, %d threads", in, s.D, threads), history(t, s, in, threads, 2), want)
			}
		}
	}
}

// TestMicroBatches wants the same bits however a step is cut into micro-batches,
// with a tied embedding too. Rows are multiples of 32: so many tokens do some
// products of bf16 take at once.
func TestMicroBatches(t *testing.T) {
	for _, in := range precisions {
		for _, s := range odds() {
			want := history(t, s, in, 1, 4)
			for _, rows := range []int{1, 2} {
				sameHistory(t, fmt.Sprintf("%v, D %d, micro-batches of %d", in, s.D, rows), history(t, s, in, 2, rows), want)
			}
		}
	}
}

// run is the reports and the weights of a few steps.
type run struct {
	reports [][]float64
	weights map[string][]float32
}

func history(t *testing.T, s model.Spec, in optim.Precision, threads, rows int) run {
	t.Helper()
	e := cpu.New(cpu.Options{Threads: threads})
	defer e.Close()
	tr := newTrainer(t, e, s, laidOut{in: in}, model.Batch{B: rows, T: 64})
	return tr.history(2, 4)
}

// history makes steps of so many rows.
func (tr *trainer) history(steps, rows int) (r run) {
	for n := range steps {
		r.reports = append(r.reports, slices.Clone(tr.step(n+1, n*rows, rows)))
	}
	r.weights = tr.weights()
	return r
}

func sameHistory(t *testing.T, what string, got, want run) {
	t.Helper()
	for i := range want.reports {
		if !slices.Equal(got.reports[i], want.reports[i]) {
			t.Errorf("%s: report of step %d: got %v, want %v", what, i+1, got.reports[i], want.reports[i])
		}
	}
	for name, w := range want.weights {
		if !slices.Equal(got.weights[name], w) {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

// TestCollections wants garbage collections during a run to change nothing:
// addresses that closures keep stay good.
func TestCollections(t *testing.T) {
	want := history(t, odd, optim.Mixed, 2, 2)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	got := history(t, odd, optim.Mixed, 2, 2)
	close(stop)
	<-stopped
	sameHistory(t, "with collections", got, want)
}

// TestAllocations wants none in accumulate, update and score.
func TestAllocations(t *testing.T) {
	for _, in := range precisions {
		for _, k := range kernel.Levels() {
			t.Run(fmt.Sprintf("%v/%v", in, k), func(t *testing.T) { testAllocations(t, in, k) })
		}
	}
}

func testAllocations(t *testing.T, in optim.Precision, k kernel.Level) {
	e := cpu.New(cpu.Options{Level: k, Threads: 2})
	defer e.Close()
	b := model.Batch{B: 2, T: 67}
	tr := newTrainer(t, e, odd, laidOut{in: in}, b)
	tr.step(1, 0, 2)
	p, err := model.Score(odd, in.Layout(), 0, b, 3)
	must(t, err)
	score, c := compile(t, e, p)
	feed(p, c, odd, b, 0)
	all := func() {
		must(t, tr.accumulate.Run(tr.acc).Wait())
		must(t, tr.update.Run(tr.upd).Wait())
		must(t, score.Run(c).Wait())
	}
	if n := testing.AllocsPerRun(5, all); n != 0 {
		t.Errorf("a step and a score allocate %g times, want 0", n)
	}
}
