// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"runtime"
	"testing"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/model"
	"pleach/program"
)

// TestMemory wants the figures to be what plans and programs say, and what
// Predict has said before, and the process to have grown by that much.
func TestMemory(t *testing.T) {
	s := benched[1]
	var before, after runtime.MemStats
	e := cpu.New(cpu.Options{Threads: 2})
	defer e.Close()
	runtime.GC()
	runtime.GC() // what the first has found to have a finalizer
	runtime.ReadMemStats(&before)
	tr := newPrograms(t, e, s, laidOut{}, model.Batch{B: 2, T: 256})
	p, err := model.Extend("extend", s, fast, 0, model.Window{N: 3, M: 1, Slots: 2, T: 300})
	must(t, err)
	decode, _ := compile(t, e, p)
	runtime.GC()
	runtime.ReadMemStats(&after)

	var want engine.Memory
	var programs []*program.Program
	for _, x := range []engine.Executable{tr.accumulate, tr.update, decode} {
		programs = append(programs, x.Program())
		want.Arena += cpu.Plan(x).Bytes
		_, input := program.HeldBytes(x.Program())
		want.Input += input
	}
	want.State, _ = program.HeldBytes(programs...)
	got := e.Memory()
	want.Scratch = got.Scratch // there is no other count of it than Predict's
	if got != want {
		t.Errorf("memory: got %+v, want %+v", got, want)
	}
	predicted, err := cpu.Predict(cpu.Options{Threads: 2}, 1, programs...)
	if must(t, err); predicted != got {
		t.Errorf("predicted %+v, got %+v", predicted, got)
	}
	calls := 0
	for _, x := range programs {
		_, input := program.HeldBytes(x)
		calls += input
		for _, v := range x.Outputs {
			calls += v.Bytes()
		}
	}
	grown := int(after.HeapAlloc-before.HeapAlloc) + e.Mapped() - calls
	if d := float64(grown-got.Total()) / float64(got.Total()); d < -0.01 || d > 0.05 {
		t.Errorf("heap and mappings have grown by %d bytes, the engine's figure is %d", grown, got.Total())
	}
	runtime.KeepAlive(tr)
	runtime.KeepAlive(decode)
}

// TestLinear: one sequence of twice the length takes twice the memory beside the
// weights. Nothing of attention or of the head grows with the square.
func TestLinear(t *testing.T) {
	beside := func(T int) int {
		s := benched[2]
		s.MaxT = T
		p, err := model.Accumulate(s, fast, 0, model.Batch{B: 1, T: T})
		must(t, err)
		m, err := cpu.Predict(cpu.Options{Threads: 2}, 1, p)
		must(t, err)
		return m.Total() - m.State
	}
	a, b, c := beside(1<<13), beside(1<<14), beside(1<<15)
	if r := float64(c-b) / float64(b-a); r < 1.9 || r > 2.1 {
		t.Errorf("sequences of 8, 16 and 32 Ki take %d, %d, %d bytes: the second step is %.2f times the first, want 2", a, b, c, r)
	}
}
