// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"context"
	"fmt"
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

// NewGenerator compiles the programs that read prompts and that decode, for
// sequences of up to T ids.
func NewGenerator(e engine.Engine, s model.Spec, l program.Layout, T int) (*Generator, error) {
	g := &Generator{spec: s, T: T}
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
		x, err := e.Compile(p, 1)
		if err != nil {
			return nil, err
		}
		c := engine.NewCall(p)
		program.View[int32](c.Input(p, "pick"))[0] = int32(n - 1)
		g.steps = append(g.steps, &extend{
			N: n, x: x, call: c, logits: program.View[float32](c.Out[0]),
			tokens:    program.View[int32](c.Input(p, "tokens")),
			positions: program.View[int32](c.Input(p, "positions")),
		})
	}
	return g, nil
}

// Generate returns up to n ids after a prompt of at least one. It ends early
// after an id of stop, which is returned, when the sequence is full, when ctx is
// done, or when each, called with every new id, returns false.
func (g *Generator) Generate(ctx context.Context, prompt []int32, n int, how Sampling, stop []int32, each func(id int32) bool) ([]int32, error) {
	if err := g.check(prompt); err != nil {
		return nil, err
	}
	if err := how.Check(); err != nil {
		return nil, err
	}
	logits, err := g.append(prompt, 0)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for at := len(prompt); len(ids) < n; at++ {
		id := how.draw(logits, len(ids))
		ids = append(ids, id)
		if each != nil && !each(id) || slices.Contains(stop, id) || at == g.T || ctx.Err() != nil || len(ids) == n {
			break
		}
		if logits, err = g.append(ids[len(ids)-1:], at); err != nil {
			return ids, err
		}
	}
	return ids, nil
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
// logits after the last, valid until the next call.
func (g *Generator) append(ids []int32, at int) ([]float32, error) {
	var logits []float32
	for _, s := range g.steps {
		for len(ids) >= s.N {
			for i := range s.N {
				s.tokens[i], s.positions[i] = ids[i], int32(at+i)
			}
			if err := s.x.Run(s.call).Wait(); err != nil {
				return nil, fmt.Errorf("infer: %w", err)
			}
			ids, at, logits = ids[s.N:], at+s.N, s.logits
		}
	}
	return logits, nil
}
