// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"testing"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/optim"
	"pleach/plan"
	"pleach/program"
)

// predict is what the command asks.
func predict(ps ...*program.Program) (engine.Memory, error) {
	return cpu.Predict(cpu.Options{Threads: 2}, 1, ps...)
}

func request(t testing.TB, preset string, vocabulary int) plan.Request {
	t.Helper()
	s, err := model.Preset(preset, vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Request{
		Spec: s, Layout: program.Layout{Compute: half.F32, Sum: half.F32}, AdamW: optim.AdamW{Beta1: 0.9, Beta2: 0.95},
		Sequence: 64, Rows: 8, Free: true,
	}
}

// TestTooLarge: what does not fit is refused with how much it would take.
func TestTooLarge(t *testing.T) {
	r := request(t, "llama-70b", 32000)
	r.Memory = 16 << 30
	_, err := plan.Choose(r, predict)
	want := "plan: 69.0 B of parameters do not fit: micro-batches of 1 × 64 tokens with recomputation \"full\" need " +
		"1.01 TiB (state 1 TiB, activations"
	if fault.Exit(err) != 2 || fmt.Sprint(err)[:len(want)] != want {
		t.Errorf("got  %v\nwant %s …", err, want)
	}
}

// TestChoose: without a bound the largest micro-batch of at most 2048 tokens and
// no recomputation; with less memory smaller ones first, then recomputation.
// What is planned fits, and given values are kept.
func TestChoose(t *testing.T) {
	r := request(t, "tiny", 500)
	r.Rows = 48
	free, err := plan.Choose(r, predict)
	if err != nil {
		t.Fatal(err)
	}
	if free.Batch != (model.Batch{B: 24, T: 64}) || free.Layout.Recompute != program.KeepAll {
		t.Errorf("without a bound: got %v, %v", free.Batch, free.Layout.Recompute)
	}
	seen := map[string]bool{}
	for r.Memory = free.Total(); ; r.Memory -= 32 << 10 {
		p, err := plan.Choose(r, predict)
		if err != nil {
			if fault.Exit(err) != 2 {
				t.Errorf("%d bytes: %v", r.Memory, err)
			}
			break
		}
		if p.Total() > r.Memory {
			t.Errorf("%d bytes: planned %d", r.Memory, p.Total())
		}
		if r.Rows%p.Batch.B != 0 {
			t.Errorf("%d bytes: micro-batches of %d", r.Memory, p.Batch.B)
		}
		seen[fmt.Sprint(p.Batch.B, p.Layout.Recompute)] = true
	}
	for _, want := range []string{"24 none", "1 none", "1 selective", "1 full"} {
		if !seen[want] {
			t.Errorf("%s was never chosen: %v", want, seen)
		}
	}
	r.Memory, r.Micro, r.Free = 0, 3, false
	r.Layout.Recompute = program.Full
	if p, err := plan.Choose(r, predict); err != nil || p.Batch.B != 3 || p.Layout.Recompute != program.Full {
		t.Errorf("given 3 and full: got %v, %v, %v", p.Batch, p.Layout.Recompute, err)
	}
}

// TestCost: a step computes as much however it is cut; recomputation costs more
// work and less memory; evaluation and what else a process holds count.
func TestCost(t *testing.T) {
	r := request(t, "tiny", 500)
	choose := func(change func(*plan.Request)) plan.Plan {
		t.Helper()
		q := r
		q.Micro, q.Free = 8, false
		change(&q)
		p, err := plan.Choose(q, predict)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	whole := choose(func(*plan.Request) {})
	halves := choose(func(q *plan.Request) { q.Micro = 4 })
	full := choose(func(q *plan.Request) { q.Layout.Recompute = program.Full })
	scored := choose(func(q *plan.Request) { q.Scored = 32 })
	other := choose(func(q *plan.Request) { q.Other = 1 << 20 })
	if halves.FLOPs != whole.FLOPs || halves.Memory.Arena >= whole.Memory.Arena {
		t.Errorf("halves: %d FLOP, %d bytes; whole: %d, %d", halves.FLOPs, halves.Memory.Arena, whole.FLOPs, whole.Memory.Arena)
	}
	if full.FLOPs <= whole.FLOPs || full.Memory.Arena >= whole.Memory.Arena {
		t.Errorf("full: %d FLOP, %d bytes; none: %d, %d", full.FLOPs, full.Memory.Arena, whole.FLOPs, whole.Memory.Arena)
	}
	if scored.Total() <= whole.Total() || scored.Memory.State != whole.Memory.State {
		t.Errorf("scored: %+v, without: %+v", scored.Memory, whole.Memory)
	}
	if other.Total() != whole.Total()+1<<20 {
		t.Errorf("1 MiB more: got %d, want %d", other.Total(), whole.Total()+1<<20)
	}
	// Weights, gradient sums and two moments, and the tally.
	if want := 4*4*r.Spec.Count() + 16; whole.Memory.State != want {
		t.Errorf("state: got %d, want %d", whole.Memory.State, want)
	}
}

// TestPrecision: what a run holds by its precision, in bytes of a parameter:
// weights, a master copy, gradient sums, moments.
func TestPrecision(t *testing.T) {
	for _, tt := range []struct {
		in          optim.Precision
		halfMoments bool
		want        int
	}{
		{optim.F32, false, 4 + 4 + 8},
		{optim.Mixed, false, 2 + 4 + 4 + 8},
		{optim.BF16SR, false, 2 + 4 + 8},
		{optim.BF16SR, true, 2 + 4 + 4},
		{optim.BF16, false, 2 + 4 + 8},
	} {
		r := request(t, "tiny", 500)
		r.Layout, r.AdamW = tt.in.Layout(), tt.in.Apply(optim.AdamW{HalfMoments: tt.halfMoments})
		got := 0
		_, err := plan.Choose(r, func(ps ...*program.Program) (engine.Memory, error) {
			got, _ = program.HeldBytes(ps...)
			return engine.Memory{State: got}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		const tally = 16
		if want := tt.want*r.Spec.Count() + tally; got != want {
			t.Errorf("%v, moments in bf16 %v: %d bytes, want %d", tt.in, tt.halfMoments, got, want)
		}
	}
}
