// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"pleach/internal/fault"
)

// arrays is the cursor of an Arrow column: the arrays on the way to it in one batch.
type arrays struct {
	arrowColumn
	group int
	way   []array
	meta  []byte

	dict     Column    // the values of the dictionary, one a row
	dictFrom dictRange // what dict was made of
}

// dictRange is the dictionary batches first ≤ i < end of one dictionary; which of
// them are its own is told by their number.
type dictRange struct {
	loaded     bool
	first, end int
}

// array is one field of a batch.
type array struct {
	*field
	length int64
	valid  window // a bit for each element; no bytes if all are there
	first  window // offsets, views, numbers, or places in a dictionary
	data   window // bytes of texts
	more   []window
}

// read appends rows [lo,hi) of batch g.
func (c *arrays) read(g int, lo, hi int64, dst *Column) error {
	m := &c.f.batches[g]
	err := c.enter(g)
	for ; lo < hi && err == nil; lo++ {
		err = c.emit(0, lo, lo+1, dst)
		dst.endRow()
	}
	if err != nil {
		return c.f.wrap(m.off, fmt.Errorf("batch %d: column %s: %w", g, c.leaf.path, err))
	}
	return nil
}

// enter reads the header of batch g and finds the buffers.
func (c *arrays) enter(g int) error {
	if c.group == g {
		return nil
	}
	c.group = -1
	m := &c.f.batches[g]
	if err := c.bind(m, c.leaf.way); err != nil {
		return err
	}
	if c.way[0].length != m.rows {
		return fmt.Errorf("got a column of %d rows in a batch of %d", c.way[0].length, m.rows)
	}
	if last := c.way[len(c.way)-1]; last.dict >= 0 {
		if err := c.loadDictionary(last.field, m); err != nil {
			return err
		}
	}
	c.group = g
	return nil
}

// bind finds the arrays of some fields in a message.
func (c *arrays) bind(m *message, way []*field) error {
	var err error
	if c.meta, err = c.f.metadata(m, c.meta); err != nil {
		return err
	}
	var bad error
	f := root(c.meta, &bad)
	h := f.table(2)
	if f.int(1, 1, 0) == messageDictionary {
		h = h.table(1)
	}
	b := body{f: c.f, m: m, flat: h, codec: -1}
	if z := h.table(3); z.at >= 0 {
		b.codec = z.int(0, 1, 0)
		if z.int(1, 1, 0) != 0 || b.codec != 0 && b.codec != 1 {
			return fmt.Errorf("got compression %d by method %d, which is not read", b.codec, z.int(1, 1, 0))
		}
	}
	c.way = grow(c.way, len(way))
	for i, x := range way {
		if err := b.array(&c.way[i], x); err != nil {
			return err
		}
	}
	return bad
}

// body finds the buffers of a batch.
type body struct {
	f     *arrowFile
	m     *message
	flat  flat // RecordBatch
	codec int64
}

func (b *body) array(a *array, x *field) error {
	nodes, n := b.flat.vector(1, 16)
	if x.node >= n {
		return fmt.Errorf("got %d arrays in the batch, want more than %d", n, x.node)
	}
	a.field = x
	a.length = b.flat.i64(nodes + 16*x.node)
	missing := b.flat.i64(nodes + 16*x.node + 8)
	if a.length < 0 || missing < 0 || missing > a.length {
		return fmt.Errorf("got an array of %d elements, %d of them null", a.length, missing)
	}
	k := x.buffer
	counts, views := b.flat.vector(4, 8)
	if x.views > views {
		return errFlat
	}
	for i := range x.views {
		k += int(b.flat.i64(counts + 8*i))
	}
	ws := []*window{&a.valid, &a.first, &a.data}
	if !x.validity {
		ws = ws[1:]
	}
	for i := range x.buffers {
		if err := b.window(ws[i], k+i); err != nil {
			return err
		}
	}
	if missing == 0 || !x.validity {
		a.valid.size = 0
	} else if a.valid.size < (a.length+7)/8 {
		return errors.New("got fewer bits than elements that may be null")
	}
	a.more = a.more[:0]
	if x.isView() && x.dict < 0 {
		return b.viewed(a, k+2, counts, views)
	}
	return nil
}

