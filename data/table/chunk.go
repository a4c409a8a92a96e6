// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"

	"pleach/internal/fault"
)

// chunk is one column in one row group: where its pages are and which rows start
// in them. It is shared by all cursors.
type chunk struct {
	group int
	leaf  *leaf
	meta  *chunkMeta
	rows  int64
	codec int64
	dict  pageRef // size 0 for none
	pages []pageRef

	indexed bool // the pages are those of the offset index
	whole   bool // no row runs on into another page

	mu     sync.Mutex
	starts []int64 // rows that start in front of page i; known for i < len(starts)
}

// pageRef is a page that was found.
type pageRef struct {
	off    int64
	size   int64 // with its header
	typ    int64 // unknown (-1) where it comes from the offset index
	values int64 // unknown (-1) where it comes from the offset index
}

// walk finds the pages by their headers, which give the size of what follows them.
func (c *chunk) walk(f *parquetFile) error {
	off, end := c.meta.start, c.meta.start+c.meta.compressed
	values, rows, counted := int64(0), int64(0), true
	var buf []byte
	for off < end {
		h, err := f.readHeader(off, end, &buf)
		if err != nil {
			return f.wrap(c, off, err)
		}
		ref := pageRef{off, int64(h.length) + h.compressed, h.typ, h.values}
		switch h.typ {
		case dictionaryPage:
			if c.dict.size > 0 || len(c.pages) > 0 {
				return f.wrap(c, off, errors.New("got a dictionary, want it once and in front of the data"))
			}
			c.dict = ref
		case dataPage, dataPageV2:
			if len(c.pages) == maxPages {
				return f.wrap(c, off, fmt.Errorf("got more than %d pages", maxPages))
			}
			n := h.values
			if h.typ == dataPageV2 {
				n = h.rows
			}
			counted = counted && (c.leaf.maxRep == 0 || h.typ == dataPageV2)
			if counted {
				c.starts = append(c.starts, rows)
			}
			c.pages = append(c.pages, ref)
			values, rows = values+h.values, rows+n
		}
		off += ref.size
	}
	if counted {
		c.starts = append(c.starts, rows)
	} else if len(c.starts) == 0 {
		c.starts = append(c.starts, 0)
	}
	if values != c.meta.values || counted && rows != c.rows {
		return f.wrap(c, c.meta.start, fmt.Errorf("got headers of %d values and %d rows, want %d and %d",
			values, rows, c.meta.values, c.rows))
	}
	return nil
}

// readIndex takes the pages from the offset index, if the file has one that fits
// the column. What it says of each page is compared with the page when it is read.
func (c *chunk) readIndex(f *parquetFile) (bool, error) {
	m := c.meta
	if m.indexOffset <= 0 || m.indexLength <= 0 || m.indexLength > min(maxIndex, f.size) ||
		m.indexOffset > f.size-m.indexLength {
		return false, nil
	}
	b := make([]byte, m.indexLength)
	if err := fault.ReadFull(f.r, b, m.indexOffset); err != nil {
		return false, f.wrap(c, m.indexOffset, err)
	}
	if !c.parseIndex(b) {
		c.pages, c.starts = nil, nil // an index that is no good is as none
		return false, nil
	}
	c.starts = append(c.starts, c.rows)
	c.indexed = true
	if first := c.pages[0].off; first > m.start {
		c.dict = pageRef{m.start, first - m.start, dictionaryPage, -1}
	}
	return true, nil
}

// parseIndex reads an OffsetIndex, and says whether its pages are inside of the
// column and in order.
func (c *chunk) parseIndex(b []byte) bool {
	t := &thrift{b: b}
	at, ok := c.meta.start, true
	end := c.meta.start + c.meta.compressed
	t.fields(func(id int, typ byte) bool {
		return id == 1 && t.structs(typ, func() {
			ref, row := t.location()
			n := len(c.starts)
			ok = ok && ref.off >= at && ref.size > 0 && ref.size <= end-ref.off && n < maxPages &&
				(n == 0 && row == 0 || n > 0 && row >= c.starts[n-1]) && row <= c.rows
			if ok {
				c.pages, c.starts = append(c.pages, ref), append(c.starts, row)
				at = ref.off + ref.size
			}
		})
	})
	return ok && t.err == nil && len(c.pages) > 0
}

// location reads a PageLocation: where a page is, and the row with which it begins.
func (t *thrift) location() (ref pageRef, row int64) {
	ref, row = pageRef{typ: -1, values: -1}, -1
	t.fields(func(id int, typ byte) bool {
		switch id {
		case 1:
			return t.setInt(&ref.off, typ)
		case 2:
			return t.setInt(&ref.size, typ)
		case 3:
			return t.setInt(&row, typ)
		}
		return false
	})
	return ref, row
}

