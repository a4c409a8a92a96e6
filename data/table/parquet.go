// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
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
		return fault.Dataf("table: reading %s: Parquet schema: %w", t.name, err)
	}
	sum := int64(0)
	for g := range f.groups {
		rows := f.groups[g].rows
		if rows < 0 || rows > math.MaxInt64-sum {
			return fault.Dataf("table: reading %s: row group %d: got %d rows", t.name, g, rows)
		}
		if len(f.groups[g].chunks) != len(leaves) {
			return fault.Dataf("table: reading %s: row group %d: got %d columns, want the %d of the schema",
				t.name, g, len(f.groups[g].chunks), len(leaves))
		}
		t.groups = append(t.groups, sum)
		sum += rows
	}
	if sum != f.rows {
		return fault.Dataf("table: reading %s: got %d rows in its row groups, want the %d of the footer", t.name, sum, f.rows)
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
	var found *leaf
	for i := range f.leaves {
		if f.leaves[i].path != field.Path {
			continue
		}
		if found != nil {
			return nil, fault.Configf("table: %s: field %s: got two columns of this path", f.t.name, field.Path)
		}
		found = &f.leaves[i]
	}
	if found == nil {
		if err := f.t.inside(field.Path); err != nil {
			return nil, err
		}
		return nil, f.t.missing(field.Path)
	}
	if err := suits(f.t.name, field, found.kind, found.what); err != nil {
		return nil, err
	}
	return &parquetColumn{f, found, field.Form}, nil
}

// suits checks the form of a field.
func suits(name string, f Field, k kind, what string) error {
	switch {
	case k == foreign:
		return fault.Configf("table: %s: field %s: got %s, which is not read", name, f.Path, what)
	case !k.fits(f.Form):
		return fault.Configf("table: %s: field %s: got %s, want %s", name, f.Path, what, f.Form)
	}
	return nil
}

func (c *parquetColumn) cursor() cursor {
	return &pages{parquetColumn: *c, group: -1}
}

// pages is the cursor of a Parquet column: the page it decoded last, where it is in
// it, and the dictionary of the row group.
type pages struct {
	parquetColumn
	group int
	chunk *chunk
	dict  *values // of the row group, nil if it has none
	at    int     // number of the page, -1 for none
	page  page
	first int64 // rows of the group that start in front of the page

	level, val int   // the next level and value of the page
	row        int64 // rows that started before that level
	dictPage   page  // holds the bytes of dict
	dictValues values
}

// read appends rows [lo,hi) of row group g.
func (p *pages) read(g int, lo, hi int64, dst *Column) error {
	if err := p.enter(g); err != nil {
		return err
	}
	if err := p.seek(lo); err != nil {
		return err
	}
	for {
		done, err := p.take(lo, hi, dst)
		if err != nil {
			return p.at0(err)
		}
		if done {
			return nil
		}
		if p.at+1 == len(p.chunk.pages) {
			if p.row != hi {
				return p.at0(fmt.Errorf("got %d rows in its pages, want %d", p.row, p.chunk.rows))
			}
			dst.endRow()
			return nil
		}
		if err := p.load(p.at + 1); err != nil {
			return err
		}
	}
}

// enter makes g the group of the cursor.
func (p *pages) enter(g int) error {
	if p.group == g {
		return nil
	}
	p.group, p.at, p.dict = -1, -1, nil
	c, err := p.f.chunk(g, p.leaf)
	if err != nil {
		return err
	}
	p.chunk = c
	if c.dict.size > 0 {
		if err := p.loadDictionary(); err != nil {
			return p.wrap(c.dict.off, err)
		}
	}
	p.group = g
	return nil
}

// seek goes to the start of row lo, or stays where it is if that is there.
func (p *pages) seek(lo int64) error {
	if p.at < 0 || lo < p.first || lo >= p.first+int64(p.page.starts) {
		at, err := p.chunk.find(lo, p)
		if err != nil {
			return err
		}
		if err := p.load(at); err != nil {
			return err
		}
	}
	if lo < p.row {
		p.rewind()
	}
	p.skip(lo)
	return nil
}

// rewind goes to the start of the page.
func (p *pages) rewind() { p.level, p.val, p.row = 0, 0, p.first }

// skip goes to where row lo starts in the page; it does start there.
func (p *pages) skip(lo int64) {
	if p.leaf.maxRep == 0 {
		n := int(lo - p.row)
		p.val += p.page.present(p.level, p.level+n, p.leaf)
		p.level, p.row = p.level+n, lo
		return
	}
	from := p.level
	for p.level = p.page.endOfRow(p.level); p.row < lo; p.row++ {
		p.level = p.page.endOfRow(p.level + 1)
	}
	p.val += p.page.present(from, p.level, p.leaf)
}