// viewed finds the buffers into which views point.
func (b *body) viewed(a *array, first, counts, views int) error {
	if a.views >= views {
		return errFlat
	}
	n := b.flat.i64(counts + 8*a.views)
	if n < 0 || n > 1<<20 {
		return errFlat
	}
	a.more = grow(a.more, int(n))
	for i := range a.more {
		if err := b.window(&a.more[i], first+i); err != nil {
			return err
		}
	}
	return nil
}

// window finds buffer k.
func (b *body) window(w *window, k int) error {
	at, n := b.flat.vector(2, 16)
	if k < 0 || k >= n {
		return fmt.Errorf("got %d buffers in the batch, want more than %d", n, k)
	}
	off, size := b.flat.i64(at+16*k), b.flat.i64(at+16*k+8)
	if off < 0 || size < 0 || off > b.m.size-size {
		return fmt.Errorf("got a buffer of %d bytes at %d in a body of %d", size, off, b.m.size)
	}
	*w = window{r: b.f.r, off: b.m.body + off, size: size, mem: w.mem[:0], raw: w.raw}
	if b.codec < 0 || size == 0 {
		return nil
	}
	w.codec, w.packed = b.codec, size
	var head [8]byte
	if size < 8 {
		return errors.New("got a compressed buffer without its size")
	}
	if err := fault.ReadFull(b.f.r, head[:], w.off); err != nil {
		return err
	}
	w.off, w.packed = w.off+8, size-8
	if w.size = int64(binary.LittleEndian.Uint64(head[:])); w.size == -1 {
		w.size, w.packed = size-8, 0 // stored as it is
	}
	codec := int64(codecZstd)
	if w.codec == 0 {
		codec = codecLZ4Raw
	}
	if w.size < 0 || w.size > maxBuffer || w.packed > 0 && w.size > ratio[codec]*w.packed {
		return fmt.Errorf("got a buffer of %d bytes that claims to be %d", w.packed, w.size)
	}
	return nil
}

// window is a buffer, of which some bytes are in memory: all if it was compressed,
// else those around where it was read last.
type window struct {
	r      io.ReaderAt
	off    int64 // in the file
	size   int64
	packed int64 // compressed bytes, 0 if it is not compressed
	codec  int64 // of Arrow: 0 is LZ4, 1 is zstd
	lo     int64 // where mem is in the buffer
	mem    []byte
	raw    []byte
}

// ahead is how much of a buffer is read at once, unless more is asked for.
const ahead = 64 << 10

// at gives bytes [lo,hi) of the buffer, up to the next call.
func (w *window) at(lo, hi int64) ([]byte, error) {
	if lo >= w.lo && hi <= w.lo+int64(len(w.mem)) && lo <= hi {
		return w.mem[lo-w.lo : hi-w.lo], nil
	}
	if lo < 0 || hi < lo || hi > w.size {
		return nil, fmt.Errorf("got bytes %d to %d of a buffer of %d", lo, hi, w.size)
	}
	if w.packed > 0 {
		if err := w.unpack(); err != nil {
			w.mem = w.mem[:0]
			return nil, err
		}
		return w.mem[lo:hi], nil
	}
	n := min(max(hi-lo, ahead), w.size-lo)
	mem := grow(w.mem, int(n))
	w.mem = w.mem[:0]
	if err := fault.ReadFull(w.r, mem, w.off+lo); err != nil {
		return nil, err
	}
	w.mem, w.lo = mem, lo
	return mem[:hi-lo], nil
}

// unpack decompresses the whole buffer.
func (w *window) unpack() error {
	w.raw = grow(w.raw, int(w.packed))
	if err := fault.ReadFull(w.r, w.raw, w.off); err != nil {
		return err
	}
	mem := grow(w.mem, int(w.size))
	var err error
	if w.codec == 0 {
		mem, err = lz4Frame(mem[:0:w.size], w.raw)
	} else {
		d, e := zstdDecoder()
		if e != nil {
			return e
		}
		mem, err = d.DecodeAll(w.raw, mem[:0:w.size])
	}
	if err != nil {
		return err
	}
	if int64(len(mem)) != w.size {
		return fmt.Errorf("got %d bytes in a compressed buffer, want %d", len(mem), w.size)
	}
	w.mem, w.lo = mem, 0
	return nil
}

