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

// layouts are the precisions of inference.
var layouts = map[string]program.Layout{
	"f32":  single,
	"bf16": {Compute: half.BF16, Sum: half.F32},
	"int8": {Compute: half.BF16, Int8: true, Sum: half.F32},
}

// BenchmarkDecode generates greedily with the model d1024, one sequence: the
// time of a token is that of reading its weights once.
func BenchmarkDecode(b *testing.B) {
	for _, name := range []string{"f32", "bf16", "int8"} {
		b.Run(name, func(b *testing.B) { benchmarkDecode(b, layouts[name]) })
	}
}

func benchmarkDecode(b *testing.B, l program.Layout) {
	s, err := model.Preset("d1024", 32_000)
	if err != nil {
		b.Fatal(err)
	}
	const T = 256
	e := newCPU(b)
	g, err := NewGenerator(e, s, l, T, 1)
	if err != nil {
		b.Fatal(err)
	}
	bytes := randomWeights(b, e, s, l)
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

// randomWeights fills a model with numbers, and returns the bytes that a token reads:
// of the embedding it is one row.
func randomWeights(t testing.TB, e engine.Engine, s model.Spec, l program.Layout) (bytes int) {
	t.Helper()
	f, seed := floatsOf(e, s, l), uint32(1)
	for _, p := range s.Held(l) {
		rows := 1
		if len(p.Shape) > 1 {
			rows = p.Shape[0]
		}
		x := make([]float32, p.Len()/rows)
		for i := range rows {
			for j := range x {
				seed = seed*1664525 + 1013904223
				x[j] = (float32(seed>>8)/(1<<24) - 0.5) / 16
			}
			if err := f.Write(p.Name, i*len(x), x); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case l.Quantized(p.Class):
			bytes += p.Len() + 4*rows
		case p.Name != "embed":
			bytes += p.Len() * l.Compute.Size()
		}
	}
	return bytes
}
