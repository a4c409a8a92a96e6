// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"pleach/internal/fault"
)

// continuation stands before every message of a stream.
const continuation = 0xFFFFFFFF

// Limits on what an Arrow file may claim.
const (
	maxMetadata = 64 << 20 // bytes of a schema or of the header of a batch
	maxMessages = 1 << 22  // batches and dictionaries
	maxBuffer   = 2 << 30  // bytes of a compressed buffer once decompressed
)

// arrowFile is an Arrow IPC file or stream.
//
// Source: Apache Arrow, Columnar.rst, "Serialization and Interprocess Communication",
// with Schema.fbs, Message.fbs and File.fbs; format version 1.5.
type arrowFile struct {
	t       *Table
	r       io.ReaderAt
	size    int64
	schema  *arrowSchema
	leaves  []arrowLeaf
	batches []message
	dicts   []message
}

// message is a record batch or dictionary batch.
type message struct {
	off   int64 // of its metadata
	meta  int64 // bytes of them
	body  int64 // where the buffers are
	size  int64 // bytes of them
	rows  int64
	dicts int // dictionary batches in front of it
	// Of a dictionary batch:
	id    int64
	delta bool
}

// Numbers of the union MessageHeader.
const (
	messageSchema, messageDictionary, messageBatch = 1, 2, 3
)

func (t *Table) openArrow(r io.ReaderAt, size int64) error {
	a := &arrowFile{t: t, r: r, size: size, schema: &arrowSchema{dictKids: map[int64]*field{}}}
	var err error
	if t.format == Arrow {
		err = a.openFile()
	} else {
		err = a.walk()
	}
	if err != nil {
		return err
	}
	for i := range a.batches {
		rows := a.batches[i].rows
		if rows < 0 || rows > math.MaxInt64-t.rows {
			return a.wrap(a.batches[i].off, fmt.Errorf("got a batch of %d rows", rows))
		}
		t.groups = append(t.groups, t.rows)
		t.rows += rows
	}
	for i := range a.leaves {
		t.fields = append(t.fields, a.leaves[i].path)
	}
	t.file = a
	return nil
}

func (a *arrowFile) wrap(off int64, err error) error {
	return fault.Damagef("table: reading %s: %s: message at byte %d: %w", a.t.name, a.t.format, off, err)
}

