// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"fmt"
	"iter"
	"slices"

	"pleach/engine"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/program"
)

// Segment is ids that see each other and nothing else: a document or a window
// of one. Labels[i] is the id to score after IDs[0…i], negative for none.
type Segment struct{ IDs, Labels []int32 }

// Whole is the segment of a document whose ids are all scored but the first.
func Whole(ids []int32) Segment {
	labels := make([]int32, len(ids))
	copy(labels, ids[1:])
	labels[len(ids)-1] = -1
	return Segment{ids, labels}
}

// Scored is what a segment got. The slices are valid until the next one. Where
// weights are such that float32 overflows, losses are not finite; that is for
// whoever uses them to judge.
type Scored struct {
	Loss []float32 // minus the log-probability of each label, 0 for none: nats
	Top  []float32 // [len,k,2] (id, log-probability) pairs, nil without k
}

// Scorer packs segments into rows, where each is masked from its neighbours,
// and runs them. The numbers of a segment do not depend on what it was packed
// with.
type Scorer struct {
	x     engine.Executable
	call  *engine.Call
	batch model.Batch
	vocab int
	top   int

	tokens, labels, positions []int32
	loss, found               []float32
}

// NewScorer compiles a score program for rows of batch, with the top most
// probable ids of each position if top is not zero.
func NewScorer(e engine.Engine, s model.Spec, l program.Layout, batch model.Batch, top int) (*Scorer, error) {
	p, err := model.Score(s, l, 0, batch, top)
	if err != nil {
		return nil, err
	}
	x, err := e.Compile(p, 1)
	if err != nil {
		return nil, err
	}
	c := engine.NewCall(p)
	ids := func(name string) []int32 { return program.View[int32](c.Input(p, name)) }
	r := &Scorer{
		x: x, call: c, batch: batch, vocab: s.V, top: top,
		tokens: ids("tokens"), labels: ids("labels"), positions: ids("positions"),
		loss: program.View[float32](c.Out[0]),
	}
	if top > 0 {
		r.found = program.View[float32](c.Out[1])
	}
	return r, nil
}

// Vocabulary is one more than the largest id that can be scored.
func (s *Scorer) Vocabulary() int { return s.vocab }

// place is where a segment lies in the batch.
type place struct{ index, at, n int }

// Score hands out the results of segments in their order, i counting from 0. A
// segment goes into the first row that has room for it; when none has, the batch
// runs. Score stops at the first error, its own or the callback's.
func (s *Scorer) Score(segments iter.Seq[Segment], yield func(i int, r Scored) error) error {
	var held []place
	used := make([]int, s.batch.B) // ids in each row
	flush := func() error {
		err := s.run(held, yield)
		held = held[:0]
		clear(used)
		s.clear()
		return err
	}
	s.clear()
	i := 0
	for seg := range segments {
		if err := s.check(i, seg); err != nil {
			return err
		}
		n := len(seg.IDs)
		room := func(u int) bool { return u+n <= s.batch.T }
		row := slices.IndexFunc(used, room)
		if row < 0 {
			if err := flush(); err != nil {
				return err
			}
			row = 0
		}
		at := row*s.batch.T + used[row]
		held = append(held, place{i, at, n})
		s.put(seg, at)
		used[row] += n
		i++
	}
	return flush()
}

func (s *Scorer) check(i int, seg Segment) error {
	if n := len(seg.IDs); n < 1 || n > s.batch.T || len(seg.Labels) != n {
		return fault.Dataf("infer: scoring segment %d: %d ids with %d labels, want 1 to %d of each",
			i, n, len(seg.Labels), s.batch.T)
	}
	for j, id := range seg.IDs {
		if id < 0 || int(id) >= s.vocab {
			return fault.Dataf("infer: scoring segment %d: id %d at %d: the vocabulary has %d", i, id, j, s.vocab)
		}
		if int(seg.Labels[j]) >= s.vocab {
			return fault.Dataf("infer: scoring segment %d: label %d at %d: the vocabulary has %d",
				i, seg.Labels[j], j, s.vocab)
		}
	}
	return nil
}

func (s *Scorer) put(seg Segment, at int) {
	copy(s.tokens[at:], seg.IDs)
	copy(s.labels[at:], seg.Labels)
	for j := range seg.IDs {
		s.positions[at+j] = int32(j)
	}
}

// clear leaves documents of one id each, of which nothing is scored.
func (s *Scorer) clear() {
	clear(s.tokens)
	clear(s.positions)
	for i := range s.labels {
		s.labels[i] = -1
	}
}

func (s *Scorer) run(held []place, yield func(int, Scored) error) error {
	if len(held) == 0 {
		return nil
	}
	if err := s.x.Run(s.call).Wait(); err != nil {
		return fmt.Errorf("infer: %w", err)
	}
	for _, p := range held {
		r := Scored{Loss: s.loss[p.at : p.at+p.n]}
		if s.top > 0 {
			r.Top = s.found[2*s.top*p.at : 2*s.top*(p.at+p.n)]
		}
		if err := yield(p.index, r); err != nil {
			return err
		}
	}
	return nil
}
