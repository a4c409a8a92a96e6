// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"pleach/internal/fault"
)

// A Format is how the rows lie in a file.
type Format uint8

// The formats.
const (
	None    Format = iota // not one of ours
	Parquet               // Apache Parquet
	Arrow                 // Apache Arrow IPC file ("Feather version 2")
	Stream                // Apache Arrow IPC stream, which Hugging Face datasets writes
)

// String is the name for messages.
func (f Format) String() string {
	return [...]string{"no table", "Parquet", "Arrow IPC file", "Arrow IPC stream"}[f]
}

// Sniff tells the format by the first bytes of a file; 8 are enough.
func Sniff(head []byte) Format {
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")), bytes.HasPrefix(head, []byte("PARE")):
		return Parquet
	case bytes.HasPrefix(head, []byte("ARROW1")):
		return Arrow
	case len(head) >= 8 && binary.LittleEndian.Uint32(head) == continuation && head[7] < 0x10:
		return Stream
	}
	return None
}

// A Form is what the values of a field are wanted as.
type Form uint8

// The forms.
const (
	// Text is strings and binary values as bytes. Whether they are UTF-8 is for
	// the caller to check.
	Text Form = iota
	// IDs is integers of any width as int32; one that does not fit is an error.
	IDs
	// Label is strings, and integers, floating-point numbers, booleans and UUIDs
	// as text: what names a row.
	Label
)

func (f Form) String() string { return [...]string{"text", "integers", "a label"}[f] }

// A Field is a column that is wanted: the names on the way to it with dots,
// without those of lists, and the form of its values.
type Field struct {
	Path string
	Form Form
}

// A Table is an open file. It may be used by several goroutines at once, each with
// a Batch of its own. It reads from what it was opened on, which stays the
// caller's to close, after the last Read.
type Table struct {
	name   string
	format Format
	groups []int64 // first rows
	rows   int64
	fields []string
	file   file
}

// file is a table in one format.
type file interface {
	// column finds the column of a field, or says why there is none.
	column(f Field) (column, error)
}

// column is a column of a file.
type column interface {
	// cursor is what one reader of the column keeps between reads.
	cursor() cursor
}

// cursor reads rows of one column.
type cursor interface {
	// read appends rows [lo,hi) of group g, counted in the group, to dst.
	read(g int, lo, hi int64, dst *Column) error
}

