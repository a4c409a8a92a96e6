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
func predict(ps ...*program.Program) (engine.Memory, error) { return cpu.Predict(2, 1, ps...) }

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