// take appends what the page has of rows [lo,hi) from the current level on, and
// says whether the row behind them was seen to start. Rows before the last one are
// closed.
func (p *pages) take(lo, hi int64, dst *Column) (bool, error) {
	if p.leaf.maxRep == 0 {
		n := int(min(hi-p.row, int64(p.page.n-p.level)))
		for range n {
			if err := p.add(dst); err != nil {
				return false, err
			}
			dst.endRow()
		}
		p.row += int64(n)
		return p.row == hi, nil
	}
	for p.level < p.page.n {
		if p.page.rep[p.level] == 0 {
			if p.row > lo {
				dst.endRow()
			}
			if p.row == hi {
				return true, nil
			}
			p.row++
		}
		if err := p.addRow(p.page.endOfRow(p.level+1), dst); err != nil {
			return false, err
		}
	}
	// Where rows do not run on into the next page the last one ends here.
	if p.row == hi && (p.chunk.whole || p.at+1 == len(p.chunk.pages)) {
		dst.endRow()
		return true, nil
	}
	return false, nil
}

// addRow appends the values up to a level.
func (p *pages) addRow(end int, dst *Column) error {
	n := end - p.level
	if p.form == IDs && p.leaf.kind == ints && p.page.present(p.level, end, p.leaf) == n {
		err := dst.addIDs(&p.page.vals, p.val, n)
		p.level, p.val = end, p.val+n
		return err
	}
	for p.level < end {
		if err := p.add(dst); err != nil {
			return err
		}
	}
	return nil
}

// add appends the value at the current level, and passes it.
func (p *pages) add(dst *Column) error {
	m := isPresent
	if p.leaf.maxDef > 0 {
		m = p.leaf.means[p.page.def[p.level]]
	}
	p.level++
	switch m {
	case isPresent:
		p.val++
		return dst.addValue(&p.page.vals, p.val-1, p.leaf.kind, p.form, p.leaf.physical)
	case isEmpty:
		return nil
	}
	return dst.addNull(Null(m), p.form)
}

// addNull appends a value that is not there.
func (c *Column) addNull(n Null, f Form) error {
	if len(c.Nulls) >= maxRead {
		return errRead()
	}
	c.Nulls = append(c.Nulls, n)
	if f == IDs {
		c.IDs = append(c.IDs, 0)
		return nil
	}
	c.Ends = append(c.Ends, int64(len(c.Bytes)))
	return nil
}

// maxBatch and maxRead bound what one Read gives of a column: bytes, and values.
const (
	maxBatch = 4 << 30
	maxRead  = 1 << 28
)

func errRead() error {
	return fmt.Errorf("got more than %d bytes or %d values in the rows of one read: ask for fewer rows", int64(maxBatch), maxRead)
}

// addIDs appends values i ≤ k < i+n, which are integers with a sign.
func (c *Column) addIDs(v *values, i, n int) error {
	if len(c.Nulls)+n > maxRead {
		return errRead()
	}
	at := len(c.IDs)
	c.Nulls = slices.Grow(c.Nulls, n)[:at+n]
	clear(c.Nulls[at:])
	c.IDs = slices.Grow(c.IDs, n)[:at+n]
	dst := c.IDs[at:]
	if v.dict != nil {
		from := v.dict.ints
		for k, j := range v.index[i : i+n] {
			x := from[j]
			if dst[k] = int32(x); int64(dst[k]) != x {
				return errFit(x, ints)
			}
		}
		return nil
	}
	for k, x := range v.ints[i : i+n] {
		if dst[k] = int32(x); int64(dst[k]) != x {
			return errFit(x, ints)
		}
	}
	return nil
}

func errFit(x int64, k kind) error {
	if k == uints {
		return fmt.Errorf("got the integer %d, want one that fits into 32 bits with a sign", uint64(x))
	}
	return fmt.Errorf("got the integer %d, want one that fits into 32 bits", x)
}