// openFile reads the footer, which says where the batches are, and their headers.
func (a *arrowFile) openFile() error {
	var tail [10]byte
	if a.size < 8+10 {
		return fault.Damagef("table: reading %s: got an Arrow IPC file of %d bytes: it is truncated",
			a.t.name, a.size)
	}
	if err := fault.ReadFull(a.r, tail[:], a.size-10); err != nil {
		return a.wrap(a.size-10, err)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if string(tail[4:]) != "ARROW1" || n > a.size-18 || n > maxMetadata {
		return fault.Damagef("table: reading %s: got the last bytes %q, want ARROW1: the Arrow IPC file is truncated or unfinished",
			a.t.name, tail[:])
	}
	b := make([]byte, n)
	off := a.size - 10 - n
	if err := fault.ReadFull(a.r, b, off); err != nil {
		return a.wrap(off, err)
	}
	var bad error
	f := root(b, &bad)
	if err := a.readSchema(f.table(1), f.int(0, 2, 0)); err != nil {
		return a.wrap(off, err)
	}
	var err error
	if a.dicts, err = a.blocks(f, 2, messageDictionary); err != nil {
		return err
	}
	if a.batches, err = a.blocks(f, 3, messageBatch); err != nil {
		return err
	}
	for i := range a.batches {
		a.batches[i].dicts = len(a.dicts)
	}
	if bad != nil {
		return a.wrap(off, bad)
	}
	return nil
}

// blocks reads the headers that field i of a footer lists.
func (a *arrowFile) blocks(f flat, i int, want int64) ([]message, error) {
	at, n := f.vector(i, 24)
	ms := make([]message, n)
	for k := range ms {
		off, meta, body := f.i64(at+24*k), f.i64(at+24*k+8)&0xFFFFFFFF, f.i64(at+24*k+16)
		m, typ, err := a.readMessage(off)
		if err == nil && (typ != want || m.body != off+meta || m.size != body) {
			err = errors.New("got another message than the footer says")
		}
		if err != nil {
			return nil, a.wrap(off, err)
		}
		ms[k] = m
	}
	return ms, nil
}

// walk reads the headers of a stream, one after the other.
func (a *arrowFile) walk() error {
	for off := int64(0); off < a.size; {
		m, typ, err := a.readMessage(off)
		if err != nil {
			return a.wrap(off, err)
		}
		switch {
		case m.meta == 0: // the end
			if m.body != a.size {
				return a.wrap(off, fmt.Errorf("got %d bytes behind the end of the stream", a.size-m.body))
			}
			return nil
		case typ == messageSchema && a.leaves == nil && off == 0:
			err = a.readStreamSchema(m)
		case off == 0:
			err = errors.New("got a stream that does not begin with a schema")
		case len(a.batches)+len(a.dicts) == maxMessages:
			err = fmt.Errorf("got more than %d messages", maxMessages)
		case typ == messageDictionary:
			a.dicts = append(a.dicts, m)
		case typ == messageBatch:
			m.dicts = len(a.dicts)
			a.batches = append(a.batches, m)
		default:
			err = fmt.Errorf("got a message of type %d, want a batch", typ)
		}
		if err != nil {
			return a.wrap(off, err)
		}
		off = m.body + m.size
	}
	return nil
}

// readMessage reads the header of the message at off. Its meta is 0 at the mark of
// the end.
func (a *arrowFile) readMessage(off int64) (message, int64, error) {
	var head [8]byte
	if off < 0 || off > a.size-4 {
		return message{}, 0, io.ErrUnexpectedEOF
	}
	if err := fault.ReadFull(a.r, head[:min(8, a.size-off)], off); err != nil {
		return message{}, 0, err
	}
	m := message{off: off + 8, meta: int64(binary.LittleEndian.Uint32(head[4:]))}
	if first := binary.LittleEndian.Uint32(head[:]); first != continuation {
		m.off, m.meta = off+4, int64(first) // as written before Arrow 0.15
	}
	if m.meta > maxMetadata || m.off > a.size-m.meta {
		return m, 0, fmt.Errorf("got a header of %d bytes: %w", m.meta, io.ErrUnexpectedEOF)
	}
	if m.body = m.off + m.meta; m.meta == 0 {
		return m, 0, nil
	}
	b, err := a.metadata(&m, nil)
	if err != nil {
		return m, 0, err
	}
	var bad error
	f := root(b, &bad)
	typ, h := f.int(1, 1, 0), f.table(2)
	if m.size = f.int(3, 8, 0); m.size < 0 || m.size > a.size-m.body {
		return m, 0, fmt.Errorf("got a body of %d bytes, but %d are left: %w",
			m.size, a.size-m.body, io.ErrUnexpectedEOF)
	}
	if typ == messageDictionary {
		m.id, m.delta = h.int(0, 8, 0), h.bool(2)
		h = h.table(1)
	}
	m.rows = h.int(0, 8, 0)
	if h.at < 0 && bad == nil {
		bad = errFlat
	}
	return m, typ, bad
}

// metadata reads the FlatBuffer of a message.
func (a *arrowFile) metadata(m *message, b []byte) ([]byte, error) {
	b = grow(b, int(m.meta))
	return b, fault.ReadFull(a.r, b, m.off)
}

func (a *arrowFile) readStreamSchema(m message) error {
	b, err := a.metadata(&m, nil)
	if err != nil {
		return err
	}
	var bad error
	f := root(b, &bad)
	if err := a.readSchema(f.table(2), f.int(0, 2, 0)); err != nil {
		return err
	}
	return bad
}

func (a *arrowFile) readSchema(f flat, version int64) error {
	if f.at < 0 {
		return errors.New("got no schema")
	}
	if f.int(0, 2, 0) != 0 {
		return errors.New("got big-endian values, which are not read")
	}
	a.schema.v4 = version < 4 // numbered from 0
	a.leaves = []arrowLeaf{}
	for _, x := range f.tables(1) {
		top, err := a.schema.field(x, 0)
		if err != nil {
			return err
		}
		top.leaves(nil, nil, "", true, &a.leaves)
	}
	return *f.bad
}

// arrowColumn is a leaf in one form.
type arrowColumn struct {
	f    *arrowFile
	leaf *arrowLeaf
	form Form
}

func (a *arrowFile) column(f Field) (column, error) {
	i, err := a.t.find(f.Path)
	if err != nil {
		return nil, err
	}
	l := &a.leaves[i]
	if err := suits(a.t.name, f, l.kind, l.what); err != nil {
		return nil, err
	}
	return &arrowColumn{a, l, f.Form}, nil
}

func (c *arrowColumn) cursor() cursor { return &arrays{arrowColumn: *c, group: -1} }
