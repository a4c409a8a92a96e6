// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

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

// addNull appends a value that is not there.
func (c *Column) addNull(n Null, f Form) error {
	if len(c.Nulls) >= maxRead {
		return errRead()
	}
	c.Nulls = append(c.Nulls, n)
	if f == IDs {
		c.IDs = append(c.IDs, 0)
		return nil
	}
	c.Ends = append(c.Ends, int64(len(c.Bytes)))
	return nil
}

// maxBatch and maxRead bound what one Read gives of a column: bytes, and values.
const (
	maxBatch = 4 << 30
	maxRead  = 1 << 28
)

func errRead() error {
	return fmt.Errorf("got more than %d bytes or %d values in the rows of one read: ask for fewer rows",
		int64(maxBatch), maxRead)
}

// addIDs appends values i ≤ k < i+n, which are integers with a sign.
func (c *Column) addIDs(v *values, i, n int) error {
	if len(c.Nulls)+n > maxRead {
		return errRead()
	}
	at := len(c.IDs)
	c.Nulls = slices.Grow(c.Nulls, n)[:at+n]
	clear(c.Nulls[at:])
	c.IDs = slices.Grow(c.IDs, n)[:at+n]
	dst := c.IDs[at:]
	if v.dict != nil {
		from := v.dict.ints
		for k, j := range v.index[i : i+n] {
			x := from[j]
			if dst[k] = int32(x); int64(dst[k]) != x {
				return errFit(x, ints)
			}
		}
		return nil
	}
	for k, x := range v.ints[i : i+n] {
		if dst[k] = int32(x); int64(dst[k]) != x {
			return errFit(x, ints)
		}
	}
	return nil
}

func errFit(x int64, k kind) error {
	if k == uints {
		return fmt.Errorf("got the integer %d, want one that fits into 32 bits with a sign", uint64(x))
	}
	return fmt.Errorf("got the integer %d, want one that fits into 32 bits", x)
}

// addValue appends value i in a form.
func (c *Column) addValue(v *values, i int, k kind, f Form, physical int64) error {
	switch {
	case k == nulls:
		return errors.New("got a value in a column of type null")
	case k == texts:
		return c.addText(v.text(i))
	case f != IDs && k == uuids:
		b := v.text(i)
		return c.addText(fmt.Appendf(nil, "%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
	}
	x := v.int(i)
	if k == uints && physical == physicalInt32 {
		x = int64(uint32(x))
	}
	if f == IDs {
		return c.addID(x, k)
	}
	return c.addText(appendLabel(nil, x, k))
}

func (c *Column) addText(b []byte) error {
	if len(c.Bytes)+len(b) > maxBatch || len(c.Nulls) >= maxRead {
		return errRead()
	}
	c.Bytes = append(c.Bytes, b...)
	c.Ends = append(c.Ends, int64(len(c.Bytes)))
	c.Nulls = append(c.Nulls, Present)
	return nil
}

func (c *Column) addID(x int64, k kind) error {
	if x != int64(int32(x)) {
		return errFit(x, k)
	}
	if len(c.Nulls) >= maxRead {
		return errRead()
	}
	c.IDs = append(c.IDs, int32(x))
	c.Nulls = append(c.Nulls, Present)
	return nil
}

// appendLabel writes a number or boolean.
func appendLabel(b []byte, x int64, k kind) []byte {
	switch k {
	case ints:
		return strconv.AppendInt(b, x, 10)
	case uints:
		return strconv.AppendUint(b, uint64(x), 10)
	case bools:
		return strconv.AppendBool(b, x != 0)
	case float32s:
		return strconv.AppendFloat(b, float64(math.Float32frombits(uint32(x))), 'g', -1, 32)
	}
	return strconv.AppendFloat(b, math.Float64frombits(uint64(x)), 'g', -1, 64)
}
