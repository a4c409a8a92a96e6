// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"iter"

	"pleach/engine/cpu"
	"pleach/infer"
	"pleach/model"
	"pleach/plan"
	"pleach/program"
)

// scorer scores segments of any length with programs of the shape that they
// need: a few short rows do not cost what many long ones do. What a segment gets
// does not depend on the shape.
//
// The first segments, [ahead] ids of them, decide the first shape. Where a longer
// one follows, a program for rows of at least twice the length joins in, so that
// all programs together take little more than the last one.
type scorer struct {
	compute
	source *source
	top    int
	where  func(i int) string // names the i-th segment not yet scored; may be nil

	engine   *cpu.Engine
	undo     func() // of a limit to memory
	programs []*program.Program
	shape    model.Batch
	score    *infer.Scorer
}

// ahead is also the number of ids that a program computes at a time, as far as
// rows are not longer.
const ahead = plan.Enough

func (s *scorer) close() {
	if s.engine != nil {
		s.undo()
		_ = s.engine.Close()
	}
}

// Vocabulary is one more than the largest id.
func (s *scorer) Vocabulary() int { return s.source.config.V }

// Score is [infer.Scorer.Score] for segments of up to the model's positions.
func (s *scorer) Score(segments iter.Seq[infer.Segment], yield func(i int, r infer.Scored) error) error {
	next, stop := iter.Pull(segments)
	defer stop()
	var held []infer.Segment // read, not given to a program yet
	for ids := 0; ids < ahead; ids += len(held[len(held)-1].IDs) {
		seg, ok := next()
		if !ok {
			break
		}
		held = append(held, seg)
	}
	done := 0
	for len(held) > 0 {
		if err := s.fit(held); err != nil {
			return err
		}
		first := done
		fitting := func(give func(infer.Segment) bool) {
			for len(held) > 0 && len(held[0].IDs) <= s.shape.T {
				seg := held[0]
				if held = held[1:]; len(held) == 0 {
					if more, ok := next(); ok {
						held = append(held, more)
					}
				}
				if done++; !give(seg) {
					return
				}
			}
		}
		err := s.score.Score(fitting, func(i int, r infer.Scored) error { return yield(first+i, r) })
		if err != nil {
			return err
		}
	}
	return nil
}

// fit makes sure that there is a program for the longest of these segments.
func (s *scorer) fit(held []infer.Segment) error {
	longest, at, total := 0, 0, 0
	for i, seg := range held {
		if total += len(seg.IDs); len(seg.IDs) > longest {
			longest, at = len(seg.IDs), i
		}
	}
	if longest <= s.shape.T {
		return nil
	}
	err := s.grow(shapeFor(longest, total, s.shape.T, s.source.config.MaxT))
	if err != nil && s.where != nil {
		return fmt.Errorf("%s: %w", s.where(at), err)
	}
	return err
}

// shapeFor is a batch for rows of up to longest ids: a multiple of 16, at least
// twice what was before, at most the model's positions, and as many rows as
// total ids need, at most about [ahead].
func shapeFor(longest, total, before, most int) model.Batch {
	T := max((longest+15)/16*16, 2*before)
	T = max(min(T, most), longest)
	return model.Batch{B: min(max(1, ahead/T), (total+T-1)/T), T: T}
}

// grow compiles a program of a shape, or of fewer rows where memory is short.
// The first time it loads the weights.
func (s *scorer) grow(b model.Batch) error {
	c, layout := s.source.config, s.layout(s.source)
	var p *program.Program
	for ; ; b.B = 1 {
		var err error
		if p, err = model.Score(c.Spec, layout, 0, b, s.top); err != nil {
			return err
		}
		what := fmt.Sprintf("model %s with %d rows of %d ids", s.source.dir, b.B, b.T)
		if s.engine == nil {
			err = fitsMemory(what, s.options(), p)
		} else {
			err = fitsBeside(s.engine, what, append(s.programs, p)...)
		}
		if err == nil {
			break
		}
		if b.B == 1 {
			return err
		}
	}
	first := s.engine == nil
	if first {
		s.engine, s.undo = cpu.New(s.options()), func() {}
	}
	score, err := infer.NewScorer(s.engine, c.Spec, layout, b, s.top)
	if err != nil {
		return err
	}
	s.score, s.shape, s.programs = score, b, append(s.programs, p)
	s.undo()
	s.undo = restrain(s.engine)
	if first {
		return s.source.load(s.engine, layout)
	}
	return nil
}
