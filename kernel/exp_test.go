// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"testing"
)

func TestExp32(t *testing.T) {
	worst, at := 0.0, float32(0)
	try := func(x float32) {
		got, want := Exp32(x), math.Exp(float64(x))
		if float32(want) == 0 && got == 0 {
			return
		}
		if u := ulps(got, want); !(u <= worst) {
			worst, at = u, x
		}
	}
	for u := uint64(0); u < 1<<32; u += 4093 { // a prime, all exponents and signs
		try(math.Float32frombits(uint32(u)))
	}
	for i := range 400_000 { // the range with results, evenly
		try(-104 + float32(i)*(193.0/400_000))
	}
	t.Logf("worst error %.3f ulp at %x", worst, at)
	if !(worst <= 0.6) {
		t.Errorf("Exp32(%x): off by %v ulp, want ≤ 0.6", at, worst)
	}
}

func TestExp32Edges(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct{ x, want float32 }{
		{0, 1},
		{float32(math.Copysign(0, -1)), 1},
		{inf, inf},
		{-inf, 0},
		{88.72283, 3.4027985e38},
		{88.72284, inf},
		{709, inf},
		{math.MaxFloat32, inf},
		{-103.97208, math.SmallestNonzeroFloat32},
		{-103.97209, 0},
		{-709, 0},
		{-math.MaxFloat32, 0},
		{math.SmallestNonzeroFloat32, 1},
	} {
		if got := Exp32(c.x); got != c.want {
			t.Errorf("Exp32(%v): got %v, want %v", c.x, got, c.want)
		}
	}
	if got := Exp32(float32(math.NaN())); got == got {
		t.Errorf("Exp32(NaN): got %v", got)
	}
}

func TestSiLU(t *testing.T) {
	worst := 0.0
	for i := range 200_000 {
		x := -110 + float32(i)*(220.0/200_000)
		want := float64(x) / (1 + math.Exp(-float64(x)))
		worst = max(worst, ulps(SiLU(x), want))
	}
	t.Logf("worst error %.3f ulp", worst)
	if !(worst <= 0.6) {
		t.Errorf("SiLU: off by %v ulp, want ≤ 0.6", worst)
	}
	inf := float32(math.Inf(1))
	if got := SiLU(inf); got != inf {
		t.Errorf("SiLU(Inf): got %v", got)
	}
	for _, x := range []float32{-inf, float32(math.NaN())} {
		if got := SiLU(x); got == got {
			t.Errorf("SiLU(%v): got %v, want NaN", x, got)
		}
	}
}

func TestLogOf(t *testing.T) {
	b := newBench(t, Portable)
	for range 100_000 {
		x := math.Exp(b.NormFloat64() * 100)
		got, want := logOf(x), math.Log(x)
		if d := math.Abs(got - want); d > 1e-15*math.Abs(want) {
			t.Fatalf("logOf(%v): got %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{0, -1, 1, 5e-324, math.Inf(1), math.MaxFloat64, 0x1p-1022} {
		got, want := logOf(x), math.Log(x)
		if got != want && (got == got || want == want) {
			t.Errorf("logOf(%v): got %v, want %v", x, got, want)
		}
	}
}

func BenchmarkExp32(b *testing.B) {
	x := fill(1024, func(i int) float64 { return float64(i%97)/7 - 12 })
	y := make([]float32, len(x))
	for b.Loop() {
		for i, v := range x {
			y[i] = Exp32(v)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/1024, "ns/exp")
}
