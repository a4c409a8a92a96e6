// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
)

// Page types and encodings of parquet.thrift.
const (
	dataPage, dictionaryPage, dataPageV2 = 0, 2, 3

	plain, plainDictionary, rle                 = 0, 2, 3
	deltaBinary, deltaLength, deltaBytes, split = 5, 6, 7, 9
	rleDictionary                               = 8
)

// header is what stands before a page.
type header struct {
	typ          int64
	uncompressed int64
	compressed   int64
	crc          uint32
	hasCRC       bool
	values       int64 // with nulls
	encoding     int64
	defEncoding  int64 // V1 only
	repEncoding  int64
	rows         int64 // V2 only
	defBytes     int64 // V2 only
	repBytes     int64
	stored       bool // V2: the values are not compressed
	length       int  // of the header itself
}

// parseHeader reads a header at the start of b, which may end inside of it:
// errShort.
func parseHeader(b []byte) (header, error) {
	h := header{typ: -1, uncompressed: -1, compressed: -1, values: -1}
	t := &thrift{b: b}
	t.fields(func(id int, typ byte) bool {
		switch id {
		case 1:
			return t.setInt(&h.typ, typ)
		case 2:
			return t.setInt(&h.uncompressed, typ)
		case 3:
			return t.setInt(&h.compressed, typ)
		case 4:
			var crc int64
			h.hasCRC = t.setInt(&crc, typ)
			h.crc = uint32(crc)
			return h.hasCRC
		case 5, 7, 8:
			if typ == thriftStruct {
				t.pageKind(&h, id)
				return true
			}
		}
		return false
	})
	if t.err != nil {
		return h, t.err
	}
	h.length = t.at
	if h.compressed < 0 || h.compressed > maxPage || h.uncompressed < 0 || h.uncompressed > maxPage {
		return h, fmt.Errorf("got a page of %d bytes, %d uncompressed, want at most %d",
			h.compressed, h.uncompressed, maxPage)
	}
	known := h.typ == dataPage || h.typ == dataPageV2 || h.typ == dictionaryPage
	if known && (h.values < 0 || h.values > maxValues) {
		return h, fmt.Errorf("got a page of %d values, want at most %d", h.values, maxValues)
	}
	return h, nil
}

// pageKind reads the header of a data page (5), dictionary page (7) or V2 data page (8).
func (t *thrift) pageKind(h *header, kind int) {
	ints := map[int][]*int64{
		5: {nil, &h.values, &h.encoding, &h.defEncoding, &h.repEncoding},
		7: {nil, &h.values, &h.encoding},
		8: {nil, &h.values, nil, &h.rows, &h.encoding, &h.defBytes, &h.repBytes},
	}[kind]
	t.fields(func(id int, typ byte) bool {
		if kind == 8 && id == 7 {
			h.stored = typ == thriftFalse
			return false
		}
		return id > 0 && id < len(ints) && ints[id] != nil && t.setInt(ints[id], typ)
	})
}

// page is a decoded page. Of a dictionary it has only values.
type page struct {
	n        int     // values, with nulls and empty lists
	rep, def []uint8 // levels; empty where their maximum is 0
	starts   int     // rows that start here
	vals     values
}

// bytes is about what the page takes of memory, without its dictionary: what
// several slices share is counted for each.
func (p *page) bytes() int64 {
	v := &p.vals
	const itself = 512 // with its entry in the cache
	return itself + int64(cap(p.rep)+cap(p.def)+cap(v.bytes)+cap(v.spare)+
		4*(cap(v.offs)+cap(v.index))+8*(cap(v.ints)+cap(v.deltas)))
}

// values is the values of a page or dictionary that are not null, by number.
type values struct {
	n     int
	bytes []byte
	offs  []uint32 // value i is bytes[offs[i]+gap : offs[i+1]]
	gap   uint32
	ints  []int64  // integers, booleans, and the bits of floating-point numbers
	index []uint32 // into dict, if it is not nil
	dict  *values

	spare  []byte  // of DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT
	deltas []int64 // lengths
}

// text is value i of a column of bytes.
func (v *values) text(i int) []byte {
	if v.dict != nil {
		v, i = v.dict, int(v.index[i])
	}
	return v.bytes[v.offs[i]+v.gap : v.offs[i+1]]
}

// int is value i of another column.
func (v *values) int(i int) int64 {
	if v.dict != nil {
		return v.dict.ints[v.index[i]]
	}
	return v.ints[i]
}

// check compares the checksum of a page, if it has one.
func (h *header) check(body []byte) error {
	if !h.hasCRC {
		return nil
	}
	if got := crc32.ChecksumIEEE(body); got != h.crc {
		return fmt.Errorf("got the checksum %08x, want %08x: the page is damaged", got, h.crc)
	}
	return nil
}

