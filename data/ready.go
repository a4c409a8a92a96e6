// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"io"
	"math"

	"pleach/internal/fault"
)

// ready is a lane of ready rows: row g is line g modulo the number of lines,
// whatever the seed says.
type ready struct {
	spec   *Spec
	src    *source
	refs   []ref // of lines; rows that are packed have none
	count  int64 // of them
	number int
	rows   int64
	limit  int64 // rows of the run
	c      scratch
}

func newReady(l *Loader, number int, at laneState) (*ready, error) {
	s := l.sources[0]
	count, err := s.readyRows()
	if err != nil {
		return nil, err
	}
	n := &ready{
		spec: &l.spec, src: s, refs: s.whole.refs, count: count, number: number, rows: at.rows,
		limit: math.MaxInt64, c: scratch{clock: newClock(l.spec.Times)},
	}
	if s.Epochs > 0 {
		n.limit = int64(s.Epochs * float64(count))
	}
	return n, nil
}

// readyRows is how many ready rows a source has.
func (s *source) readyRows() (int64, error) {
	if s.packed != nil {
		return s.packed.Rows, nil
	}
	refs, err := s.all()
	return int64(len(refs)), err
}

func (n *ready) watch() *clock { return n.c.clock }

func (n *ready) close() { n.c.close() }

func (n *ready) state() laneState {
	epoch := (n.rows*int64(n.spec.Lanes) + int64(n.number)) / n.count
	T := int64(n.spec.Sequence)
	return laneState{rows: n.rows, before: []Cursor{{
		Epoch: epoch, Tokens: n.rows * T, Documents: n.rows,
	}}}
}

func (n *ready) row() (Row, error) {
	g := int64(n.number) + n.rows*int64(n.spec.Lanes)
	if g >= n.limit {
		return Row{}, io.EOF
	}
	r := newRow(n.spec.Sequence)
	r.Index, r.Lane = g, n.number
	var err error
	if n.src.packed != nil {
		err = n.src.packedRow(g%n.count, &r, &n.c)
	} else {
		err = n.line(n.refs[g%n.count], &r)
	}
	if err != nil {
		return Row{}, err
	}
	n.rows++
	return r, nil
}

// line makes a row of a line or of a table's row.
func (n *ready) line(at ref, r *Row) error {
	d, why, err := n.src.read(at, &n.c)
	if err != nil {
		return err
	}
	T := n.spec.Sequence
	if why != none || len(d.IDs) != T+1 {
		if why == none && d.IDs == nil {
			return n.src.bad(at, 0, "field %q: got a text, want a row of %d ids",
				n.src.Field, T+1)
		}
		return n.src.bad(at, 0, "field %q: a row has %d ids, want the sequence and one: %d",
			n.src.Field, len(d.IDs), T+1)
	}
	copy(r.IDs, d.IDs)
	r.put(0, T+1, 0, d.Mask, n.spec.Joined)
	r.Docs = []Span{{ID: d.ID, To: T + 1}}
	return nil
}

// checkReady refuses ready rows beside other sources: row g is line g, so there
// is nothing to mix. Packed rows are of one length and kind.
func checkReady(sources []*source, spec *Spec) error {
	for _, s := range sources {
		if p := s.packed; p != nil && (p.Sequence != spec.Sequence || p.Joined != spec.Joined) {
			return fault.Configf("data: %s: its rows are of sequence %d, joined %v: want sequence %d, joined %v",
				p.dir, p.Sequence, p.Joined, spec.Sequence, spec.Joined)
		}
		if s.Rows && len(sources) > 1 {
			return fault.Configf("data: source %s has ready rows (rows: true): "+
				"want it to be the only source, got %d", s.Name, len(sources))
		}
	}
	return nil
}
