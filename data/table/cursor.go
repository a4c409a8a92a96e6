// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
)

// pages is the cursor of a Parquet column: the page it decoded last, where it is in
// it, and the dictionary of the row group.
type pages struct {
	parquetColumn
	group int
	chunk *chunk
	dict  *values // of the row group, nil if it has none
	at    int     // number of the page, -1 for none
	page  page
	first int64 // rows of the group that start in front of the page

	level, val int   // the next level and value of the page
	row        int64 // rows that started before that level
	dictPage   page  // holds the bytes of dict
	dictValues values
}

// read appends rows [lo,hi) of row group g.
func (p *pages) read(g int, lo, hi int64, dst *Column) error {
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
	p.group, p.at, p.dict = -1, -1, nil
	c, err := p.f.chunk(g, p.leaf)
	if err != nil {
		return err
	}
	p.chunk = c
	if c.dict.size > 0 {
		if err := p.loadDictionary(); err != nil {
			return p.wrap(c.dict.off, err)
		}
	}
	p.group = g
	return nil
}

// seek goes to the start of row lo, or stays where it is if that is there.
func (p *pages) seek(lo int64) error {
	if p.at < 0 || lo < p.first || lo >= p.first+int64(p.page.starts) {
		at, err := p.chunk.find(lo, p)
		if err != nil {
			return err
		}
		if err := p.load(at); err != nil {
			return err
		}
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
	if p.form == IDs && p.leaf.kind == ints && p.page.present(p.level, end, p.leaf) == n {
		err := dst.addIDs(&p.page.vals, p.val, n)
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

// load decodes page i.
func (p *pages) load(i int) error {
	next := p.at >= 0 && i == p.at+1
	rows := p.first + int64(p.page.starts)
	p.at = -1
	ref := p.chunk.pages[i]
	h, body, err := p.f.readPage(ref, &p.page.raw)
	if err == nil {
		err = p.chunk.agrees(i, &h)
	}
	if err == nil {
		err = p.page.decode(&h, body, p.leaf, p.chunk.codec, p.dict, false)
	}
	if err != nil {
		return p.wrap(ref.off, err)
	}
	if !next {
		rows = p.chunk.first(i)
	}
	if err := p.chunk.learn(i, rows, &p.page); err != nil {
		return p.wrap(ref.off, err)
	}
	p.at, p.first = i, rows
	p.rewind()
	return nil
}

func (p *pages) loadDictionary() error {
	h, body, err := p.f.readPage(p.chunk.dict, &p.dictPage.raw)
	if err != nil {
		return err
	}
	if h.typ != dictionaryPage {
		return fmt.Errorf("got a page of type %d, want a dictionary", h.typ)
	}
	if err := h.check(body); err != nil {
		return err
	}
	if h.encoding != plain && h.encoding != plainDictionary {
		return fmt.Errorf("got a dictionary in encoding %d, want plain", h.encoding)
	}
	b, err := decompress(p.chunk.codec, p.dictPage.body, body, h.uncompressed)
	if err != nil {
		return err
	}
	if p.chunk.codec != codecNone {
		p.dictPage.body = b
	}
	p.dict = &p.dictValues
	return p.dict.decode(b, int(h.values), plain, p.leaf.physical, nil)
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
