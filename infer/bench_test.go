// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"context"
	"testing"

	"pleach/model"
	"pleach/program"
)

// BenchmarkDecode generates greedily with the model d1024, one sequence: the
// time of a token is that of reading its weights once.
func BenchmarkDecode(b *testing.B) {
	s, err := model.Preset("d1024", 32_000)
	if err != nil {
		b.Fatal(err)
	}
	const T = 256
	e := newCPU(b)
	g, err := NewGenerator(e, s, single, T)
	if err != nil {
		b.Fatal(err)
	}
	programs, err := Programs(s, single, T)
	if err != nil {
		b.Fatal(err)
	}
	bytes := -4 * s.V * s.D // a token reads one row of the embedding, not all
	seed := uint32(1)
	for _, v := range programs[0].Held(program.Weight) {
		x := make([]float32, v.Len())
		for i := range x {
			seed = seed*1664525 + 1013904223
			x[i] = (float32(seed>>8)/(1<<24) - 0.5) / 16
		}
		if err := e.Write(program.Place{}, v.Name, 0, program.ArrayOf(x)); err != nil {
			b.Fatal(err)
		}
		bytes += 4 * len(x)
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