// addValue appends value i in a form.
func (c *Column) addValue(v *values, i int, k kind, f Form, physical int64) error {
	switch {
	case k == nulls:
		return errors.New("got a value in a column of type null")
	case k == texts:
		return c.addText(v.text(i))
	case f != IDs && k == uuids:
		b := v.text(i)
		return c.addText(fmt.Appendf(nil, "%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
	}
	x := v.int(i)
	if k == uints && physical == physicalInt32 {
		x = int64(uint32(x))
	}
	if f == IDs {
		return c.addID(x, k)
	}
	return c.addText(appendLabel(nil, x, k))
}

func (c *Column) addText(b []byte) error {
	if len(c.Bytes)+len(b) > maxBatch || len(c.Nulls) >= maxRead {
		return errRead()
	}
	c.Bytes = append(c.Bytes, b...)
	c.Ends = append(c.Ends, int64(len(c.Bytes)))
	c.Nulls = append(c.Nulls, Present)
	return nil
}

func (c *Column) addID(x int64, k kind) error {
	if x != int64(int32(x)) {
		return errFit(x, k)
	}
	if len(c.Nulls) >= maxRead {
		return errRead()
	}
	c.IDs = append(c.IDs, int32(x))
	c.Nulls = append(c.Nulls, Present)
	return nil
}

// appendLabel writes a number or boolean.
func appendLabel(b []byte, x int64, k kind) []byte {
	switch k {
	case ints:
		return strconv.AppendInt(b, x, 10)
	case uints:
		return strconv.AppendUint(b, uint64(x), 10)
	case bools:
		return strconv.AppendBool(b, x != 0)
	case float32s:
		return strconv.AppendFloat(b, float64(math.Float32frombits(uint32(x))), 'g', -1, 32)
	}
	return strconv.AppendFloat(b, math.Float64frombits(uint64(x)), 'g', -1, 64)
}

// load decodes page i.
func (p *pages) load(i int) error {
	next := p.at >= 0 && i == p.at+1
	rows := p.first + int64(p.page.starts)
	p.at = -1
	ref := p.chunk.pages[i]
	h, body, err := p.f.readPage(ref, &p.page.raw)
	if err == nil {
		err = p.chunk.agrees(i, &h)
	}
	if err == nil {
		err = p.page.decode(&h, body, p.leaf, p.chunk.codec, p.dict, false)
	}
	if err != nil {
		return p.wrap(ref.off, err)
	}
	if !next {
		rows = p.chunk.first(i)
	}
	if err := p.chunk.learn(i, rows, &p.page); err != nil {
		return p.wrap(ref.off, err)
	}
	p.at, p.first = i, rows
	p.rewind()
	return nil
}

func (p *pages) loadDictionary() error {
	h, body, err := p.f.readPage(p.chunk.dict, &p.dictPage.raw)
	if err != nil {
		return err
	}
	if h.typ != dictionaryPage {
		return fmt.Errorf("got a page of type %d, want a dictionary", h.typ)
	}
	if err := h.check(body); err != nil {
		return err
	}
	if h.encoding != plain && h.encoding != plainDictionary {
		return fmt.Errorf("got a dictionary in encoding %d, want plain", h.encoding)
	}
	b, err := decompress(p.chunk.codec, p.dictPage.body, body, h.uncompressed)
	if err != nil {
		return err
	}
	if p.chunk.codec != codecNone {
		p.dictPage.body = b
	}
	p.dict = &p.dictValues
	return p.dict.decode(b, int(h.values), plain, p.leaf.physical, nil)
}

// at0 wraps an error in the current page.
func (p *pages) at0(err error) error {
	if p.at < 0 {
		return err
	}
	return p.wrap(p.chunk.pages[p.at].off, err)
}

func (p *pages) wrap(off int64, err error) error {
	return p.f.wrap(p.chunk, off, err)
}

func (f *parquetFile) wrap(c *chunk, off int64, err error) error {
	return fault.Dataf("table: reading %s: row group %d, column %s: page at byte %d: %w",
		f.t.name, c.group, c.leaf.path, off, err)
}

// forget makes room for n more pages to remember.
func (f *parquetFile) forget(n int) {
	if f.remembered += n; f.remembered > maxElements {
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
		what = fmt.Sprintf("has %d bytes at byte %d, which the file of %d bytes does not have", m.compressed, m.start, f.size)
	case l.maxRep == 0 && m.values != c.rows:
		what = fmt.Sprintf("has %d values in %d rows", m.values, c.rows)
	}
	if what != "" {
		return nil, fault.Dataf("table: reading %s: row group %d: column %s %s", f.t.name, g, l.path, what)
	}
	ok, err := c.readIndex(f)
	if err == nil && !ok {
		err = c.walk(f)
	}
	if err != nil {
		return nil, err
	}
	c.whole = c.indexed || l.maxRep == 0 || !slices.ContainsFunc(c.pages, func(p pageRef) bool { return p.typ != dataPageV2 })
	return c, nil
}
