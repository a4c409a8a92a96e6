// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pleach/engine"
	"pleach/engine/oracle"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/program"
)

// TestFloats: float32 numbers go into states of both types and come back, rounded
// once where the type is bf16, at any place; what has become infinite is counted,
// what was is not.
func TestFloats(t *testing.T) {
	const n = 1<<17 + 1000
	b := program.New("states", program.Layout{})
	b.UpdatePhase()
	for _, typ := range []half.DType{half.F32, half.BF16} {
		b.Clear(b.State(typ.String(), typ, program.Same, n))
	}
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	e := oracle.New()
	defer e.Close()
	if _, err := e.Compile(p, 1); err != nil {
		t.Fatal(err)
	}
	src, got := make([]float32, n-70), make([]float32, n)
	for i := range src {
		src[i] = float32(i) * 0.37
	}
	src[7] = float32(math.Inf(-1))
	for _, typ := range []half.DType{half.F32, half.BF16} {
		f := engine.NewFloats(e, p)
		if err := f.Write(typ.String(), 66, src); err != nil {
			t.Fatal(err)
		}
		if err := f.Read(typ.String(), 0, got); err != nil {
			t.Fatal(err)
		}
		for i, g := range got {
			want := float32(0)
			if i >= 66 && i < 66+len(src) {
				want = src[i-66]
			}
			if typ == half.BF16 {
				want = half.FromBF16(half.ToBF16(want))
			}
			if g != want {
				t.Fatalf("%v[%d]: got %v, want %v", typ, i, g, want)
			}
		}
		if err := f.Lost(); err != nil {
			t.Errorf("%v: %v", typ, err)
		}
		large := append(make([]float32, 1<<16), 3.4e38, 3.38e38, -3.4e38)
		if err := f.Write(typ.String(), 5, large); err != nil {
			t.Fatal(err)
		}
		err := f.Lost()
		if typ == half.F32 && err != nil {
			t.Error(err)
		}
		want := "2 numbers are beyond the range of bf16, the first is 3.4e+38 at 65541 of bf16"
		if typ == half.BF16 && (fault.Exit(err) != 3 || !strings.Contains(fmt.Sprint(err), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err := f.Write(typ.String(), n-3, src[:4]); err == nil {
			t.Errorf("%v: writing behind the end: got no error", typ)
		}
	}
}
