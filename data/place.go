// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"math/bits"
	"sort"
	"sync"

	"pleach/data/frame"
	"pleach/internal/fault"
)

// Documents lie at places of a file: bytes of its text, uncompressed, or rows of a
// table. Where a document stands in its source, and so in which block, goes by the
// bytes of the file as it is stored, over which its places are spread evenly:
//
//	place p of n stands at byte ⌊p·size/n⌋
//
// So a source is cut into blocks when its files have been listed, and what n is may
// be found out later, when a block of the file is read.

// shape is how many places a file has.
type shape struct {
	mu     sync.Mutex
	known  bool
	places int64
	err    error // damage: it stays
}

// plain reports whether places are bytes as they are stored.
func (f *file) plain() bool { return f.packed == frame.None && !isTable(f.format) }

// places is how many places a file has; the file may have to be opened.
func (s *source) places(i int32) (int64, error) {
	f := &s.files[i]
	if f.plain() {
		return f.size, nil
	}
	f.shape.mu.Lock()
	defer f.shape.mu.Unlock()
	if f.shape.known {
		return f.shape.places, f.shape.err
	}
	n, err := s.measure(i)
	if err == nil || isDamage(err) {
		f.shape.places, f.shape.err, f.shape.known = n, err, true
	}
	return n, err
}

func (s *source) measure(i int32) (int64, error) {
	f := &s.files[i]
	if isTable(f.format) {
		t, err := s.tables.take(s, i)
		if err != nil {
			return 0, err
		}
		defer s.tables.give(t)
		return t.table.Rows(), nil
	}
	o, err := s.open(f)
	if err != nil {
		return 0, err
	}
	defer o.Close()
	return o.Size(), nil
}

// standing is the stored byte of the source at which a document stands. Its file
// has been measured.
func (s *source) standing(r ref) int64 {
	f := &s.files[r.file]
	if f.plain() {
		return f.base + r.off
	}
	n, _ := s.places(r.file)
	at, _ := scale(r.off, f.size, max(n, 1))
	return f.base + at
}

// stored is how many of its file's bytes n places take.
func (s *source) stored(i int32, n int64) int64 {
	f := &s.files[i]
	all, err := s.places(i)
	if f.plain() || err != nil || all == 0 {
		return n
	}
	b, _ := scale(n, f.size, all)
	return b
}

// scale is ⌊a·num/den⌋, and whether something is left. 0 ≤ a ≤ den < 2⁶³.
func scale(a, num, den int64) (q int64, rest bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(num))
	quo, rem := bits.Div64(hi, lo, uint64(den))
	return int64(quo), rem > 0
}

// placesIn is the range of places that stand at stored bytes lo ≤ b < hi of file i.
func (s *source) placesIn(i int32, lo, hi int64) (from, to int64, err error) {
	f := &s.files[i]
	n, err := s.places(i)
	if err != nil || f.plain() {
		return lo, hi, err
	}
	first := func(at int64) int64 { // ⌈at·n/size⌉
		p, rest := scale(at, n, f.size)
		if rest {
			p++
		}
		return p
	}
	return first(lo), first(hi), nil
}

// starting lists the documents that stand in [lo,hi) of the concatenated files.
func (s *source) starting(lo, hi int64) ([]ref, error) {
	if s.parts != nil {
		return s.findTokens(lo, hi)
	}
	if s.size > indexed {
		return s.find(lo, hi)
	}
	if _, err := s.all(); err != nil {
		return nil, err
	}
	at := func(pos int64) int {
		return sort.Search(len(s.whole.refs), func(i int) bool {
			return s.standing(s.whole.refs[i]) >= pos
		})
	}
	return s.whole.refs[at(lo):at(hi)], nil
}

// all lists all documents of a source, once.
func (s *source) all() ([]ref, error) {
	s.whole.once.Do(func() { s.whole.refs, s.whole.err = s.find(0, s.size) })
	return s.whole.refs, s.whole.err
}

// find is starting, from the files.
func (s *source) find(lo, hi int64) ([]ref, error) {
	i := sort.Search(len(s.files), func(i int) bool {
		return s.files[i].base+s.files[i].size > lo
	})
	var refs []ref
	for ; i < len(s.files) && s.files[i].base < hi; i++ {
		f := &s.files[i]
		from, to, err := s.placesIn(int32(i), max(0, lo-f.base), min(f.size, hi-f.base))
		switch {
		case err == nil:
			if refs, err = s.list(refs, int32(i), from, to); err != nil {
				refs, err = s.lost(refs, int32(i), from, err)
			}
		case lo <= f.base:
			refs, err = s.lost(refs, int32(i), 0, err)
		default: // the file is left out where it begins
			_, err = s.lost(nil, int32(i), 0, err)
		}
		if err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// list appends the documents at places [lo,hi) of a file.
func (s *source) list(refs []ref, i int32, lo, hi int64) ([]ref, error) {
	f := &s.files[i]
	switch {
	case isTable(f.format):
		for row := lo; row < hi; row++ {
			refs = append(refs, ref{file: i, off: row})
		}
		return refs, nil
	case f.format == formatText:
		n, err := s.places(i)
		if lo == 0 && hi > 0 {
			refs = append(refs, ref{file: i, n: n})
		}
		return refs, err
	}
	return s.findLines(refs, i, lo, hi)
}

// lost stands one document in for what cannot be read of a file, from a place on,
// because it is damaged, if some may be left out.
func (s *source) lost(refs []ref, i int32, from int64, err error) ([]ref, error) {
	if s.Damaged == 0 || !isDamage(err) {
		return nil, err
	}
	s.example(err.Error(), damaged)
	return append(refs, ref{file: i, off: from, n: -1}), nil
}

// findLines appends the documents that start in [lo,hi) of a file. They get line
// numbers where their names need them.
func (s *source) findLines(refs []ref, i int32, lo, hi int64) ([]ref, error) {
	f := &s.files[i]
	o, err := s.open(f)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	first := int64(0)
	if s.ID == "" && f.counted() {
		if first, err = f.lines.number(o, max(0, lo-1)); err != nil {
			return nil, fault.Dataf("data: %s: counting lines: %w", f.name, err)
		}
		if lo > 0 {
			first++ // the first line that starts in the range is the one after
		}
	}
	err = eachLine(o, o.Size(), lo, hi, func(off, n int64, nth int) {
		r := ref{file: i, off: off, n: n}
		if first > 0 {
			r.line = first + int64(nth)
		}
		refs = append(refs, r)
	})
	if err != nil {
		return nil, &damage{fault.Dataf("data: %s: reading lines: %w", f.name, err)}
	}
	return refs, nil
}

// takes is how many of its file's bytes a document takes, with its newline.
func (s *source) takes(r ref) int64 {
	if s.parts != nil {
		return r.n
	}
	f := &s.files[r.file]
	switch {
	case r.n < 0: // it has no end
		return 0
	case isTable(f.format):
		return s.stored(r.file, r.off+1) - s.stored(r.file, r.off)
	case f.format == formatText:
		return s.stored(r.file, r.n)
	}
	return s.stored(r.file, r.off+r.n+1) - s.stored(r.file, r.off)
}