// agrees compares a page with what the headers or the index said before.
func (c *chunk) agrees(i int, h *header) error {
	ref := &c.pages[i]
	switch {
	case h.typ != dataPage && h.typ != dataPageV2,
		ref.typ >= 0 && h.typ != ref.typ, ref.values >= 0 && h.values != ref.values:
		return fmt.Errorf("got a page of type %d and %d values where another was found before",
			h.typ, h.values)
	case int64(h.length)+h.compressed != ref.size:
		return fmt.Errorf("got a page of %d bytes, want %d", int64(h.length)+h.compressed, ref.size)
	}
	return nil
}

// first is the number of rows that start in front of page i, which is known.
func (c *chunk) first(i int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts[i]
}

// learn compares the rows that start in page i with what is known, or adds it.
func (c *chunk) learn(i int, first int64, p *page) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := first + int64(p.starts)
	if i+1 == len(c.pages) && next != c.rows || next > c.rows {
		return fmt.Errorf("got %d rows up to the end of this page, want %d in the group", next, c.rows)
	}
	if (i == 0 || c.whole) && len(p.rep) > 0 && p.rep[0] != 0 {
		return errors.New("got a page that starts inside of a row")
	}
	switch {
	case i+1 < len(c.starts):
		if c.starts[i+1] != next {
			return fmt.Errorf("got %d rows, want %d: the index of the pages is damaged",
				p.starts, c.starts[i+1]-first)
		}
	case i+1 == len(c.starts):
		c.starts = append(c.starts, next)
	}
	return nil
}

// find gives the page in which row lo starts. Where only the values of pages are
// known it counts the rows of those in front.
func (c *chunk) find(lo int64, p *pages) (int, error) {
	for {
		c.mu.Lock()
		n := len(c.starts)
		known := c.starts[n-1] > lo || n > len(c.pages)
		at := sort.Search(n, func(i int) bool { return c.starts[i] > lo }) - 1
		last := c.starts[n-1]
		c.mu.Unlock()
		if known {
			return c.check(at, p)
		}
		i := n - 1
		page, err := c.readPage(i, p.f, nil, true)
		if err == nil {
			err = c.learn(i, last, page)
		}
		if err != nil {
			return 0, p.wrap(c.pages[i].off, err)
		}
	}
}

// readPage reads and decodes page i, or only its levels.
func (c *chunk) readPage(i int, f *parquetFile, dict *values, levelsOnly bool) (*page, error) {
	raw := new([]byte)
	if c.codec != codecNone {
		raw = storedPages.Get().(*[]byte)
	}
	h, body, err := f.readPage(c.pages[i], raw)
	if err == nil {
		err = c.agrees(i, &h)
	}
	if err != nil {
		return nil, err
	}
	p := new(page)
	err = p.decode(&h, body, c.leaf, c.codec, dict, levelsOnly)
	if c.codec != codecNone && !h.stored {
		storedPages.Put(raw) // else the values of the page are in it
	}
	return p, err
}

// storedPages are buffers for pages as they are stored, which are used again.
var storedPages = sync.Pool{New: func() any { return new([]byte) }}

// check refuses a page that is not there.
func (c *chunk) check(at int, p *pages) (int, error) {
	if at < 0 || at >= len(c.pages) {
		return 0, p.f.wrap(c, c.meta.start, fmt.Errorf("got no page with the row, of %d", c.rows))
	}
	return at, nil
}

// readHeader reads the header at off, of which only the end of the chunk is known.
func (f *parquetFile) readHeader(off, end int64, buf *[]byte) (header, error) {
	for n := int64(256); ; n *= 16 {
		n = min(n, end-off)
		*buf = grow(*buf, int(n))
		if err := fault.ReadFull(f.r, *buf, off); err != nil {
			return header{}, err
		}
		h, err := parseHeader(*buf)
		if err == errShort && n < end-off && n < maxHeader {
			continue
		}
		if err == nil && int64(h.length)+h.compressed > end-off {
			err = fmt.Errorf("got a page of %d bytes, but %d are left of the column: %w",
				h.compressed, end-off-int64(h.length), io.ErrUnexpectedEOF)
		}
		return h, err
	}
}

// readPage reads a page that was found: its header and what is behind it.
func (f *parquetFile) readPage(ref pageRef, buf *[]byte) (header, []byte, error) {
	if ref.size > maxPage+maxHeader {
		return header{}, nil, fmt.Errorf("got a page of %d bytes, want at most %d", ref.size, maxPage)
	}
	*buf = grow(*buf, int(ref.size))
	if err := fault.ReadFull(f.r, *buf, ref.off); err != nil {
		return header{}, nil, err
	}
	h, err := parseHeader(*buf)
	if err != nil {
		return h, nil, err
	}
	body := (*buf)[h.length:]
	if int64(len(body)) != h.compressed {
		return h, nil, fmt.Errorf("got a page of %d bytes, want %d", len(body), h.compressed)
	}
	return h, body, nil
}
