// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/binary"
	"errors"
)

// A thrift reads values in the compact protocol of Apache Thrift, in which Parquet
// writes its footer and page headers. It takes no memory that the bytes do not
// account for. The first error stays; from then on all values are zero.
//
// Source: Apache Thrift, doc/specs/thrift-compact-protocol.md.
type thrift struct {
	b     []byte
	at    int
	depth int
	err   error
}

// errShort: the bytes end inside of a value. A page header whose length is not
// known is read again with more bytes.
var (
	errShort  = errors.New("the bytes end inside of a value")
	errThrift = errors.New("not the Thrift compact protocol")
)

// Types of the compact protocol that are asked for by name.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13

	thriftDepth = 32 // structs inside of structs
)

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.at = len(t.b)
}

func (t *thrift) byte() byte {
	if t.at >= len(t.b) {
		t.fail(errShort)
		return 0
	}
	t.at++
	return t.b[t.at-1]
}

func (t *thrift) uvarint() uint64 {
	v, n := binary.Uvarint(t.b[t.at:])
	switch {
	case n > 0:
		t.at += n
		return v
	case n == 0:
		t.fail(errShort)
	default:
		t.fail(errThrift)
	}
	return 0
}

// int is an integer of any width.
func (t *thrift) int() int64 {
	u := t.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// bytes is a string; it aliases the input.
func (t *thrift) bytes() []byte {
	n := t.uvarint()
	if n > uint64(len(t.b)-t.at) {
		t.fail(errShort)
		return nil
	}
	t.at += int(n)
	return t.b[t.at-int(n) : t.at]
}

// list is the head of a list: how many elements of which type follow. There are
// never more than bytes left, so the number may be allocated.
func (t *thrift) list() (n int, typ byte) {
	h := t.byte()
	size := uint64(h >> 4)
	if size == 15 {
		size = t.uvarint()
	}
	if size > uint64(len(t.b)-t.at) {
		t.fail(errShort)
		return 0, 0
	}
	return int(size), h & 15
}

// fields calls f for each field of a struct. f reads the value or returns false to
// have it skipped. A boolean has its value in the type.
func (t *thrift) fields(f func(id int, typ byte) bool) {
	if t.depth++; t.depth > thriftDepth {
		t.fail(errThrift)
	}
	id := 0
	for t.err == nil {
		h := t.byte()
		if h == 0 {
			break
		}
		if delta := int(h >> 4); delta != 0 {
			id += delta
		} else {
			id = int(t.int())
		}
		if !f(id, h&15) {
			t.skip(h & 15)
		}
	}
	t.depth--
}

// skip passes a value of a type that nobody asks for.
func (t *thrift) skip(typ byte) {
	switch typ {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.pass(8)
	case thriftUUID:
		t.pass(16)
	case thriftBinary:
		t.bytes()
	case thriftList, thriftSet:
		n, typ := t.list()
		t.skipElements(n, typ)
	case thriftMap:
		t.skipMap()
	case thriftStruct:
		t.fields(func(int, byte) bool { return false })
	default:
		t.fail(errThrift)
	}
}

func (t *thrift) skipElements(n int, types ...byte) {
	if t.depth++; t.depth > thriftDepth {
		t.fail(errThrift)
	}
	for ; n > 0 && t.err == nil; n-- {
		for _, typ := range types {
			if typ == thriftTrue || typ == thriftFalse {
				typ = thriftByte // in a collection a boolean takes a byte
			}
			t.skip(typ)
		}
	}
	t.depth--
}

func (t *thrift) skipMap() {
	n := t.uvarint()
	if n == 0 {
		return
	}
	if n > uint64(len(t.b)-t.at) {
		t.fail(errShort)
		return
	}
	kv := t.byte()
	t.skipElements(int(n), kv>>4, kv&15)
}

func (t *thrift) pass(n int) {
	if n > len(t.b)-t.at {
		t.fail(errShort)
		return
	}
	t.at += n
}

// structs calls f, which reads a struct, for each element of a list of structs. Each
// takes memory; one of fewer bytes than any of Parquet's is refused, so that the
// memory stays in proportion to the bytes.
func (t *thrift) structs(typ byte, f func()) bool {
	if typ != thriftList {
		return false
	}
	n, elem := t.list()
	if elem != thriftStruct && n > 0 {
		t.fail(errThrift)
	}
	for ; n > 0 && t.err == nil; n-- {
		at := t.at
		if f(); t.err == nil && t.at-at < 4 {
			t.fail(errThrift)
		}
	}
	return true
}

// isInt says whether a field holds an integer. The caller reads it.
func isInt(typ byte) bool { return typ == thriftI16 || typ == thriftI32 || typ == thriftI64 }

// setInt reads an integer field into v, if it is one.
func (t *thrift) setInt(v *int64, typ byte) bool {
	if isInt(typ) {
		*v = t.int()
		return true
	}
	return false
}

// setBytes reads a string field into v, if it is one.
func (t *thrift) setBytes(v *string, typ byte) bool {
	if typ == thriftBinary {
		*v = string(t.bytes())
		return true
	}
	return false
}