// isNull says whether element i is null.
func (a *array) isNull(i int64) (bool, error) {
	if a.valid.size == 0 {
		return a.typ == arrowNull && a.dict < 0, nil
	}
	b, err := a.valid.at(i/8, i/8+1)
	if err != nil {
		return false, err
	}
	return b[0]>>(i%8)&1 == 0, nil
}

// emit appends the values of elements [lo,hi) of the array at a level of the way,
// what is above them being there.
func (c *arrays) emit(level int, lo, hi int64, dst *Column) error {
	a := &c.way[level]
	if hi > a.length || lo < 0 {
		return fmt.Errorf("got elements %d to %d of an array of %d", lo, hi, a.length)
	}
	if level == len(c.way)-1 {
		return c.values(a, lo, hi, dst)
	}
	if a.typ == arrowStruct && a.valid.size == 0 {
		return c.emit(level+1, lo, hi, dst)
	}
	for i := lo; i < hi; i++ {
		null, err := a.isNull(i)
		if err != nil {
			return err
		}
		if null {
			if err := dst.addNull(Absent, c.form); err != nil {
				return err
			}
			continue
		}
		from, to, err := a.inside(i)
		if err != nil {
			return err
		}
		if err := c.emit(level+1, from, to, dst); err != nil {
			return err
		}
	}
	return nil
}

// inside gives the elements of the child that belong to element i.
func (a *array) inside(i int64) (from, to int64, err error) {
	switch a.typ {
	case arrowStruct:
		return i, i + 1, nil
	case arrowFixedList:
		return i * int64(a.size), (i + 1) * int64(a.size), nil
	}
	return a.offsets(i)
}

// offsets gives where element i starts and ends.
func (a *array) offsets(i int64) (from, to int64, err error) {
	w := int64(a.width)
	b, err := a.first.at(i*w, (i+2)*w)
	if err != nil {
		return 0, 0, err
	}
	if w == 4 {
		from, to = int64(int32(binary.LittleEndian.Uint32(b))), int64(int32(binary.LittleEndian.Uint32(b[4:])))
	} else {
		from, to = int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
	}
	if from < 0 || to < from {
		return 0, 0, fmt.Errorf("got offsets %d and %d of an element", from, to)
	}
	return from, to, nil
}

