// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
)

// pages is the cursor of a Parquet column: the page it read last, and where it is in
// it. Between reads the page itself is left to the cache.
type pages struct {
	parquetColumn
	group  int
	chunk  *chunk
	at     int   // number of the page, -1 for none
	page   *page // shared: not written to
	first  int64 // rows of the group that start in front of the page
	starts int64 // rows that start in it

	level, val int   // the next level and value of the page
	row        int64 // rows that started before that level
}

// read appends rows [lo,hi) of row group g.
func (p *pages) read(g int, lo, hi int64, dst *Column) error {
	defer func() { p.page = nil }()
	if err := p.enter(g); err != nil {
		return err
	}
	if err := p.seek(lo); err != nil {
		return err
	}
	for {
		done, err := p.take(lo, hi, dst)
		if err != nil {
			return p.here(err)
		}
		if done {
			return nil
		}
		if p.at+1 == len(p.chunk.pages) {
			if p.row != hi {
				return p.here(fmt.Errorf("got %d rows in its pages, want %d", p.row, p.chunk.rows))
			}
			dst.endRow()
			return nil
		}
		if err := p.load(p.at + 1); err != nil {
			return err
		}
	}
}

// enter makes g the group of the cursor.
func (p *pages) enter(g int) error {
	if p.group == g {
		return nil
	}
	p.group, p.at = -1, -1
	c, err := p.f.chunk(g, p.leaf)
	if err != nil {
		return err
	}
	p.chunk, p.group = c, g
	return nil
}

// seek goes to the start of row lo, or stays where it is if that is there.
func (p *pages) seek(lo int64) error {
	var err error
	if p.at >= 0 && lo >= p.first && lo < p.first+p.starts {
		p.page, err = p.hold(p.at)
	} else {
		var at int
		if at, err = p.chunk.find(lo, p); err == nil {
			err = p.load(at)
		}
	}
	if err != nil {
		return err
	}
	if lo < p.row {
		p.rewind()
	}
	p.skip(lo)
	return nil
}

// rewind goes to the start of the page.
func (p *pages) rewind() { p.level, p.val, p.row = 0, 0, p.first }

// skip goes to where row lo starts in the page; it does start there.
func (p *pages) skip(lo int64) {
	if p.leaf.maxRep == 0 {
		n := int(lo - p.row)
		p.val += p.page.present(p.level, p.level+n, p.leaf)
		p.level, p.row = p.level+n, lo
		return
	}
	from := p.level
	for p.level = p.page.endOfRow(p.level); p.row < lo; p.row++ {
		p.level = p.page.endOfRow(p.level + 1)
	}
	p.val += p.page.present(from, p.level, p.leaf)
}

// take appends what the page has of rows [lo,hi) from the current level on, and
// says whether the row behind them was seen to start. Rows before the last one are
// closed.
func (p *pages) take(lo, hi int64, dst *Column) (bool, error) {
	if p.leaf.maxRep == 0 {
		n := int(min(hi-p.row, int64(p.page.n-p.level)))
		for range n {
			if err := p.add(dst); err != nil {
				return false, err
			}
			dst.endRow()
		}
		p.row += int64(n)
		return p.row == hi, nil
	}
	for p.level < p.page.n {
		if p.page.rep[p.level] == 0 {
			if p.row > lo {
				dst.endRow()
			}
			if p.row == hi {
				return true, nil
			}
			p.row++
		}
		if err := p.addRow(p.page.endOfRow(p.level+1), dst); err != nil {
			return false, err
		}
	}
	// Where rows do not run on into the next page the last one ends here.
	if p.row == hi && (p.chunk.whole || p.at+1 == len(p.chunk.pages)) {
		dst.endRow()
		return true, nil
	}
	return false, nil
}

// addRow appends the values up to a level.
func (p *pages) addRow(end int, dst *Column) error {
	n := end - p.level
	integers := p.leaf.kind == ints || p.leaf.kind == uints
	if p.form == IDs && integers && p.page.present(p.level, end, p.leaf) == n {
		err := dst.addIDs(&p.page.vals, p.val, n, p.leaf.kind)
		p.level, p.val = end, p.val+n
		return err
	}
	for p.level < end {
		if err := p.add(dst); err != nil {
			return err
		}
	}
	return nil
}

// add appends the value at the current level, and passes it.
func (p *pages) add(dst *Column) error {
	m := isPresent
	if p.leaf.maxDef > 0 {
		m = p.leaf.means[p.page.def[p.level]]
	}
	p.level++
	switch m {
	case isPresent:
		p.val++
		return dst.addValue(&p.page.vals, p.val-1, p.leaf.kind, p.form, p.leaf.physical)
	case isEmpty:
		return nil
	}
	return dst.addNull(Null(m), p.form)
}

// load goes to the start of page i.
func (p *pages) load(i int) error {
	first := p.first + p.starts
	if p.at < 0 || i != p.at+1 {
		first = p.chunk.first(i)
	}
	p.at = -1
	page, err := p.hold(i)
	if err != nil {
		return err
	}
	if err := p.chunk.learn(i, first, page); err != nil {
		return p.wrap(p.chunk.pages[i].off, err)
	}
	p.at, p.page, p.first, p.starts = i, page, first, int64(page.starts)
	p.rewind()
	return nil
}

// hold gives page i, decoded if it is not in memory. The dictionary that it refers
// to goes with it: the cache has that for all pages of the group, or for none.
func (p *pages) hold(i int) (*page, error) {
	page, err := decoded.get(p.key(i), func() (*page, error) { return p.decode(i) })
	if err == nil && page.vals.dict != nil {
		decoded.touch(p.key(dictionaryKey))
	}
	return page, err
}

func (p *pages) key(i int) pageKey { return pageKey{p.f, p.chunk.group, p.leaf.index, i} }

// decode reads page i and decodes it.
func (p *pages) decode(i int) (*page, error) {
	var dict *values
	if at := p.chunk.dict; at.size > 0 {
		d, err := decoded.get(p.key(dictionaryKey), p.dictionary)
		if err != nil {
			return nil, p.wrap(at.off, err)
		}
		dict = &d.vals
	}
	page, err := p.chunk.readPage(i, p.f, dict, false)
	if err != nil {
		return nil, p.wrap(p.chunk.pages[i].off, err)
	}
	return page, nil
}

// dictionary reads the dictionary of the group.
func (p *pages) dictionary() (*page, error) {
	h, body, err := p.f.readPage(p.chunk.dict, new([]byte))
	if err != nil {
		return nil, err
	}
	if h.typ != dictionaryPage {
		return nil, fmt.Errorf("got a page of type %d, want a dictionary", h.typ)
	}
	if err := h.check(body); err != nil {
		return nil, err
	}
	if h.encoding != plain && h.encoding != plainDictionary {
		return nil, fmt.Errorf("got a dictionary in encoding %d, want plain", h.encoding)
	}
	b, err := decompress(p.chunk.codec, body, h.uncompressed)
	if err != nil {
		return nil, err
	}
	d := new(page)
	return d, d.vals.decode(b, int(h.values), plain, p.leaf.physical, nil)
}

// here wraps an error in the current page, if there is one.
func (p *pages) here(err error) error {
	if p.at < 0 {
		return err
	}
	return p.wrap(p.chunk.pages[p.at].off, err)
}

func (p *pages) wrap(off int64, err error) error {
	return p.f.wrap(p.chunk, off, err)
}
