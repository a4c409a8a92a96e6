// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// writer writes Thrift's compact protocol.
type writer struct {
	b    []byte
	last []int // field number of each open struct
}

func (w *writer) field(id int, typ byte) {
	n := len(w.last) - 1
	w.b = append(w.b, byte(id-w.last[n])<<4|typ)
	w.last[n] = id
}

func (w *writer) varint(v int64) { w.b = binary.AppendVarint(w.b, v) }

func (w *writer) int(id int, v int64) {
	w.field(id, thriftI64)
	w.varint(v)
}

func (w *writer) string(id int, s string) {
	w.field(id, thriftBinary)
	w.b = append(binary.AppendUvarint(w.b, uint64(len(s))), s...)
}

// list opens a list of structs.
func (w *writer) list(id, n int) {
	w.field(id, thriftList)
	w.b = append(w.b, 0xF0|thriftStruct)
	w.b = binary.AppendUvarint(w.b, uint64(n))
}

// open begins a struct; field 0 is an element of a list or the outermost one.
func (w *writer) open(id int) {
	if id > 0 {
		w.field(id, thriftStruct)
	}
	w.last = append(w.last, 0)
}

func (w *writer) close() {
	w.b = append(w.b, 0)
	w.last = w.last[:len(w.last)-1]
}

// older writes lists of integers as files of some years ago have them: V1 pages of
// n levels each, without regard to where a row ends, and no offset index.
func older(rows [][]int32, n int) []byte {
	var rep, def []byte
	var vals []int32
	for _, r := range rows {
		rep = append(rep, 0)
		def = append(def, byte(min(1, len(r))))
		for i, v := range r {
			if i > 0 {
				rep, def = append(rep, 1), append(def, 1)
			}
			vals = append(vals, v)
		}
	}
	total, file := len(rep), []byte("PAR1")
	for at := 0; at < total; at += n {
		k := min(n, total-at)
		body := append(runs(rep[at:at+k]), runs(def[at:at+k])...)
		present := bytes.Count(def[at:at+k], []byte{1})
		for _, v := range vals[:present] {
			body = binary.LittleEndian.AppendUint32(body, uint32(v))
		}
		vals = vals[present:]
		file = append(append(file, pageHeader(k, len(body))...), body...)
	}
	return finish(file, len(rows), total)
}

// runs packs levels of one bit, behind their length.
func runs(levels []byte) []byte {
	groups := (len(levels) + 7) / 8
	b := binary.AppendUvarint(nil, uint64(groups)<<1|1)
	packed := make([]byte, groups)
	for i, v := range levels {
		packed[i/8] |= v << (i % 8)
	}
	b = append(b, packed...)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func pageHeader(values, size int) []byte {
	w := &writer{}
	w.open(0)
	w.int(1, dataPage)
	w.int(2, int64(size))
	w.int(3, int64(size))
	w.open(5)
	w.int(1, int64(values))
	w.int(2, plain)
	w.int(3, rle)
	w.int(4, rle)
	w.close()
	w.close()
	return w.b
}

// finish writes the footer of a file with the column "ids", repeated int32.
func finish(file []byte, rows, values int) []byte {
	w := &writer{}
	w.open(0)
	w.int(1, 1)
	w.list(2, 2)
	w.open(0)
	w.string(4, "schema")
	w.int(5, 1)
	w.close()
	w.open(0)
	w.int(1, physicalInt32)
	w.int(3, repeated)
	w.string(4, "ids")
	w.close()
	w.int(3, int64(rows))
	w.list(4, 1)
	w.open(0)
	w.list(1, 1)
	w.open(0)
	w.open(3)
	w.int(4, codecNone)
	w.int(5, int64(values))
	w.int(7, int64(len(file)-4))
	w.int(9, 4)
	w.close()
	w.close()
	w.int(3, int64(rows))
	w.close()
	w.close()
	n := len(w.b)
	file = append(file, w.b...)
	return append(binary.LittleEndian.AppendUint32(file, uint32(n)), "PAR1"...)
}

// TestRowsAcrossPages: rows that run on from page to page, whatever the page holds
// and from wherever one reads.
func TestRowsAcrossPages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	rows := make([][]int32, 70)
	for i := range rows {
		rows[i] = make([]int32, rnd.IntN(14))
		for k := range rows[i] {
			rows[i][k] = int32(rnd.Uint32())
		}
	}
	fields := []Field{{"ids", IDs}}
	for _, n := range []int{1, 2, 3, 5, 8, 50, 10_000} {
		b := older(rows, n)
		open := func() *Table {
			tab, err := Open(bytes.NewReader(b), int64(len(b)), "older")
			if err != nil {
				t.Fatal(err)
			}
			return tab
		}
		tab := open()
		var batch Batch
		for range 300 {
			if rnd.IntN(4) == 0 {
				tab, batch = open(), Batch{}
			}
			lo := rnd.IntN(len(rows))
			hi := lo + rnd.IntN(len(rows)-lo+1)
			if err := tab.Read(int64(lo), int64(hi), fields, &batch); err != nil {
				t.Fatalf("pages of %d, rows %d to %d: %v", n, lo, hi, err)
			}
			c := &batch.Columns[0]
			for r := range batch.Rows {
				if from, to := c.Row(r); !slices.Equal(c.IDs[from:to], rows[lo+r]) {
					t.Fatalf("pages of %d, row %d of %d to %d: got %v, want %v", n, lo+r, lo, hi, c.IDs[from:to], rows[lo+r])
				}
			}
		}
	}
}

// TestClaims: small files that claim much are refused before memory is taken.
func TestClaims(t *testing.T) {
	page := func(values, size, claim int) []byte {
		h := pageHeader(values, size)
		return append(append([]byte("PAR1"), bytes.Replace(h, binary.AppendVarint([]byte{0x16}, int64(size)),
			binary.AppendVarint([]byte{0x16}, int64(claim)), 1)...), make([]byte, size)...)
	}
	for _, tt := range []struct {
		name string
		b    []byte
		want string
	}{
		{"values", finish(page(1<<30, 10, 10), 10, 1<<30), "want at most"},
		{"bytes", finish(page(10, 10, 1<<30), 10, 10), "want the 1073741824"},
		{"more bytes", finish(page(10, 10, 1<<31-1), 10, 10), "want at most"},
		{"rows", finish(page(10, 10, 10), 1<<40, 1<<40), "1099511627776"},
		{"levels", finish(page(1<<26, 10, 10), 10, 1<<26), "damaged"},
	} {
		tab, err := Open(bytes.NewReader(tt.b), int64(len(tt.b)), tt.name)
		if err == nil {
			err = tab.Read(0, min(tab.Rows(), 10), []Field{{"ids", IDs}}, new(Batch))
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
