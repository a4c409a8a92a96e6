// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"fmt"
	"io"
	"slices"

	"pleach/internal/fault"
)

// A Row is T+1 ids in a row, and what to make of them. It belongs to whom it is
// given; its slices share memory with nothing else.
type Row struct {
	IDs []int32 // [T+1]
	// Labels[i] is IDs[i+1], or −1 where that is no target: [T].
	Labels []int32
	// Positions restart at 0 where a document starts if documents are masked,
	// and are 0 … T−1 if they are joined: [T].
	Positions []int32
	Docs      []Span
	Index     int64 // g, counted over all ranks from the start of the run
	Lane      int   // g mod L
}

// A Span is the part of a document that lies in a row.
type Span struct {
	ID       string
	Source   int // index into Spec.Sources
	From, To int // ids From … To−1 of the row
	Offset   int // index in the document, with its special ids, of id From
}

// laneState is where a lane is: before the document that its next row starts
// in, and how many ids of it have been served.
type laneState struct {
	rows   int64
	offset int // of whole documents: how many rows of the window
	stage  int // in which the document, or the window, was chosen
	padded int64
	before []Cursor // by source; not written to once made
}

// A lane is an endless stream of ids cut into rows. It is used by one goroutine.
type lane struct {
	spec    *Spec
	enc     Encoder
	number  int
	stages  []stage
	readers []reader
	dead    []bool // sources exhausted for this lane
	changed bool   // the files may be others than those of the state
	c       scratch

	rows   int64
	stage  int      // in which the document in hand was chosen
	before []Cursor // before it
	doc    Document
	source int
	ids    []int32 // of the document in hand, with special ids
	mask   []uint8 // nil: all 1
	off    int     // the first id not used up
	buf    []int32
}

func newLane(l *Loader, number int, at laneState) *lane {
	n := &lane{
		spec: &l.spec, enc: l.enc, number: number, stages: l.stages, rows: at.rows,
		stage: at.stage, dead: make([]bool, len(l.sources)), changed: l.accept,
	}
	n.c.clock = newClock(l.spec.Times)
	for i, s := range l.sources {
		n.readers = append(n.readers, reader{
			source: s, seed: l.spec.Seed, lane: number, shuffled: l.spec.Shuffle != "none",
			at: at.before[i], note: s.example,
		})
		n.dead[i] = n.readers[i].spent()
	}
	return n
}

// resume takes up the document that was being served. Even if its first id comes
// next it is taken here, in the stage in which it was chosen.
func (n *lane) resume(offset int) error {
	if n.rows == 0 && offset == 0 {
		return nil
	}
	if err := n.take(); err != nil {
		return err
	}
	if n.changed && offset >= len(n.ids) {
		offset = len(n.ids)
	} else if offset >= len(n.ids) {
		return fault.Statef("data: lane %d: document %s has %d ids, want more than %d: "+
			"the state is damaged or of other documents", n.number, n.doc.ID, len(n.ids), offset)
	}
	n.off = offset
	return nil
}

func (n *lane) state() laneState {
	return laneState{rows: n.rows, offset: n.off, stage: n.stage, before: n.before}
}

func (n *lane) watch() *clock { return n.c.clock }

func (n *lane) close() { n.c.close() }

// row is the next row of the lane; io.EOF when its sources are exhausted.
func (n *lane) row() (Row, error) {
	T := n.spec.Sequence
	r := n.newRow()
	for i := 0; i <= T; {
		if n.off == len(n.ids) {
			if err := n.load(); err != nil {
				return Row{}, err
			}
		}
		k := copy(r.IDs[i:], n.ids[n.off:])
		r.put(i, k, n.off, n.mask, n.spec.Joined)
		r.Docs = append(r.Docs, Span{n.doc.ID, n.source, i, i + k, n.off})
		i += k
		n.off += k
	}
	n.off-- // rows overlap by one id
	n.rows++
	return r, nil
}

// newRow is the next row of the lane, without its ids.
func (n *lane) newRow() Row {
	r := newRow(n.spec.Sequence)
	r.Lane, r.Index = n.number, n.index()
	return r
}

// index is g of the next row of the lane.
func (n *lane) index() int64 { return int64(n.number) + n.rows*int64(n.spec.Lanes) }

func newRow(T int) Row {
	all := make([]int32, 3*T+1)
	return Row{IDs: all[: T+1 : T+1], Labels: all[T+1 : 2*T+1 : 2*T+1], Positions: all[2*T+1:]}
}

// put sets labels and positions of k ids from i on, which are ids off … off+k−1
// of their document.
func (r *Row) put(i, k, off int, mask []uint8, joined bool) {
	for j := range k {
		if i+j < len(r.Positions) {
			r.Positions[i+j] = int32(j)
			if joined {
				r.Positions[i+j] = int32(i + j)
			}
		}
		if i+j == 0 {
			continue // a target of the row before, or of none
		}
		first := off+j == 0 && !joined // nothing of the document has been seen
		if first || mask != nil && mask[off+j] == 0 {
			r.Labels[i+j-1] = -1
		} else {
			r.Labels[i+j-1] = r.IDs[i+j]
		}
	}
}

