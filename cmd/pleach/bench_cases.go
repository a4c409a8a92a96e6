// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"pleach/half"
	"pleach/optim"
	"pleach/program"
)

// float and ids declare operands; floats are of the type that the layout computes
// in. They are weights and not inputs, so that their gradients are wanted too.
func float(b *program.Builder, name string, shape ...int) *program.Value {
	return b.Param(name, b.Layout().Compute, program.Same, shape...)
}

func ids(b *program.Builder, name string, n int) *program.Value { return b.Input(name, half.I32, n) }

// backward appends the gradients of y for a random gradient of it.
func backward(b *program.Builder, y *program.Value) (elements int) {
	b.Seed(y, b.Input("dy", y.Type, y.Shape...))
	b.Backward()
	return y.Len()
}

// product is x·wᵀ of N rows with both gradients.
func product(name string, N, O, I int) kernelCase {
	return kernelCase{name, func(b *program.Builder) int {
		return backward(b, b.Linear(float(b, "x", N, I), float(b, "w", O, I)))
	}}
}

// products are those of the configuration, each shape once, and squares.
func (b *bench) products() []kernelCase {
	var cases []kernelCase
	N := b.rows * b.seq
	seen := map[[2]int]bool{}
	for _, p := range b.spec.Whole() {
		if p.Class != program.Matrix || len(p.Shape) != 2 || seen[[2]int(p.Shape)] {
			continue
		}
		seen[[2]int(p.Shape)] = true
		if p.Shape[0] == b.spec.V {
			continue // the head's, which no product stores the logits of
		}
		_, short, _ := strings.Cut(p.Name, ".")
		cases = append(cases, product(short, N, p.Shape[0], p.Shape[1]))
	}
	cases = append(cases, b.head())
	for n := 256; n <= b.largest; n *= 2 {
		cases = append(cases, product(fmt.Sprintf("square %d", n), n, n, n))
	}
	return cases
}

// head is the loss with the head's products, forward and backward.
func (b *bench) head() kernelCase {
	N, s := b.rows*b.seq, b.spec
	return kernelCase{"head", func(b *program.Builder) int {
		b.HeadLoss(float(b, "x", N, s.D), float(b, "w", s.V, s.D), ids(b, "labels", N), b.Tally())
		b.Backward()
		return N * s.D
	}}
}

// ops are all kernels in the shapes of the configuration.
func (b *bench) ops() []kernelCase {
	N, s := b.rows*b.seq, b.spec
	heads := program.Heads{H: s.H, G: s.G, K: s.K, T: b.seq}
	x := func(b *program.Builder, width int) *program.Value { return float(b, "x", N, width) }
	cases := []kernelCase{
		{"embed", func(b *program.Builder) int {
			return backward(b, b.Embed(float(b, "table", s.V, s.D), ids(b, "tokens", N)))
		}},
		{"rmsnorm", func(b *program.Builder) int {
			return backward(b, b.RMSNorm(x(b, s.D), float(b, "w", s.D), s.Eps))
		}},
		{"rope", func(b *program.Builder) int {
			return backward(b, b.RoPE(x(b, heads.Width()), ids(b, "positions", N), heads, s.Rope))
		}},
		{"attention", func(b *program.Builder) int {
			return backward(b, b.Attention(x(b, heads.Width()), ids(b, "positions", N), heads))
		}},
		{"swiglu", func(b *program.Builder) int { return backward(b, b.SwiGLU(x(b, 2*s.F))) }},
		{"add", func(b *program.Builder) int { return b.Add(x(b, s.D), float(b, "z", N, s.D)).Len() }},
		{"scale", func(b *program.Builder) int { return b.Scale(x(b, s.D), 0.5).Len() }},
		{"bias", func(b *program.Builder) int { return backward(b, b.Bias(x(b, s.D), float(b, "c", s.D))) }},
		product("linear", N, s.D, s.D),
		b.head(),
	}
	return append(cases, b.decodes(heads), b.update())
}

// decodes is what only generation has: attention over a full cache, one token of
// each row, and the most probable words.
func (b *bench) decodes(h program.Heads) kernelCase {
	rows, s := b.rows, b.spec
	return kernelCase{"decode", func(b *program.Builder) int {
		qkv := float(b, "qkv", rows, h.Width())
		cache := b.State("cache", b.Layout().Compute, program.Same, rows, h.T, 2*h.G*h.K)
		y := b.CachedAttention(qkv, cache, ids(b, "slots", rows), ids(b, "last", rows), h)
		w := float(b, "w", s.V, s.D)
		z := float(b, "z", rows, s.D)
		_, lse := b.HeadLoss(z, w, ids(b, "labels", rows), nil)
		b.HeadTop(z, w, lse, 8)
		return y.Len()
	}}
}

// update is the optimizer on one parameter that no cache holds.
func (b *bench) update() kernelCase {
	s, adamw := b.spec, b.adamw()
	rows := min(s.V, max(1, 1<<23/s.D))
	return kernelCase{"update", func(b *program.Builder) int {
		p := program.Param{
			Name: "p", Class: program.Matrix, Shape: []int{rows, s.D}, Parts: []program.Part{{Tensor: "p", Size: rows, Ways: 1}},
		}
		writeUpdate(b, p, adamw)
		return p.Len()
	}}
}

// writeUpdate appends what optim.Update does for one parameter of one rank.
func writeUpdate(b *program.Builder, p program.Param, a optim.AdamW) {
	b.UpdatePhase()
	scalar := func(name string) *program.Value { return b.Input(name, half.F64, 1) }
	state := func(name string) *program.Value { return b.State(name, half.F32, program.Same, p.Shape...) }
	w, g, tally := float(b, "p", p.Shape...), state("dp"), b.Tally()
	slots, weights := b.Zeros(1, 1), b.Zeros(1, 1)
	runs := p.Runs(1)
	b.SumSquares(slots, g, 0, p.Len(), false, runs)
	b.SumSquares(weights, w, 0, p.Len(), false, runs)
	report := b.Clip(slots, weights, tally, scalar("apply"), a.Clip)
	updated := w
	if a.Master {
		updated = state("master")
	}
	adam := program.Adam{Beta1: a.Beta1, Beta2: a.Beta2, Eps: a.Eps, Decay: a.Decay}
	b.AdamW(updated, state("m"), state("v"), g, report, scalar("lr"), scalar("t"), adam,
		program.Rounding{Stochastic: a.Stochastic}, false)
	if a.Master {
		b.CastInto(w, updated)
	}
	b.Clear(g)
	b.Clear(tally)
}
