// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestAmount prints counts for people.
func TestAmount(t *testing.T) {
	for want, n := range map[string]float64{
		"0": 0, "12": 12, "999": 999, "1 k": 1000, "5.3 M": 5.3e6, "1.25 B": 1.25e9, "2 T": 2e12,
	} {
		if got := amount(n); got != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
}

// TestBeside: what a process takes beside an engine is more than nothing and
// follows what it holds.
func TestBeside(t *testing.T) {
	before := beside()
	held := make([]byte, 64<<20)
	for i := range held {
		held[i] = 1
	}
	after := beside()
	if more := after - before; more < 60<<20 || more > 72<<20 {
		t.Errorf("64 MiB more are %d MiB", more>>20)
	}
	if before < runtimeBytes || before > 1<<30 {
		t.Errorf("got %d MiB", before>>20)
	}
	if held[7] != 1 {
		t.Error("gone")
	}
}

// TestLimitMemory: the limit is the prediction's and goes with the run.
func TestLimitMemory(t *testing.T) {
	old := debug.SetMemoryLimit(-1)
	undo := limitMemory(1 << 30)
	if got := debug.SetMemoryLimit(-1); got < 1<<30 || got > 1<<30+1<<28 {
		t.Errorf("limit: got %d", got)
	}
	undo()
	if got := debug.SetMemoryLimit(-1); got != old || old != math.MaxInt64 {
		t.Errorf("limit afterwards: got %d, want %d", got, old)
	}
}