// load takes the next document of the lane in hand, in the stage of the row that
// it is for.
func (n *lane) load() error {
	n.advance()
	return n.take()
}

// cursors is where the lane is in each source, after the document in hand.
func (n *lane) cursors() []Cursor {
	at := make([]Cursor, len(n.readers))
	for i := range n.readers {
		at[i] = n.readers[i].at
	}
	return at
}

// advance enters the stage of the next row.
func (n *lane) advance() {
	if s := stageOf(n.stages, n.index()); s != n.stage {
		n.stage = s
		for i := range n.readers {
			at := &n.readers[i].at
			at.Since = at.Tokens
		}
	}
}

// take takes the next document in hand, in the stage that the lane is in.
func (n *lane) take() error {
	before := n.cursors()
	for {
		s := n.pick()
		if s < 0 {
			return io.EOF
		}
		d, ok, err := n.readers[s].next(&n.c)
		if err != nil {
			return err
		}
		if !ok {
			n.dead[s] = true
			continue
		}
		n.before, n.doc, n.source = before, d, s
		if err := n.encode(d); err != nil {
			return err
		}
		at := &n.readers[s].at
		at.Tokens += int64(len(n.ids))
		at.Documents++
		n.off = 0
		return nil
	}
}

// pick is the source with the largest deficit, the first among equals, −1 if all
// are exhausted:
//
//	deficit[s] = share[s] · Σ tokens − tokens[s], tokens since the stage began
//
// over the sources that still have documents, so that those keep the proportions
// of their weights when another one ends.
func (n *lane) pick() int {
	shares := n.stages[n.stage].shares
	total, sum := int64(0), 0.0
	for s := range n.readers {
		if !n.dead[s] && shares[s] > 0 {
			total += n.readers[s].taken()
			sum += shares[s]
		}
	}
	best, most := -1, 0.0
	for s := range n.readers {
		if n.dead[s] || shares[s] == 0 {
			continue
		}
		want := float64(shares[s] / sum * float64(total))
		if d := want - float64(n.readers[s].taken()); best < 0 || d > most {
			best, most = s, d
		}
	}
	return best
}

// encode makes the ids of the stream from a document: those of its text, or its
// own, after begin-of-sequence if asked for, before end-of-sequence. Ids that
// came with these get no second one. A mask goes on over the id added at the
// end, which counts if the last id does, and does not over that at the start.
func (n *lane) encode(d Document) error {
	defer n.c.clock.enter(n.c.clock.enter(Encoding))
	p, first, last := n.spec, true, true
	ids := n.buf[:0]
	if d.IDs != nil && !d.encoded {
		first, last = d.IDs[0] != p.BOS, d.IDs[len(d.IDs)-1] != p.EOS
	}
	first = first && p.AddBOS
	if first {
		ids = append(ids, p.BOS)
	}
	ids, err := n.append(ids, d)
	if err != nil {
		return err
	}
	if last {
		ids = append(ids, p.EOS)
	}
	n.buf, n.ids, n.mask = ids, ids, nil
	if d.Mask != nil {
		m := slices.Clone(d.Mask)
		if first {
			m = slices.Insert(m, 0, 0)
		}
		if last {
			m = append(m, m[len(m)-1])
		}
		n.mask = m
	}
	return nil
}

// append appends the ids of a document, without special ones.
func (n *lane) append(ids []int32, d Document) ([]int32, error) {
	if d.IDs != nil {
		return append(ids, d.IDs...), n.check(d, d.IDs)
	}
	if n.enc == nil {
		return nil, fault.Configf("data: %s is text: want a tokenizer", d.ID)
	}
	from := len(ids)
	ids = n.enc.Encode(ids, d.Text)
	if e, ok := n.enc.(interface{ Err() error }); ok && e.Err() != nil {
		return nil, fmt.Errorf("data: %s: %w", d.ID, e.Err())
	}
	return ids, n.check(d, ids[from:])
}

// bare is the ids of a document, without special ones, until the next call.
func (n *lane) bare(d Document) (_ []int32, err error) {
	n.buf, err = n.append(n.buf[:0], d)
	return n.buf, err
}

// check refuses ids that the model has no row for: they come from a tokenizer
// that is not the model's.
func (n *lane) check(d Document, ids []int32) error {
	if n.spec.Vocabulary == 0 {
		return nil
	}
	for i, id := range ids {
		if id < 0 || int(id) >= n.spec.Vocabulary {
			return fault.Configf("data: %s: the tokenizer gives id %d at %d, want 0 … %d: "+
				"it is not the tokenizer of the model", d.ID, id, i, n.spec.Vocabulary-1)
		}
	}
	return nil
}
