// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/binary"
	"errors"
)

// A flat is a table in a FlatBuffer, in which Arrow writes schemas and the headers
// of batches. Offsets that point out of the buffer give zero values and set bad,
// which all tables of a buffer share.
//
//	buffer = offset of the root table
//	table  = distance back to its vtable, then its fields
//	vtable = its size, the size of the table, the offset of each field, 0 if absent
//	vector = count, elements; string = count, bytes; a field that is a table, vector
//	         or string is the distance to it
//
// Source: FlatBuffers, "FlatBuffer Internals", 2024.
type flat struct {
	b   []byte
	at  int // of the table; −1 for none
	bad *error
}

var errFlat = errors.New("the metadata is damaged")

// root is the outermost table of a buffer.
func root(b []byte, bad *error) flat {
	f := flat{b, 0, bad}
	return f.follow(0)
}

func (f flat) fail() int {
	*f.bad = errFlat
	return -1
}

// has says whether n bytes at an offset are in the buffer.
func (f flat) has(at, n int) bool { return at >= 0 && n >= 0 && at <= len(f.b)-n }

func (f flat) u32(at int) uint32 {
	if !f.has(at, 4) {
		f.fail()
		return 0
	}
	return binary.LittleEndian.Uint32(f.b[at:])
}

// follow is the table to which the 4 bytes at an offset point.
func (f flat) follow(at int) flat {
	d := f.u32(at)
	if d == 0 || uint64(d) > uint64(len(f.b)) {
		return flat{f.b, f.fail(), f.bad}
	}
	return flat{f.b, at + int(d), f.bad}
}

// field is where field i of the table is, −1 if it is absent.
func (f flat) field(i int) int {
	if f.at < 0 {
		return -1
	}
	v := f.at - int(int32(f.u32(f.at)))
	if !f.has(v, 4) {
		return f.fail()
	}
	size := int(binary.LittleEndian.Uint16(f.b[v:]))
	if 4+2*i+2 > size {
		return -1
	}
	if !f.has(v, size) {
		return f.fail()
	}
	if off := int(binary.LittleEndian.Uint16(f.b[v+4+2*i:])); off > 0 {
		return f.at + off
	}
	return -1
}

// int is field i, an integer of size bytes with a sign, or its default.
func (f flat) int(i, size int, def int64) int64 {
	at := f.field(i)
	if at < 0 {
		return def
	}
	if !f.has(at, size) {
		f.fail()
		return def
	}
	switch b := f.b[at:]; size {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	default:
		return int64(binary.LittleEndian.Uint64(b))
	}
}

func (f flat) bool(i int) bool { return f.int(i, 1, 0) != 0 }

// table is field i; its at is −1 if it is absent.
func (f flat) table(i int) flat {
	at := f.field(i)
	if at < 0 {
		return flat{f.b, -1, f.bad}
	}
	return f.follow(at)
}

// vector is field i, a vector of elements of size bytes: where they are and how many.
func (f flat) vector(i, size int) (at, n int) {
	v := f.table(i)
	if v.at < 0 {
		return 0, 0
	}
	n = int(f.u32(v.at))
	if !f.has(v.at+4, 0) || n > (len(f.b)-v.at-4)/size {
		f.fail()
		return 0, 0
	}
	return v.at + 4, n
}

func (f flat) string(i int) string {
	at, n := f.vector(i, 1)
	return string(f.b[at : at+n])
}

// tables is field i, a vector of tables.
func (f flat) tables(i int) []flat {
	at, n := f.vector(i, 4)
	ts := make([]flat, n)
	for k := range ts {
		ts[k] = f.follow(at + 4*k)
	}
	return ts
}

// i64 is an integer inside a struct at an offset that has been checked.
func (f flat) i64(at int) int64 { return int64(binary.LittleEndian.Uint64(f.b[at:])) }
