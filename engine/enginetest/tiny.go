// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"math/rand/v2"
	"testing"

	"pleach/engine"
	"pleach/half"
	"pleach/program"
)

// tiny is the shape of a model of one block.
var tiny = struct{ B, T, V, D, F int }{B: 2, T: 19, V: 67, D: 24, F: 29}

var tinyHeads = program.Heads{H: 4, G: 2, K: 6, T: tiny.T}

// step is the programs of a training step of the tiny model.
type step struct {
	accumulate, update *draw
}

func (s *suite) step(t *testing.T, policy program.Policy) step {
	t.Helper()
	acc := s.begin("accumulate", 1, policy)
	build(t, acc, acc.model)
	for _, v := range acc.p.Held(program.Weight) {
		acc.values(v, func(int) float64 { return 0.3 * acc.NormFloat64() })
	}
	upd := s.begin("update", 2, policy)
	build(t, upd, func() { upd.optimizer(acc.p) })
	for _, v := range upd.held() {
		a, ok := acc.data[v.Name]
		if !ok {
			a = program.NewArray(v) // moments of zero
		}
		upd.data[v.Name] = a
	}
	return step{acc, upd}
}

// build finishes a program that is made by make.
func build(t *testing.T, d *draw, make func()) {
	t.Helper()
	make()
	p, err := d.b.Build(d.outs...)
	if err != nil {
		t.Fatal(err)
	}
	d.p = p
	d.complete()
}

// model is a micro-batch of the tiny model: a block, a tied head, the backward
// half. Its outputs are losses.
func (d *draw) model() {
	b, N, h := d.b, tiny.B*tiny.T, tinyHeads
	table := d.weight("embed", tiny.V, tiny.D)
	positions := d.documents(tiny.B, tiny.T)
	x := b.Keep(b.Embed(table, d.ints("tokens", N, 0, tiny.V)))
	y := b.Linear(b.RMSNorm(x, d.weight("norm.0", tiny.D), 1e-5), d.weight("qkv", h.Width(), tiny.D))
	y = b.RoPE(b.Bias(y, d.weight("qkv.bias", h.Width())), positions, h, program.Rope{Theta: 100})
	x = b.Add(x, b.Linear(b.Attention(y, positions, h), d.weight("out", tiny.D, h.H*h.K)))
	y = b.Linear(b.RMSNorm(x, d.weight("norm.1", tiny.D), 1e-5), d.weight("gateup", 2*tiny.F, tiny.D))
	x = b.Keep(b.Add(x, b.Linear(b.SwiGLU(y), d.weight("down", tiny.D, tiny.F))))
	x = b.Keep(b.RMSNorm(x, d.weight("norm.2", tiny.D), 1e-5))
	loss, _ := b.HeadLoss(x, table, d.labels(N, tiny.V), b.Tally())
	d.out(loss)
	b.Backward()
}

// optimizer is the update of what a program has gradient sums for.
func (d *draw) optimizer(accumulate *program.Program) {
	b := d.b
	b.UpdatePhase()
	lr, t, apply := d.scalar("lr", 0.01), d.scalar("t", 1), d.scalar("apply", 1)
	tally, slots, weights := b.Tally(), b.Zeros(1, 1), b.Zeros(1, 1)
	held := accumulate.Held(program.Weight)
	var ws, sums []*program.Value
	for _, v := range held {
		w, g := d.weight(v.Name, v.Shape...), d.sum("d"+v.Name, v.Shape...)
		runs := []program.Run{{Hi: w.Len(), Copies: 1, Weight: 1}}
		b.SumSquares(slots, g, 0, w.Len(), false, runs)
		b.SumSquares(weights, w, 0, w.Len(), false, runs)
		ws, sums = append(ws, w), append(sums, g)
	}
	report := b.Clip(slots, weights, tally, apply, 1)
	for i, w := range ws {
		m, v := d.sum("m."+w.Name, w.Len()), d.sum("v."+w.Name, w.Len())
		b.AdamW(w, m, v, sums[i], report, lr, t, program.Adam{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: 0.1}, program.Rounding{}, false)
		b.Clear(sums[i])
	}
	b.Clear(tally)
	d.out(report)
}

// feed gives a call the inputs of a micro-batch, which is a function of its
// number.
func (d *draw) feed(c *engine.Call, micro int) {
	rng := rand.New(rand.NewPCG(uint64(micro), 5))
	position := int32(0)
	ints := func(name string) []int32 { return program.View[int32](c.Input(d.p, name)) }
	for n := range tiny.B * tiny.T {
		if n%tiny.T == 0 || rng.IntN(8) == 0 {
			position = 0
		}
		ints("tokens")[n], ints("positions")[n] = int32(rng.IntN(tiny.V)), position
		ints("labels")[n] = int32(rng.IntN(tiny.V+10)) - 10
		position++
	}
}

// compile compiles a drawn program and writes its states.
func (d *draw) compile(t *testing.T, e engine.Engine, slots int) (engine.Executable, *engine.Call) {
	t.Helper()
	x, err := e.Compile(d.p, slots)
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, e)
	return x, d.call()
}

// wholes runs micro-batches one after the other.
func (d *draw) wholes(t *testing.T, e engine.Engine, micros int) results {
	t.Helper()
	x, c := d.compile(t, e, 1)
	var all results
	for m := range micros {
		d.feed(c, m)
		d.exec(t, x, c)
		all = append(all, d.losses(c)...)
	}
	return append(all, d.read(t, e)...)
}

// losses is a copy of the outputs.
func (d *draw) losses(c *engine.Call) results {
	r := d.outputs(c)
	for i, v := range d.p.Outputs {
		a := program.NewArray(v)
		copy(a.Bytes, r[i].Bytes)
		r[i].Array = a
	}
	return r
}

// run makes a step of the tiny model on an engine: some micro-batches, the
// update. It returns the report and all weights and states.
func (s step) run(t *testing.T, e engine.Engine, apply float64) ([]float64, results) {
	t.Helper()
	s.accumulate.wholes(t, e, 2)
	x, err := e.Compile(s.update.p, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := s.update.call()
	program.View[float64](c.Input(s.update.p, "apply"))[0] = apply
	s.update.exec(t, x, c)
	return program.View[float64](c.Out[0]), s.update.read(t, e)
}

// scalars is a program that clears the states new [3] and y of some shape.
func scalars(t *testing.T, kind half.DType, shape ...int) *program.Program {
	t.Helper()
	b := program.New("scalars", program.Layout{Compute: kind, Sum: kind})
	b.UpdatePhase()
	b.Clear(b.State("new", kind, program.Same, 3))
	b.Clear(b.State("y", kind, program.Same, shape...))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
