// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"context"
	"testing"

	"pleach/engine"
	"pleach/half"
	"pleach/model"
	"pleach/program"
)

// BenchmarkDecode generates greedily with the model d1024, one sequence: the
// time of a token is that of reading its weights once.
func BenchmarkDecode(b *testing.B) {
	for _, t := range []half.DType{half.F32, half.BF16} {
		b.Run(t.String(), func(b *testing.B) { decode(b, program.Layout{Compute: t, Sum: half.F32}) })
	}
}

func decode(b *testing.B, l program.Layout) {
	s, err := model.Preset("d1024", 32_000)
	if err != nil {
		b.Fatal(err)
	}
	const T = 256
	e := newCPU(b)
	g, err := NewGenerator(e, s, l, T)
	if err != nil {
		b.Fatal(err)
	}
	programs, err := Programs(s, l, T)
	if err != nil {
		b.Fatal(err)
	}
	into := engine.NewFloats(e, programs...)
	bytes := -l.Compute.Size() * s.V * s.D // a token reads one row of the embedding, not all
	seed := uint32(1)
	for _, v := range programs[0].Held(program.Weight) {
		x := make([]float32, v.Len())
		for i := range x {
			seed = seed*1664525 + 1013904223
			x[i] = (float32(seed>>8)/(1<<24) - 0.5) / 16
		}
		if err := into.Write(v.Name, 0, x); err != nil {
			b.Fatal(err)
		}
		bytes += v.Bytes()
	}
	generate := func(n int) {
		if _, err := g.Generate(context.Background(), []int32{1}, n, Sampling{}, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
	generate(8)
	b.ResetTimer()
	b.SetBytes(int64(bytes))
	for n := b.N; n > 0; n -= T - 1 {
		generate(min(n, T-1))
	}
}
