// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"context"
	"fmt"
	"math"
	"slices"

	"pleach/engine"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/program"
)

// Generator extends one sequence at a time, with a cache of keys and values.
type Generator struct {
	spec  model.Spec
	T     int // the longest sequence
	steps []*extend
}

// extend is a program that appends N ids and gives the logits of the last.
type extend struct {
	N      int
	x      engine.Executable
	call   *engine.Call
	logits []float32

	tokens, positions []int32
}

// pieces are the numbers of ids that a prompt is read in: as many as possible of
// the largest, then of the next.
var pieces = []int{64, 8, 1}

// Programs are what a generator of sequences of up to T ids compiles: those that
// read prompts and the one that decodes, for predictions of memory.
func Programs(s model.Spec, l program.Layout, T int) ([]*program.Program, error) {
	if T < 1 || T > s.MaxT {
		return nil, fault.Configf("infer: generating: sequences of %d ids, want 1 to %d, the model's positions",
			T, s.MaxT)
	}
	var list []*program.Program
	for _, n := range pieces {
		if n > T {
			continue
		}
		name := "prefill"
		if n == 1 {
			name = "decode"
		}
		p, err := model.Extend(name, s, l, 0, model.Window{N: n, M: 1, Slots: 1, T: T})
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// NewGenerator compiles [Programs]. The caches are states of the engine, which
// holds those of one generator.
func NewGenerator(e engine.Engine, s model.Spec, l program.Layout, T int) (*Generator, error) {
	programs, err := Programs(s, l, T)
	if err != nil {
		return nil, err
	}
	g := &Generator{spec: s, T: T}
	for _, p := range programs {
		x, err := e.Compile(p, 1)
		if err != nil {
			return nil, err
		}
		c := engine.NewCall(p)
		tokens := program.View[int32](c.Input(p, "tokens"))
		n := len(tokens)
		program.View[int32](c.Input(p, "pick"))[0] = int32(n - 1)
		step := &extend{
			N: n, x: x, call: c, tokens: tokens, positions: program.View[int32](c.Input(p, "positions")),
			logits: program.View[float32](c.Out[0]),
		}
		g.steps = append(g.steps, step)
	}
	return g, nil
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
	logits, err := g.append(ctx, prompt, 0)
	var ids []int32
	for at := len(prompt); len(ids) < n && logits != nil; at++ {
		id := how.draw(logits, len(ids))
		ids = append(ids, id)
		if each != nil && !each(id) || slices.Contains(stop, id) || at == g.T || len(ids) == n {
			break
		}
		logits, err = g.append(ctx, ids[len(ids)-1:], at)
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
func (g *Generator) append(ctx context.Context, ids []int32, at int) ([]float32, error) {
	var logits []float32
	for _, s := range g.steps {
		for len(ids) >= s.N {
			if ctx.Err() != nil {
				return nil, nil
			}
			for i := range s.N {
				s.tokens[i], s.positions[i] = ids[i], int32(at+i)
			}
			if err := s.x.Run(s.call).Wait(); err != nil {
				return nil, fmt.Errorf("infer: %w", err)
			}
			ids, at, logits = ids[s.N:], at+s.N, s.logits
		}
	}
	for v, z := range logits {
		if math.IsNaN(float64(z)) || math.IsInf(float64(z), 0) {
			return nil, fault.Dataf("infer: generating: the logit of id %d at position %d is %v, want a finite number: "+
				"the model computes beyond float32", v, at, z)
		}
	}
	return logits, nil
}
