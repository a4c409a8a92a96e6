// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import "slices"

// A Batch is the values of some rows. The zero value is ready for [Table.Read]. It
// belongs to one goroutine, and may be used for one table after the other.
type Batch struct {
	Rows    int
	Columns []Column // one for each field that was asked for, in that order

	table   *Table // what the cursors read
	fields  []Field
	cursors []cursor
}

// bind readies the cursors for the fields of a table.
func (b *Batch) bind(t *Table, fields []Field) error {
	if b.table == t && slices.Equal(b.fields, fields) {
		return nil
	}
	b.table = nil
	b.cursors = b.cursors[:0]
	for _, f := range fields {
		c, err := t.file.column(f)
		if err != nil {
			return err
		}
		b.cursors = append(b.cursors, c.cursor())
	}
	for len(b.Columns) < len(fields) {
		b.Columns = append(b.Columns, Column{})
	}
	b.Columns = b.Columns[:len(fields)]
	b.fields = append(b.fields[:0], fields...)
	b.table = t
	return nil
}

// A Null says whether a value is there.
type Null uint8

// What there is of a value.
const (
	Present Null = iota
	Missing      // the value is null
	Absent       // a struct or list that would hold it is null
)

// A Column is the values of one field. All slices belong to the batch and are
// overwritten by its next Read.
//
// An empty text is a value that is Present. A null list is one value that is
// Absent; an empty list is no value.
type Column struct {
	Starts []int32 // row r has the values Starts[r] ≤ i < Starts[r+1]
	Nulls  []Null  // for each value
	IDs    []int32 // for each value, 0 where there is none; form IDs only
	Bytes  []byte  // the texts, one after the other; forms Text and Label only
	Ends   []int64 // value i is Bytes[Ends[i]:Ends[i+1]]
}

// Len is the number of values of all rows.
func (c *Column) Len() int { return len(c.Nulls) }

// Row gives the values of row r of the batch: those with lo ≤ i < hi.
func (c *Column) Row(r int) (lo, hi int) { return int(c.Starts[r]), int(c.Starts[r+1]) }

// Text is value i; empty where there is none. Its capacity ends where it ends.
func (c *Column) Text(i int) []byte { return c.Bytes[c.Ends[i]:c.Ends[i+1]:c.Ends[i+1]] }

func (c *Column) reset() {
	c.Starts = append(c.Starts[:0], 0)
	c.Ends = append(c.Ends[:0], 0)
	c.Nulls, c.IDs, c.Bytes = c.Nulls[:0], c.IDs[:0], c.Bytes[:0]
}

func (c *Column) rows() int { return len(c.Starts) - 1 }

// endRow closes a row: the values added since the last call are its own.
func (c *Column) endRow() { c.Starts = append(c.Starts, int32(len(c.Nulls))) }