// Open recognises a file of size bytes by its first and last ones and reads what
// it says of itself: schema, row groups or batches. The name is for messages.
// Errors are of kind fault.Data.
func Open(r io.ReaderAt, size int64, name string) (t *Table, err error) {
	defer contain(&err, name)
	r = fault.Reader(r)
	var head [8]byte
	if n, err := r.ReadAt(head[:min(size, 8)], 0); err != nil && int64(n) < min(size, 8) {
		return nil, fault.Damagef("table: reading %s (byte 0): %w", name, err)
	}
	t = &Table{name: name, format: Sniff(head[:])}
	switch t.format {
	case Parquet:
		err = t.openParquet(r, size)
	case Arrow, Stream:
		err = t.openArrow(r, size)
	default:
		err = fault.Damagef("table: reading %s: got the first bytes %q, want Parquet or Arrow IPC",
			name, head[:min(size, 8)])
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Close forgets what is remembered of the file.
func (t *Table) Close() error {
	if f, ok := t.file.(*parquetFile); ok {
		decoded.drop(f)
	}
	t.file = nil
	return nil
}

// Format is how the rows lie in the file.
func (t *Table) Format() Format { return t.format }

// Rows is the number of rows.
func (t *Table) Rows() int64 { return t.rows }

// Groups is the first row of each row group or batch, in order. Rows of one group
// lie together; groups may be empty.
func (t *Table) Groups() []int64 { return slices.Clone(t.groups) }

// Fields is the paths of all columns, in the order of the file, for messages. Not
// every one of them can be read.
func (t *Table) Fields() []string { return slices.Clone(t.fields) }

// Check says whether a field is there and has values of its form; if not, the
// error of kind fault.Config lists the fields of the file.
func (t *Table) Check(f Field) (err error) {
	defer contain(&err, t.name)
	_, err = t.file.column(f)
	return err
}

// Read makes dst the values of rows lo ≤ r < hi of the fields, in their order. The
// memory of dst is used again, so what an earlier Read gave is overwritten. A Batch
// remembers where it read last: reading on from there costs no more than the rows
// themselves. After an error dst holds nothing of use.
//
// Damage is of kind fault.Data, a field that is not there of kind fault.Config.
func (t *Table) Read(lo, hi int64, fields []Field, dst *Batch) (err error) {
	defer contain(&err, t.name)
	if lo < 0 || hi < lo || hi > t.rows {
		return fmt.Errorf("table: reading %s: got rows %d to %d, want a part of 0 to %d",
			t.name, lo, hi, t.rows)
	}
	if err := dst.bind(t, fields); err != nil {
		return err
	}
	dst.table = nil // a cursor that stops half-way, or panics, is not read on from
	dst.Rows = int(hi - lo)
	for i := range fields {
		c := &dst.Columns[i]
		c.reset()
		if err := t.readColumn(lo, hi, dst.cursors[i], c); err != nil {
			return err
		}
		if c.rows() != dst.Rows {
			return fault.Damagef("table: reading %s: column %s: got %d rows, want %d",
				t.name, fields[i].Path, c.rows(), dst.Rows)
		}
	}
	dst.table = t
	return nil
}

func (t *Table) readColumn(lo, hi int64, cur cursor, c *Column) error {
	g, found := slices.BinarySearch(t.groups, lo)
	if !found {
		g--
	}
	for ; lo < hi; g++ {
		first, end := t.groups[g], t.rows
		if g+1 < len(t.groups) {
			end = t.groups[g+1]
		}
		end = min(end, hi)
		if end <= lo {
			continue // an empty group
		}
		if err := cur.read(g, lo-first, end-first, c); err != nil {
			return err
		}
		lo = end
	}
	return nil
}

// find gives the only column of a path, by its place in the file.
func (t *Table) find(path string) (int, error) {
	i := slices.Index(t.fields, path)
	if i < 0 {
		if err := t.inside(path); err != nil {
			return 0, err
		}
		return 0, t.missing(path)
	}
	if slices.Contains(t.fields[i+1:], path) {
		return 0, fault.Configf("table: %s: field %s: got two columns of this path", t.name, path)
	}
	return i, nil
}

// suits checks that a column can be read in the form of a field; what is its type in
// words.
func suits(name string, f Field, k kind, what string) error {
	switch {
	case k == foreign:
		return fault.Configf("table: %s: field %s: got %s, which is not read", name, f.Path, what)
	case !k.fits(f.Form):
		return fault.Configf("table: %s: field %s: got %s, want %s", name, f.Path, what, f.Form)
	}
	return nil
}

// missing is the error for a field that is not there.
func (t *Table) missing(path string) error {
	hint := ""
	if n := fault.Nearest(path, t.fields); n != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", n)
	}
	const most = 30
	list := strings.Join(t.fields[:min(len(t.fields), most)], ", ")
	if n := len(t.fields) - most; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	if list == "" {
		list = "none"
	}
	return fault.Configf("table: %s: field %s: not there%s; the file has %s", t.name, path, hint, list)
}

// inside is the error for a path that ends above columns, or nil.
func (t *Table) inside(path string) error {
	var below []string
	for _, f := range t.fields {
		if strings.HasPrefix(f, path+".") {
			below = append(below, f)
		}
	}
	if below == nil {
		return nil
	}
	return fault.Configf("table: %s: field %s: got a struct, want one of its fields: %s",
		t.name, path, strings.Join(below, ", "))
}

// contain turns a panic, of a decoder of others or of ours, into an error.
func contain(err *error, name string) {
	if p := recover(); p != nil {
		*err = fault.Damagef("table: reading %s: the decoder failed: %v\n%s", name, p, debug.Stack())
	}
}
