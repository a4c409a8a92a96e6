// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/binary"
	"errors"
	"io"

	"pleach/internal/fault"
)

// Limits on what a Parquet file may claim. Files in the wild stay far below.
const (
	maxFooter  = 64 << 20 // bytes of the footer
	maxColumns = 100_000
	maxDepth   = 64       // names on the way to a column, with those of lists
	maxPage    = 1 << 30  // bytes of a page, compressed or not
	maxHeader  = 16 << 20 // bytes of a page header; statistics may hold whole values
	maxValues  = 1 << 26  // values of a page
	maxIndex   = 256 << 20
	maxPages   = 1 << 20 // pages remembered for a table
)

// element is one node of a Parquet schema, as written.
type element struct {
	name       string
	physical   int64 // -1 for a group
	width      int64 // of a fixed_len_byte_array
	repetition int64
	children   int64
	converted  int64 // -1 for none
	logical    int   // field number of the union, 0 for none
	unsigned   bool  // a logical integer without a sign
}

// Values of the enumerations in parquet.thrift that are used here.
const (
	required, optional, repeated = 0, 1, 2

	physicalBool, physicalInt32, physicalInt64 = 0, 1, 2
	physicalFloat, physicalDouble              = 4, 5
	physicalBytes, physicalFixed               = 6, 7

	convertedUTF8, convertedMap, convertedMapKV, convertedList = 0, 1, 2, 3
	convertedEnum, convertedUint8, convertedUint64             = 4, 11, 14
	convertedInt8, convertedInt64, convertedJSON               = 15, 18, 19

	logicalString, logicalMap, logicalList, logicalEnum = 1, 2, 3, 4
	logicalInt, logicalNull, logicalJSON, logicalUUID   = 10, 11, 12, 14
)

// chunkMeta is the pages of one column in one row group.
type chunkMeta struct {
	codec       int64
	values      int64
	compressed  int64 // bytes of all pages with their headers
	start       int64 // of the first page in the file
	indexOffset int64 // of the offset index, 0 for none
	indexLength int64
	encrypted   bool
	elsewhere   bool // in another file
	bad         bool // no metadata
}

type groupMeta struct {
	rows   int64
	chunks []chunkMeta
}

// footer is what a Parquet file says of itself.
//
// Source: Apache Parquet, parquet.thrift of parquet-format 2.11.
type footer struct {
	rows     int64
	elements []element
	groups   []groupMeta
}

// readFooter reads the last bytes of a file: FileMetaData, its length, "PAR1".
func readFooter(r io.ReaderAt, size int64, name string) (*footer, error) {
	var tail [8]byte
	if size < 12 {
		return nil, fault.Damagef("table: reading %s: got a Parquet file of %d bytes: it is truncated",
			name, size)
	}
	if err := fault.ReadFull(r, tail[:], size-8); err != nil {
		return nil, fault.Damagef("table: reading %s (byte %d): %w", name, size-8, err)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	switch magic := string(tail[4:]); {
	case magic == "PARE":
		return nil, fault.Damagef("table: reading %s: the Parquet footer is encrypted: encrypted files are not read",
			name)
	case magic != "PAR1":
		return nil, fault.Damagef("table: reading %s: got the last bytes %q, want PAR1: the Parquet file is truncated or unfinished",
			name, magic)
	case n > size-12 || n > maxFooter:
		return nil, fault.Damagef("table: reading %s: got a Parquet footer of %d bytes, want at most %d",
			name, n, min(size-12, maxFooter))
	}
	b := make([]byte, n)
	if err := fault.ReadFull(r, b, size-8-n); err != nil {
		return nil, fault.Damagef("table: reading %s (byte %d): %w", name, size-8-n, err)
	}
	f, err := parseFooter(b)
	if err != nil {
		return nil, fault.Damagef("table: reading %s: Parquet footer (byte %d): %w", name, size-8-n, err)
	}
	return f, nil
}

func parseFooter(b []byte) (*footer, error) {
	f := &footer{rows: -1}
	t := &thrift{b: b}
	encrypted := false
	t.fields(func(id int, typ byte) bool {
		switch id {
		case 2:
			return t.structs(typ, func() { f.elements = append(f.elements, t.element()) })
		case 3:
			return t.setInt(&f.rows, typ)
		case 4:
			return t.structs(typ, func() { f.groups = append(f.groups, t.group()) })
		case 8:
			encrypted = true
		}
		return false
	})
	switch {
	case t.err != nil:
		return nil, t.err
	case encrypted:
		return nil, errors.New("columns are encrypted: encrypted files are not read")
	case f.rows < 0 || len(f.elements) == 0:
		return nil, errors.New("the schema or the number of rows is missing")
	}
	return f, nil
}

func (t *thrift) element() element {
	e := element{physical: -1, converted: -1}
	t.fields(func(id int, typ byte) bool {
		switch id {
		case 1:
			return t.setInt(&e.physical, typ)
		case 2:
			return t.setInt(&e.width, typ)
		case 3:
			return t.setInt(&e.repetition, typ)
		case 4:
			return t.setBytes(&e.name, typ)
		case 5:
			return t.setInt(&e.children, typ)
		case 6:
			return t.setInt(&e.converted, typ)
		case 10:
			if typ == thriftStruct {
				t.logical(&e)
				return true
			}
		}
		return false
	})
	return e
}

// logical reads the union LogicalType.
func (t *thrift) logical(e *element) {
	t.fields(func(id int, typ byte) bool {
		if e.logical = id; id != logicalInt || typ != thriftStruct {
			return false
		}
		t.fields(func(id int, typ byte) bool {
			if id == 2 {
				e.unsigned = typ == thriftFalse
			}
			return false
		})
		return true
	})
}

func (t *thrift) group() groupMeta {
	g := groupMeta{rows: -1}
	t.fields(func(id int, typ byte) bool {
		switch id {
		case 1:
			return t.structs(typ, func() { g.chunks = append(g.chunks, t.chunk()) })
		case 3:
			return t.setInt(&g.rows, typ)
		}
		return false
	})
	return g
}

func (t *thrift) chunk() chunkMeta {
	c := chunkMeta{bad: true}
	t.fields(func(id int, typ byte) bool {
		switch id {
		case 1:
			c.elsewhere = true
		case 3:
			if typ == thriftStruct {
				t.columnMeta(&c)
				return true
			}
		case 4:
			return t.setInt(&c.indexOffset, typ)
		case 5:
			return t.setInt(&c.indexLength, typ)
		case 8, 9:
			c.encrypted = true
		}
		return false
	})
	return c
}

func (t *thrift) columnMeta(c *chunkMeta) {
	c.bad = false
	var data, dict int64
	t.fields(func(id int, typ byte) bool {
		switch id {
		case 4:
			return t.setInt(&c.codec, typ)
		case 5:
			return t.setInt(&c.values, typ)
		case 7:
			return t.setInt(&c.compressed, typ)
		case 9:
			return t.setInt(&data, typ)
		case 11:
			return t.setInt(&dict, typ)
		}
		return false
	})
	// Some writers put 0 for no dictionary, others the offset behind the data.
	c.start = data
	if dict > 0 && dict < data {
		c.start = dict
	}
}
