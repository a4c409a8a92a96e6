// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"cmp"
	"io"
	"math/bits"
	"slices"

	"pleach/internal/fault"
)

// packWindow is how many rows of ids are packed at a time: more waste less and
// hold more.
const packWindow = 64

// A packer is a lane whose documents are not cut where a row can hold them. It
// takes a window of documents, packs it into rows by best fit, largest first, and
// goes on with another window when those are served. Where it is in a run is where
// its window began and how many rows of that are served.
//
// A document of more than T+1 ids is cut into pieces of T+1 that overlap by one
// id, as rows of a lane do, and what is left at its end is packed with others. What
// no document fills is end-of-sequence, attends to itself only, and is no target.
//
// Johnson, "Near-optimal bin packing algorithms", 1973: best fit decreasing needs
// at most 11/9 of the least possible number of rows, and 4 more.
type packer struct {
	lane   *lane
	before laneState // before the window
	rows   []packed
	served int
	padded int64 // in the rows served
	ended  bool
}

// whole is a document of a window.
type whole struct {
	id     string
	source int
	ids    []int32
	mask   []uint8
}

// piece is ids from … to−1 of document doc.
type piece struct{ doc, from, to int }

func (p piece) len() int { return p.to - p.from }

// packed is the pieces of a row, in the order of their documents.
type packed struct {
	pieces []piece
	docs   []whole
	used   int
}

func newPacker(n *lane, at laneState) (*packer, error) {
	p := &packer{lane: n, padded: at.padded, before: at}
	if at.offset == 0 {
		return p, nil
	}
	if err := p.fill(n.take); err != nil {
		return nil, err
	}
	if n.changed {
		at.offset = min(at.offset, len(p.rows))
	}
	if at.offset > len(p.rows) {
		return nil, fault.Statef("data: lane %d: the window has %d rows, want %d or more: "+
			"the state is damaged or of other documents", n.number, len(p.rows), at.offset)
	}
	p.served = at.offset
	return p, nil
}

func (p *packer) watch() *clock { return p.lane.watch() }

func (p *packer) close() { p.lane.close() }

func (p *packer) state() laneState {
	at := p.before
	at.rows, at.offset, at.padded = p.lane.rows, p.served, p.padded
	return at
}

// row is the next row; io.EOF when the sources are exhausted.
func (p *packer) row() (Row, error) {
	if p.served == len(p.rows) {
		if p.ended {
			return Row{}, io.EOF
		}
		if err := p.fill(p.lane.load); err != nil {
			return Row{}, err
		}
	}
	r := p.lane.newRow()
	p.padded += int64(p.rows[p.served].write(&r, p.lane.spec))
	p.served++
	p.lane.rows++
	if p.served == len(p.rows) && !p.ended { // the next state is before a new window
		p.before = laneState{stage: p.lane.stage, before: p.lane.cursors()}
		p.rows, p.served = nil, 0
	}
	return r, nil
}

// fill takes documents for a window, the first one by first, and packs them.
func (p *packer) fill(first func() error) error {
	T, n := p.lane.spec.Sequence, p.lane
	var docs []whole
	for total := 0; total < packWindow*(T+1); {
		err := first()
		if first = n.take; err == io.EOF && docs != nil {
			p.ended = true
			break
		}
		if err != nil {
			return err
		}
		if docs == nil {
			p.before = n.state()
		}
		docs = append(docs, whole{n.doc.ID, n.source, slices.Clone(n.ids), slices.Clone(n.mask)})
		total += len(n.ids)
	}
	p.rows, p.served = pack(docs, T), 0
	return nil
}

// pack puts documents into rows of T+1 ids.
func pack(docs []whole, T int) []packed {
	var pieces []piece
	for i, d := range docs {
		from := 0
		for ; len(d.ids)-from > T+1; from += T {
			pieces = append(pieces, piece{i, from, from + T + 1})
		}
		pieces = append(pieces, piece{i, from, len(d.ids)})
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(b.len(), a.len()) })
	rows := make([]packed, 0, len(pieces))
	free := newFit(T+1, len(pieces))
	for _, pc := range pieces {
		i := free.least(pc.len())
		if i < 0 {
			i = len(rows)
			rows = append(rows, packed{docs: docs})
		}
		rows[i].pieces = append(rows[i].pieces, pc)
		rows[i].used += pc.len()
		free.set(i, T+1-rows[i].used)
	}
	for i := range rows {
		slices.SortFunc(rows[i].pieces, func(a, b piece) int {
			return cmp.Or(cmp.Compare(a.doc, b.doc), cmp.Compare(a.from, b.from))
		})
	}
	slices.SortStableFunc(rows, func(a, b packed) int {
		x, y := a.pieces[0], b.pieces[0]
		return cmp.Or(cmp.Compare(x.doc, y.doc), cmp.Compare(x.from, y.from))
	})
	return rows
}

// write makes the ids of a row and returns how many of them stand for none.
func (k *packed) write(r *Row, spec *Spec) int {
	i := 0
	for _, pc := range k.pieces {
		d := &k.docs[pc.doc]
		copy(r.IDs[i:], d.ids[pc.from:pc.to])
		r.put(i, pc.len(), pc.from, d.mask, spec.Joined)
		if pc.from > 0 && i > 0 { // its first id is a target of the piece before
			r.Labels[i-1] = -1
		}
		r.Docs = append(r.Docs, Span{d.id, d.source, i, i + pc.len(), pc.from})
		i += pc.len()
	}
	for j := i; j < len(r.IDs); j++ {
		r.IDs[j] = spec.EOS
		r.Labels[j-1] = -1
		if j < len(r.Positions) {
			r.Positions[j] = int32(j - i)
			if spec.Joined {
				r.Positions[j] = int32(j)
			}
		}
	}
	return len(r.IDs) - i
}

// fit finds the row that a piece fills best. Rows of equal free space stand in a
// list, the one touched last in front; has tells which spaces have a row.
type fit struct {
	has  []uint64
	head []int32 // by free space: a row and one, 0: none
	next []int32 // by row
}

func newFit(size, rows int) *fit {
	return &fit{
		has: make([]uint64, size/64+1), head: make([]int32, size+1), next: make([]int32, rows),
	}
}

// least takes the row with the least free space of n or more out, -1 if none has it.
func (f *fit) least(n int) int {
	word, at := f.has[n/64]&(^uint64(0)<<(n%64)), n/64
	for word == 0 {
		if at++; at == len(f.has) {
			return -1
		}
		word = f.has[at]
	}
	free := at*64 + bits.TrailingZeros64(word)
	i := f.head[free] - 1
	if f.head[free] = f.next[i]; f.head[free] == 0 {
		f.has[at] &^= 1 << (free % 64)
	}
	return int(i)
}

// set puts row i in with its free space.
func (f *fit) set(i, free int) {
	f.next[i] = f.head[free]
	f.head[free] = int32(i) + 1
	f.has[free/64] |= 1 << (free % 64)
}