// values appends elements [lo,hi) of the last array.
func (c *arrays) values(a *array, lo, hi int64, dst *Column) error {
	if c.form == IDs && a.valid.size == 0 && a.dict < 0 && (a.kind == ints || a.kind == uints) {
		return a.ids(lo, hi, dst)
	}
	for i := lo; i < hi; i++ {
		null, err := a.isNull(i)
		switch {
		case err != nil:
		case null:
			err = dst.addNull(Missing, c.form)
		default:
			err = c.value(a, i, dst)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ids appends integers, none of which is null.
func (a *array) ids(lo, hi int64, dst *Column) error {
	if hi-lo > int64(maxRead-len(dst.Nulls)) {
		return errRead()
	}
	w, at := int64(a.width), len(dst.IDs)
	n := int(hi - lo)
	b, err := a.first.at(lo*w, hi*w)
	if err != nil {
		return err
	}
	dst.Nulls = slices.Grow(dst.Nulls, n)[:at+n]
	clear(dst.Nulls[at:])
	dst.IDs = slices.Grow(dst.IDs, n)[:at+n]
	out := dst.IDs[at:]
	signed := a.kind == ints
	if w == 4 && signed {
		for k := range out {
			out[k] = int32(binary.LittleEndian.Uint32(b[4*k:]))
		}
		return nil
	}
	for k := range out {
		x := intAt(b[k*a.width:], a.width, signed)
		if x < math.MinInt32 || x > math.MaxInt32 || !signed && x < 0 {
			return errFit(x, a.kind)
		}
		out[k] = int32(x)
	}
	return nil
}

func (c *arrays) value(a *array, i int64, dst *Column) error {
	switch {
	case a.dict >= 0:
		return c.fromDictionary(a, i, dst)
	case a.isView():
		b, err := a.view(i)
		if err != nil {
			return err
		}
		return dst.addText(b)
	case a.kind == texts:
		from, to, err := a.offsets(i)
		if err != nil {
			return err
		}
		b, err := a.data.at(from, to)
		if err != nil {
			return err
		}
		return dst.addText(b)
	}
	x, err := a.number(i)
	if err != nil {
		return err
	}
	if c.form == IDs {
		return dst.addID(x, a.kind)
	}
	return dst.addText(appendLabel(nil, x, a.kind))
}

// number is element i of an array of integers, booleans or floating-point numbers.
func (a *array) number(i int64) (int64, error) {
	if a.kind == bools {
		b, err := a.first.at(i/8, i/8+1)
		if err != nil {
			return 0, err
		}
		return int64(b[0] >> (i % 8) & 1), nil
	}
	return integer(&a.first, i, a.width, a.kind == ints)
}

// integer is number i of a buffer of integers of a width in bytes.
func integer(w *window, i int64, width int, signed bool) (int64, error) {
	b, err := w.at(i*int64(width), (i+1)*int64(width))
	if err != nil {
		return 0, err
	}
	return intAt(b, width, signed), nil
}

// intAt is the first integer of b. One of 8 bytes without a sign has its bits.
func intAt(b []byte, width int, signed bool) int64 {
	var x uint64
	switch width {
	case 1:
		x = uint64(b[0])
	case 2:
		x = uint64(binary.LittleEndian.Uint16(b))
	case 4:
		x = uint64(binary.LittleEndian.Uint32(b))
	default:
		return int64(binary.LittleEndian.Uint64(b))
	}
	if signed {
		shift := 64 - 8*width
		return int64(x<<shift) >> shift
	}
	return int64(x)
}

// view is element i of an array of views: 4 bytes of length, then up to 12 bytes of
// text, or its first 4 bytes, the number of a buffer and the offset in it.
func (a *array) view(i int64) ([]byte, error) {
	b, err := a.first.at(16*i, 16*i+16)
	if err != nil {
		return nil, err
	}
	n := int64(int32(binary.LittleEndian.Uint32(b)))
	if n >= 0 && n <= 12 {
		return b[4 : 4+n], nil
	}
	k, off := binary.LittleEndian.Uint32(b[8:]), int64(int32(binary.LittleEndian.Uint32(b[12:])))
	if n < 0 || int64(k) >= int64(len(a.more)) {
		return nil, fmt.Errorf("got a text of %d bytes in buffer %d of %d", n, k, len(a.more))
	}
	return a.more[k].at(off, off+n)
}

// fromDictionary appends the value to which element i points.
func (c *arrays) fromDictionary(a *array, i int64, dst *Column) error {
	k, err := integer(&a.first, i, a.index.width, a.index.signed)
	if err != nil {
		return err
	}
	d := &c.dict
	if k < 0 || k >= int64(d.Len()) {
		return fmt.Errorf("got place %d in a dictionary of %d values", k, d.Len())
	}
	switch {
	case d.Nulls[k] != Present:
		return dst.addNull(Missing, c.form)
	case c.form == IDs:
		return dst.addID(int64(d.IDs[k]), ints)
	}
	return dst.addText(d.Text(int(k)))
}

// loadDictionary reads the dictionary that holds for a batch: the last one in front
// of it, and what was added to that since.
func (c *arrays) loadDictionary(x *field, m *message) error {
	from := dictRange{loaded: true, first: -1, end: m.dicts}
	for i, d := range c.f.dicts[:m.dicts] {
		if d.id == x.dict && (!d.delta || from.first < 0) {
			from.first = i
		}
	}
	if from.first < 0 {
		return fmt.Errorf("got no dictionary %d", x.dict)
	}
	if c.dictFrom == from {
		return nil
	}
	c.dictFrom = dictRange{}
	c.dict.reset()
	sub := &arrays{arrowColumn: c.arrowColumn, group: -1}
	way := []*field{c.f.schema.dictKids[x.dict]}
	for i := from.first; i < from.end; i++ {
		d := &c.f.dicts[i]
		if d.id != x.dict {
			continue
		}
		if err := sub.bind(d, way); err != nil {
			return err
		}
		if err := sub.emit(0, 0, d.rows, &c.dict); err != nil {
			return fmt.Errorf("dictionary %d: %w", x.dict, err)
		}
	}
	c.dictFrom = from
	return nil
}
