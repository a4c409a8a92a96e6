// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"pleach/internal/fault"
)

// parquetFile is a Parquet file.
type parquetFile struct {
	t      *Table
	r      io.ReaderAt
	size   int64
	footer *footer
	leaves []leaf

	mu         sync.Mutex
	chunks     map[[2]int]*chunk // what is known of their pages, by group and column
	remembered int               // pages in chunks
}

func (t *Table) openParquet(r io.ReaderAt, size int64) error {
	f, err := readFooter(r, size, t.name)
	if err != nil {
		return err
	}
	leaves, err := leavesOf(f.elements)
	if err != nil {
		return fault.Damagef("table: reading %s: Parquet schema: %w", t.name, err)
	}
	sum := int64(0)
	for g := range f.groups {
		rows := f.groups[g].rows
		if rows < 0 || rows > math.MaxInt64-sum {
			return fault.Damagef("table: reading %s: row group %d: got %d rows", t.name, g, rows)
		}
		if len(f.groups[g].chunks) != len(leaves) {
			return fault.Damagef("table: reading %s: row group %d: got %d columns, want the %d of the schema",
				t.name, g, len(f.groups[g].chunks), len(leaves))
		}
		t.groups = append(t.groups, sum)
		sum += rows
	}
	if sum != f.rows {
		return fault.Damagef("table: reading %s: got %d rows in its row groups, want the %d of the footer",
			t.name, sum, f.rows)
	}
	t.rows = sum
	for i := range leaves {
		t.fields = append(t.fields, leaves[i].path)
	}
	t.file = &parquetFile{t: t, r: r, size: size, footer: f, leaves: leaves, chunks: map[[2]int]*chunk{}}
	return nil
}

// parquetColumn is a leaf in one form.
type parquetColumn struct {
	f    *parquetFile
	leaf *leaf
	form Form
}

func (f *parquetFile) column(field Field) (column, error) {
	i, err := f.t.find(field.Path)
	if err != nil {
		return nil, err
	}
	l := &f.leaves[i]
	if err := suits(f.t.name, field, l.kind, l.what); err != nil {
		return nil, err
	}
	return &parquetColumn{f, l, field.Form}, nil
}

func (c *parquetColumn) cursor() cursor {
	return &pages{parquetColumn: *c, group: -1}
}

func (f *parquetFile) wrap(c *chunk, off int64, err error) error {
	return fault.Damagef("table: reading %s: row group %d, column %s: page at byte %d: %w",
		f.t.name, c.group, c.leaf.path, off, err)
}

// forget makes room for n more pages to remember.
func (f *parquetFile) forget(n int) {
	if f.remembered += n; f.remembered > maxPages {
		clear(f.chunks)
		f.remembered = n
	}
}

// chunk gives what is known of the pages of a column in a group, finding it out if
// nobody has asked yet. Two that ask at once may both do it.
func (f *parquetFile) chunk(g int, l *leaf) (*chunk, error) {
	key := [2]int{g, l.index}
	f.mu.Lock()
	c := f.chunks[key]
	f.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := f.newChunk(g, l)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.chunks[key]; other != nil {
		return other, nil
	}
	f.forget(len(c.pages))
	f.chunks[key] = c
	return c, nil
}

// newChunk finds the pages of a column in a group.
func (f *parquetFile) newChunk(g int, l *leaf) (*chunk, error) {
	m := &f.footer.groups[g].chunks[l.index]
	c := &chunk{group: g, leaf: l, meta: m, rows: f.footer.groups[g].rows, codec: m.codec}
	what := ""
	switch {
	case m.encrypted:
		what = "is encrypted: encrypted files are not read"
	case m.elsewhere || m.bad:
		what = "is in another file: such files are not read"
	case codecNames[m.codec] == "" || m.codec == 3 || m.codec == 5:
		what = fmt.Sprintf("is compressed by %s (codec %d), which is not read", codecNames[m.codec], m.codec)
	case m.start < 4 || m.compressed < 0 || m.compressed > f.size-8-m.start:
		what = fmt.Sprintf("has %d bytes at byte %d, which the file of %d bytes does not have",
			m.compressed, m.start, f.size)
	case l.maxRep == 0 && m.values != c.rows:
		what = fmt.Sprintf("has %d values in %d rows", m.values, c.rows)
	}
	if what != "" {
		return nil, fault.Damagef("table: reading %s: row group %d: column %s %s", f.t.name, g, l.path, what)
	}
	ok, err := c.readIndex(f)
	if err == nil && !ok {
		err = c.walk(f)
	}
	if err != nil {
		return nil, err
	}
	older := func(p pageRef) bool { return p.typ != dataPageV2 }
	c.whole = c.indexed || l.maxRep == 0 || !slices.ContainsFunc(c.pages, older)
	return c, nil
}
