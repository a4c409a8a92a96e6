// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestExpLog compares with package math.
func TestExpLog(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	worst := 0.0
	for range 200_000 {
		x := -math.Ldexp(r.Float64(), r.IntN(60)-50)
		got, want := exp(x), math.Exp(x)
		if want < 0x1p-1019 {
			if !(got >= 0 && got < 0x1p-1018) {
				t.Fatalf("exp(%v) = %v, want %v", x, got, want)
			}
			continue
		}
		worst = max(worst, math.Abs(got/want-1))
	}
	if worst > 4e-16 {
		t.Errorf("exp: relative error %.2g, want 4e-16 at most", worst)
	}
	worst = 0
	for range 200_000 {
		x := math.Ldexp(1+r.Float64(), r.IntN(80)-40)
		if r.IntN(2) == 0 {
			x = 1 + math.Ldexp(r.Float64()-0.5, -r.IntN(50))
		}
		got, want := log(x), math.Log(x)
		worst = max(worst, math.Abs(got-want)/max(math.Abs(want), 0x1p-53))
	}
	if worst > 1e-15 {
		t.Errorf("log: relative error %.2g, want 1e-15 at most", worst)
	}
	if exp(0) != 1 || exp(math.Inf(-1)) != 0 || log(1) != 0 {
		t.Errorf("exp(0) = %v, exp(-Inf) = %v, log(1) = %v, want 1, 0, 0", exp(0), exp(math.Inf(-1)), log(1))
	}
	if x := math.NaN(); exp(x) == exp(x) || log(x) == log(x) {
		t.Error("exp or log of NaN is a number")
	}
}
