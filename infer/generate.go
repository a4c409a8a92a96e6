// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"context"
	"math"
	"slices"

	"pleach/engine"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/program"
)

// Generator extends sequences, with a cache of keys and values: one, or several at a
// time.
type Generator struct {
	spec   model.Spec
	T      int // the longest sequence
	slots  int
	steps  []*extend // of one sequence, by size
	decode *extend   // of a token for each slot; nil if there is one
}

// extend is a program that appends N ids and gives logits [M,V] of some.
type extend struct {
	N      int
	x      engine.Executable
	call   *engine.Call
	logits []float32

	tokens, positions, slots []int32
}

// pieces are the numbers of ids that a prompt is read in: as many as possible of
// the largest, then of the next.
var pieces = []int{512, 64, 8, 1}

// Programs are what a generator of sequences of up to T ids compiles, for predictions
// of memory: those that read prompts, the one that decodes and, with several slots, the
// one that decodes all of them.
func Programs(s model.Spec, l program.Layout, T, slots int) ([]*program.Program, error) {
	if T < 1 || T > s.MaxT {
		return nil, fault.Configf("infer: generating: sequences of %d ids, want 1 to %d, the model's positions",
			T, s.MaxT)
	}
	if err := checkSlots(slots); err != nil {
		return nil, err
	}
	var list []*program.Program
	add := func(name string, n, m int) error {
		p, err := model.Extend(name, s, l, 0, model.Window{N: n, M: m, Slots: slots, T: T})
		list = append(list, p)
		return err
	}
	for _, n := range pieces {
		name := "prefill"
		if n == 1 {
			name = "decode"
		}
		if n > T {
			continue
		}
		if err := add(name, n, 1); err != nil {
			return nil, err
		}
	}
	if slots > 1 {
		if err := add("decode.all", slots, slots); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// NewGenerator compiles [Programs]. The caches are states of the engine, which
// holds those of one generator.
func NewGenerator(e engine.Engine, s model.Spec, l program.Layout, T, slots int) (*Generator, error) {
	programs, err := Programs(s, l, T, slots)
	if err != nil {
		return nil, err
	}
	g := &Generator{spec: s, T: T, slots: slots}
	for _, p := range programs {
		x, err := e.Compile(p, 1)
		if err != nil {
			return nil, err
		}
		g.steps = append(g.steps, newExtend(x))
	}
	if last := len(g.steps) - 1; slots > 1 {
		g.steps, g.decode = g.steps[:last], g.steps[last]
		pick := program.View[int32](g.decode.call.Input(programs[last], "pick"))
		for i := range slots {
			g.decode.slots[i], pick[i] = int32(i), int32(i)
		}
	}
	return g, nil
}

// newExtend gives the logits of the last token.
func newExtend(x engine.Executable) *extend {
	p := x.Program()
	c := engine.NewCall(p)
	ids := func(name string) []int32 { return program.View[int32](c.Input(p, name)) }
	s := &extend{
		x: x, call: c, logits: program.View[float32](c.Out[0]),
		tokens: ids("tokens"), positions: ids("positions"), slots: ids("slots"),
	}
	s.N = len(s.tokens)
	ids("pick")[0] = int32(s.N - 1)
	return s
}

// Generate returns up to n ids after a prompt of at least one. It ends early
// after an id of stop, which is returned, when the sequence is full, when ctx is
// done, which is no error, or when each, called with every new id, returns false.
//
// Logits that are not finite are an error of kind [fault.Data]: the weights are
// such that float32 overflows.
func (g *Generator) Generate(
	ctx context.Context, prompt []int32, n int, how Sampling, stop []int32, each func(id int32) bool,
) ([]int32, error) {
	if err := g.check(prompt); err != nil {
		return nil, err
	}
	if err := how.Check(); err != nil {
		return nil, err
	}
	logits, err := g.append(ctx, prompt, 0, 0)
	var ids []int32
	for at := len(prompt); len(ids) < n && logits != nil; at++ {
		id := how.draw(logits, len(ids))
		ids = append(ids, id)
		if each != nil && !each(id) || slices.Contains(stop, id) || at == g.T || len(ids) == n {
			break
		}
		logits, err = g.append(ctx, ids[len(ids)-1:], at, 0)
	}
	return ids, err
}

func (g *Generator) check(prompt []int32) error {
	if len(prompt) < 1 || len(prompt) > g.T {
		return fault.Dataf("infer: generating: a prompt of %d ids, want 1 to %d", len(prompt), g.T)
	}
	for i, id := range prompt {
		if id < 0 || int(id) >= g.spec.V {
			return fault.Dataf("infer: generating: id %d at %d of the prompt: the vocabulary has %d", id, i, g.spec.V)
		}
	}
	return nil
}

// append runs ids, the first at a position, through the model and returns the
// logits after the last, valid until the next call; nil if ctx was done before.
func (g *Generator) append(ctx context.Context, ids []int32, at, slot int) ([]float32, error) {
	var logits []float32
	for _, s := range g.steps {
		for len(ids) >= s.N {
			if ctx.Err() != nil {
				return nil, nil
			}
			for i := range s.N {
				s.tokens[i], s.positions[i], s.slots[i] = ids[i], int32(at+i), int32(slot)
			}
			if err := s.run(); err != nil {
				return nil, err
			}
			ids, at, logits = ids[s.N:], at+s.N, s.logits
		}
	}
	if err := finite(logits, at); err != nil {
		return nil, err
	}
	return logits, nil
}

// finite refuses the logits at a position that mean nothing.
func finite(logits []float32, at int) error {
	for v, z := range logits {
		if math.IsNaN(float64(z)) || math.IsInf(float64(z), 0) {
			return fault.Dataf("infer: generating: the logit of id %d at position %d is %v, want a finite number: "+
				"the model computes beyond float32", v, at, z)
		}
	}
	return nil
}