// decode reads the page whose bytes behind the header are body. Where levelsOnly is
// set it stops before the values.
func (p *page) decode(h *header, body []byte, l *leaf, codec int64, dict *values, levelsOnly bool) error {
	if err := h.check(body); err != nil {
		return err
	}
	p.n = int(h.values)
	var err error
	var rest []byte
	if h.typ == dataPageV2 {
		rest, err = p.levelsV2(h, body, l, codec, levelsOnly)
	} else {
		rest, err = p.levelsV1(h, body, l, codec)
	}
	if err != nil {
		return err
	}
	present := p.count(l)
	if h.typ == dataPageV2 && int64(p.starts) != h.rows {
		return fmt.Errorf("got %d rows in the levels, want the %d of the header", p.starts, h.rows)
	}
	if levelsOnly {
		return nil
	}
	return p.vals.decode(rest, present, h.encoding, l.physical, dict)
}

// levelsV1 decodes the levels in front of the values, which are compressed with
// them: for each kind that the column has, their length in 4 bytes and the runs.
func (p *page) levelsV1(h *header, body []byte, l *leaf, codec int64) ([]byte, error) {
	rest, err := decompress(codec, body, h.uncompressed)
	if err != nil {
		return nil, err
	}
	for _, k := range []struct {
		levels   *[]uint8
		most     int
		encoding int64
	}{{&p.rep, l.maxRep, h.repEncoding}, {&p.def, l.maxDef, h.defEncoding}} {
		if *k.levels = (*k.levels)[:0]; k.most == 0 {
			continue
		}
		if k.encoding != rle {
			return nil, fmt.Errorf("got levels in encoding %d, want run lengths (3)", k.encoding)
		}
		if len(rest) < 4 || uint64(binary.LittleEndian.Uint32(rest)) > uint64(len(rest)-4) {
			return nil, errBits
		}
		n := 4 + int(binary.LittleEndian.Uint32(rest))
		if err := levels(k.levels, rest[4:n], p.n, k.most); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return rest, nil
}

// levelsV2 decodes the levels, which are not compressed, and then the values.
func (p *page) levelsV2(h *header, body []byte, l *leaf, codec int64, levelsOnly bool) ([]byte, error) {
	n := h.repBytes + h.defBytes
	if h.repBytes < 0 || h.defBytes < 0 || n > int64(len(body)) || n > h.uncompressed {
		return nil, fmt.Errorf("got %d and %d bytes of levels in a page of %d",
			h.repBytes, h.defBytes, len(body))
	}
	if l.maxRep == 0 && h.repBytes > 0 || l.maxDef == 0 && h.defBytes > 0 {
		return nil, errors.New("got levels in a column that has none")
	}
	p.rep, p.def = p.rep[:0], p.def[:0]
	if l.maxRep > 0 {
		if err := levels(&p.rep, body[:h.repBytes], p.n, l.maxRep); err != nil {
			return nil, err
		}
	}
	if l.maxDef > 0 {
		if err := levels(&p.def, body[h.repBytes:n], p.n, l.maxDef); err != nil {
			return nil, err
		}
	}
	if levelsOnly {
		return nil, nil
	}
	if h.stored {
		codec = codecNone
	}
	return decompress(codec, body[n:], h.uncompressed-n)
}

// levels decodes n levels of at most most.
func levels(dst *[]uint8, src []byte, n, most int) error {
	*dst = grow(*dst, n)
	rest, err := hybrid(*dst, src, bits.Len(uint(most)))
	if err == nil && len(rest) > 0 {
		err = errBits
	}
	for v := most + 1; v < 1<<bits.Len(uint(most)) && err == nil; v++ {
		if bytes.IndexByte(*dst, byte(v)) >= 0 {
			err = fmt.Errorf("got a level of %d, want at most %d", v, most)
		}
	}
	return err
}

// count sets how many rows start in the page and gives how many values are there.
func (p *page) count(l *leaf) int {
	p.starts = p.n
	if l.maxRep > 0 {
		p.starts = bytes.Count(p.rep, []byte{0})
	}
	return p.present(0, p.n, l)
}

// present is how many values there are between two levels.
func (p *page) present(from, to int, l *leaf) int {
	if l.maxDef == 0 {
		return to - from
	}
	return bytes.Count(p.def[from:to], []byte{byte(l.maxDef)})
}

// endOfRow is the next level at which a row starts.
func (p *page) endOfRow(level int) int {
	if i := bytes.IndexByte(p.rep[level:], 0); i >= 0 {
		return level + i
	}
	return p.n
}

// grow makes a slice n long; what it held is lost.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
