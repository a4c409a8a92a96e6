// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"slices"
	"unicode/utf8"

	"pleach/data/table"
)

// rows is the rows of tables that a reader of documents has in hand of a source:
// those of a block, which are read together. Each source has its own: from a
// mixture a reader takes one document here, one there.
type rows struct {
	batch  table.Batch
	table  *shelved // that they are from: its fields count, it may be closed; nil: none
	lo, hi int64
	harmed harmedBlock
}

// harmedBlock is a block that holds damage: its rows are read one by one.
type harmedBlock struct {
	there bool
	file  int32
	lo    int64
}

// rowsOf is the rows of a source in hand.
func (c *scratch) rowsOf(s *source) *rows {
	w := c.rows[s]
	if w == nil {
		if c.rows == nil {
			c.rows = map[*source]*rows{}
		}
		w = new(rows)
		c.rows[s] = w
	}
	return w
}

// has reports whether a row of a file is in hand.
func (w *rows) has(file int32, row int64) bool {
	return w.table != nil && w.table.file == file && w.lo <= row && row < w.hi
}

// hold gives the rows of a source in hand, with what a table has around a row: load
// reads it if it is not there. While it is, the table need not be open.
func (s *source) hold(file int32, row int64, c *scratch, load func(w *rows, t *shelved) error) (*rows, error) {
	w := c.rowsOf(s)
	if w.has(file, row) {
		return w, nil
	}
	t, err := s.tables.take(s, file)
	if err != nil {
		return nil, err
	}
	defer s.tables.give(t)
	return w, load(w, t)
}

// read takes rows in hand.
func (w *rows) read(t *shelved, lo, hi int64, fields []table.Field) error {
	w.lo, w.hi = 0, 0
	if err := t.table.Read(lo, hi, fields, &w.batch); err != nil {
		return err
	}
	w.table, w.lo, w.hi = t, lo, hi
	return nil
}

// row reads a document from a table.
func (s *source) row(r ref, c *scratch) (Document, reason, error) {
	before := c.clock.enter(Reading)
	w, err := s.hold(r.file, r.off, c, func(w *rows, t *shelved) error {
		err := w.load(s, t, r)
		if isDamage(err) {
			err = s.bad(r, 0, "%w", err)
		}
		return err
	})
	if c.clock.enter(before); err != nil {
		return Document{}, none, err
	}
	d := Document{ID: s.where(r)}
	t, k, b := w.table, int(r.off-w.lo), &w.batch
	if t.id > 0 {
		if name, _ := single(&b.Columns[t.id], k); len(name) > 0 {
			d.ID = string(name)
		}
	}
	column := &b.Columns[0]
	if t.fields[0].Form == table.IDs {
		return s.rowIDs(r, t, k, d, c, b)
	}
	var there bool
	d.Text, there = joined(column, k, &c.text)
	switch {
	case !there:
		return d, empty, nil
	case int64(len(d.Text)) > longest:
		return d, tooLong, nil
	case !utf8.Valid(d.Text):
		return d, notUTF8, nil
	}
	return d, textOrEmpty(d.Text), nil
}

// load reads the block of a row, or, where that is damaged, the row.
func (w *rows) load(s *source, t *shelved, r ref) error {
	lo, hi, err := s.blockOf(r)
	if err != nil {
		return err
	}
	if block := (harmedBlock{true, r.file, lo}); w.harmed != block {
		if err = w.read(t, lo, hi, t.fields); err == nil || s.Damaged == 0 || !isDamage(err) {
			return err
		}
		w.harmed = block
	}
	return w.read(t, r.off, r.off+1, t.fields)
}

// blockOf is the rows of its file that stand in the block of a row.
func (s *source) blockOf(r ref) (lo, hi int64, err error) {
	f := &s.files[r.file]
	first := s.standing(r) / s.block * s.block
	return s.placesIn(r.file, max(0, first-f.base), min(f.size, first+s.block-f.base))
}

// single is the only value of a row.
func single(c *table.Column, row int) (text []byte, ok bool) {
	lo, hi := c.Row(row)
	if hi-lo != 1 || c.Nulls[lo] != table.Present {
		return nil, false
	}
	return c.Text(lo), true
}

// joined is the texts of a row, a line each, and whether there is one.
func joined(c *table.Column, row int, buf *[]byte) (text []byte, ok bool) {
	if text, ok := single(c, row); ok {
		return text, true
	}
	lo, hi := c.Row(row)
	text = (*buf)[:0]
	for i := lo; i < hi; i++ {
		if c.Nulls[i] != table.Present {
			continue
		}
		if ok {
			text = append(text, '\n')
		}
		text, ok = append(text, c.Text(i)...), true
	}
	*buf = text
	return text, ok
}

// rowIDs reads a document that is a row of ids.
func (s *source) rowIDs(r ref, t *shelved, k int, d Document, c *scratch, b *table.Batch) (Document, reason, error) {
	column := &b.Columns[0]
	lo, hi := column.Row(k)
	if hi == lo || hi-lo == 1 && column.Nulls[lo] != table.Present {
		return d, empty, nil
	}
	if i := slices.IndexFunc(column.Nulls[lo:hi], func(n table.Null) bool { return n != table.Present }); i >= 0 {
		return d, none, s.bad(r, 0, "field %q: id %d is null", s.Field, i)
	}
	d.IDs = column.IDs[lo:hi:hi]
	limit := s.limit()
	for i, id := range d.IDs {
		if id < 0 || int64(id) >= limit {
			return d, none, s.bad(r, 0, "field %q: id %d is %d, want a whole number from 0 to %d",
				s.Field, i, id, limit-1)
		}
	}
	if t.mask == 0 {
		return d, none, nil
	}
	m := &b.Columns[t.mask]
	lo, hi = m.Row(k)
	if hi-lo == 1 && m.Nulls[lo] != table.Present {
		return d, none, nil
	}
	c.mask = c.mask[:0]
	for i := lo; i < hi; i++ {
		if m.Nulls[i] != table.Present || m.IDs[i] < 0 || m.IDs[i] > 1 {
			return d, none, s.bad(r, 0, "field %q: entry %d is %d, want 0 or 1", s.Mask, i-lo, m.IDs[i])
		}
		c.mask = append(c.mask, uint8(m.IDs[i]))
	}
	d.Mask = c.mask
	return d, none, s.asMany(r, d)
}
