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
	refs   []ref
	number int
	rows   int64
	limit  int64 // rows of the run
	c      scratch
}

func newReady(l *Loader, number int, at laneState) (*ready, error) {
	s := l.sources[0]
	refs, err := s.all()
	if err != nil {
		return nil, err
	}
	n := &ready{
		spec: &l.spec, src: s, refs: refs, number: number, rows: at.rows,
		limit: math.MaxInt64, c: scratch{clock: newClock(l.spec.Times)},
	}
	if s.Epochs > 0 {
		n.limit = int64(s.Epochs * float64(len(refs)))
	}
	return n, nil
}

func (n *ready) watch() *clock { return n.c.clock }

func (n *ready) close() { n.c.close() }

func (n *ready) state() laneState {
	epoch := (n.rows*int64(n.spec.Lanes) + int64(n.number)) / int64(len(n.refs))
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
	at := n.refs[g%int64(len(n.refs))]
	d, why, err := n.src.read(at, &n.c)
	if err != nil {
		return Row{}, err
	}
	T := n.spec.Sequence
	if why != none || len(d.IDs) != T+1 {
		if why == none && d.IDs == nil {
			return Row{}, n.src.bad(at, 0, "field %q: got a text, want a row of %d ids",
				n.src.Field, T+1)
		}
		return Row{}, n.src.bad(at, 0, "field %q: a row has %d ids, want the sequence and one: %d",
			n.src.Field, len(d.IDs), T+1)
	}
	r := newRow(T)
	copy(r.IDs, d.IDs)
	r.put(0, T+1, 0, d.Mask, n.spec.Joined)
	r.Docs = []Span{{ID: d.ID, To: T + 1}}
	r.Index, r.Lane = g, n.number
	n.rows++
	return r, nil
}

// checkReady refuses ready rows beside other sources: row g is line g, so there
// is nothing to mix.
func checkReady(sources []*source) error {
	for _, s := range sources {
		if s.Rows && len(sources) > 1 {
			return fault.Configf("data: source %s has ready rows (rows: true): "+
				"want it to be the only source, got %d", s.Name, len(sources))
		}
	}
	return nil
}
