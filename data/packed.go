// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"

	"pleach/blob"
	"pleach/data/table"
	"pleach/internal/fault"
)

// A folder of rows holds the rows of a run as they are trained on, in their order:
//
//	rows.json     how many, of what, and where to go on for more
//	00000.arrow … parts of 4096 rows: Arrow IPC files, a batch for 32 rows
const (
	rowsName    = "rows.json"
	rowsForm    = 1 // changes with what the files mean
	rowsInPart  = 4096
	rowsInBatch = 32
)

// rowsManifest is rows.json.
type rowsManifest struct {
	Form        int         `json:"form"`
	Sequence    int         `json:"sequence"`
	Joined      bool        `json:"joined"`
	Rows        int64       `json:"rows"`
	Ended       bool        `json:"ended"` // the sources end with them
	Fingerprint Fingerprint `json:"fingerprint"`
	Next        State       `json:"next"` // where the loader stood before the first part that is not full
}

// Columns of rows.
const (
	rowIDs = iota
	rowTargets
	rowFrom
	rowTo
	rowOffset
	rowSource
	rowNames
)

func rowColumns() []table.ColumnDef {
	return []table.ColumnDef{
		{Name: "ids", Kind: table.Numbers},    // T+1
		{Name: "targets", Kind: table.Bits},   // T: whether id i+1 is one
		{Name: "from", Kind: table.Numbers},   // of each document: its first id in the row
		{Name: "to", Kind: table.Numbers},     // and the one after its last
		{Name: "offset", Kind: table.Numbers}, // of the first one in the document
		{Name: "source", Kind: table.Numbers}, // of the recipe that wrote it: not read
		{Name: "names", Kind: table.Strings},
	}
}

func rowFields() []table.Field {
	var fields []table.Field
	for _, c := range rowColumns() {
		f := table.Field{Path: c.Name, Form: table.IDs}
		if c.Kind == table.Strings {
			f.Form = table.Text
		}
		fields = append(fields, f)
	}
	return fields
}

// WriteRows writes the first n rows of a loader of one rank, from the start of its
// run, into a folder, or fewer if its sources end: io.EOF then. A source of ready
// rows with that folder as its path gives them back as they are, documents and
// targets included. Complete parts that are there already are kept. progress may be
// nil.
func WriteRows(ctx context.Context, l *Loader, n int64, dir string, progress func(done, total int64)) error {
	m := rowsManifest{Form: rowsForm, Sequence: l.spec.Sequence, Joined: l.spec.Joined, Fingerprint: l.Fingerprint()}
	if l.spec.Ranks != 1 {
		return fault.Configf("data: writing rows: got %d ranks, want 1", l.spec.Ranks)
	}
	old, err := readRows(dir)
	if err != nil {
		return err
	}
	if old != nil {
		if d := old.Fingerprint.Differ(m.Fingerprint); len(d) > 0 {
			return fault.Statef("data: writing rows into %s: it holds rows of other data: %s: want another folder", dir, d[0])
		}
		if err := old.sound(dir); err != nil {
			return fault.Statef("data: writing rows into %s: want another folder: %w", dir, err)
		}
		if progress != nil {
			progress(old.Rows, max(n, old.Rows))
		}
		if old.Ended && old.Rows < n {
			return io.EOF
		}
		if old.Rows >= n {
			return nil
		}
		if err := l.Restore(old.Next); err != nil {
			return err
		}
		m = *old
		m.Rows -= m.Rows % rowsInPart // a part that is not full is made anew
	} else if holdsFiles(dir) {
		return fault.Statef("data: writing rows into %s: it holds files that are no rows: want an empty or a new folder", dir)
	}
	store := blob.Local(dir)
	for m.Rows < n {
		ended, err := writePart(ctx, l, store, &m, min(rowsInPart, n-m.Rows))
		if err != nil {
			return err
		}
		if progress != nil {
			progress(m.Rows, n)
		}
		if ended {
			return io.EOF
		}
	}
	return nil
}

// sound opens the parts that are kept; one that is not full is made anew.
func (m *rowsManifest) sound(dir string) error {
	for i := range m.Rows / rowsInPart {
		if err := sound(dir, int(i), rowsInPart); err != nil {
			return err
		}
	}
	return nil
}

// writePart writes the next n rows and records them.
func writePart(ctx context.Context, l *Loader, store *blob.Dir, m *rowsManifest, n int64) (ended bool, err error) {
	var wrote int64
	m.Next = l.State()
	err = store.Write(partName(int(m.Rows/rowsInPart)), func(f io.Writer) error {
		w, err := table.NewWriter(f, nil, rowColumns()...)
		if err != nil {
			return err
		}
		for !ended && err == nil && w.Rows() < n {
			if err = ctx.Err(); err == nil {
				ended, err = writeBatch(l, w, int(min(rowsInBatch, n-w.Rows())))
			}
		}
		wrote = w.Rows()
		return errors.Join(err, w.Close())
	})
	if err != nil {
		return ended, err
	}
	if m.Rows, m.Ended = m.Rows+wrote, ended; wrote == rowsInPart {
		m.Next = l.State()
	}
	return ended, writeManifest(store, rowsName, m)
}

func writeBatch(l *Loader, w *table.Writer, n int) (ended bool, err error) {
	rows, err := l.Next(n)
	if ended = errors.Is(err, io.EOF); err != nil && !ended {
		return false, err
	}
	for _, r := range rows {
		targets := make([]uint8, len(r.Labels))
		for i, label := range r.Labels {
			if label >= 0 {
				targets[i] = 1
			}
		}
		w.Numbers(rowIDs, r.IDs)
		w.Bits(rowTargets, targets)
		var columns [rowNames][]int32
		var names []string
		for _, d := range r.Docs {
			columns[rowFrom] = append(columns[rowFrom], int32(d.From))
			columns[rowTo] = append(columns[rowTo], int32(d.To))
			columns[rowOffset] = append(columns[rowOffset], int32(d.Offset))
			columns[rowSource] = append(columns[rowSource], int32(d.Source))
			names = append(names, d.ID)
		}
		for c := rowFrom; c < rowNames; c++ {
			w.Numbers(c, columns[c])
		}
		w.Strings(rowNames, names)
	}
	return ended, w.EndBatch()
}

// readRows reads rows.json of a folder; nil if it has none.
func readRows(dir string) (*rowsManifest, error) {
	m := &rowsManifest{}
	name, err := readManifest(dir, rowsName, m)
	if name == "" || err != nil {
		return nil, err
	}
	if m.Form != rowsForm || m.Rows < 1 || m.Sequence < 1 {
		return nil, fault.Dataf("data: %s: got form %d with %d rows, want form %d: it was made by another version",
			name, m.Form, m.Rows, rowsForm)
	}
	return m, nil
}

// packedRows is a folder of rows as a source.
type packedRows struct {
	dir string
	rowsManifest
}

// openRows makes s a source of packed rows if its path is a folder of them.
func (s *source) openRows() (bool, error) {
	if len(s.Paths) != 1 || !s.Rows {
		return false, nil
	}
	m, err := readRows(s.Paths[0])
	if m == nil || err != nil {
		return false, err
	}
	s.packed = &packedRows{s.Paths[0], *m}
	size := m.Rows * int64(m.Sequence+1) * 4
	b, err := json.Marshal(m.Fingerprint)
	if err != nil {
		return false, err
	}
	s.size, s.Field, s.Format = size, cmp.Or(s.Field, "text"), cmp.Or(s.Format, formatJSONL) // as sources of rows have them
	s.files = []file{{
		found: found{name: s.Paths[0], rel: filepath.Base(s.Paths[0])}, size: size, format: formatArrow, print: b,
		lines: &lineIndex{}, shape: &shape{},
	}}
	s.skipped, s.examples = map[string]int64{}, map[string]string{}
	return true, nil
}

// prepare opens a part.
func (p *packedRows) prepare(t *shelved) error {
	return t.openPart(p.dir, min(rowsInPart, p.Rows-int64(t.file)*rowsInPart))
}

// packedRow fills r with row g of the folder.
func (s *source) packedRow(g int64, r *Row, c *scratch) error {
	part := int32(g / rowsInPart)
	at := g % rowsInPart
	w, err := s.hold(part, at, c, func(w *rows, t *shelved) error {
		lo, hi := t.around(at)
		return w.read(t, lo, hi, rowFields())
	})
	if err != nil {
		return err
	}
	if err := s.packed.unpack(w.batch.Columns, int(at-w.lo), g, r); err != nil {
		return err
	}
	limit := s.limit()
	for i, id := range r.IDs {
		if id < 0 || int64(id) >= limit {
			return fault.Dataf("data: %s: row %d: id %d is %d, want a whole number from 0 to %d", s.packed.dir, g, i, id, limit-1)
		}
	}
	return nil
}

// unpack makes a row of what the columns say of it.
func (p *packedRows) unpack(columns []table.Column, k int, g int64, r *Row) error {
	list := func(i int) []int32 {
		lo, hi := columns[i].Row(k)
		return columns[i].IDs[lo:hi]
	}
	T := p.Sequence
	from, to, offset := list(rowFrom), list(rowTo), list(rowOffset)
	lo, hi := columns[rowNames].Row(k)
	docs := hi - lo
	if len(list(rowIDs)) != T+1 || len(list(rowTargets)) != T || len(from) != docs || len(to) != docs ||
		len(offset) != docs {
		return fault.Dataf("data: %s: row %d does not have the columns of a row of %d ids", p.dir, g, T+1)
	}
	for d, end := 0, 0; d < docs; d, end = d+1, int(to[d]) {
		if int(from[d]) < end || to[d] <= from[d] || int(to[d]) > T+1 || offset[d] < 0 {
			return fault.Dataf("data: %s: row %d: document %d is ids %d … %d from %d on: want one after the other, up to %d",
				p.dir, g, d, from[d], to[d]-1, offset[d], T)
		}
	}
	copy(r.IDs, list(rowIDs))
	for i, is := range list(rowTargets) {
		if r.Labels[i] = -1; is != 0 {
			r.Labels[i] = r.IDs[i+1]
		}
	}
	begin, next := 0, 0
	for i := range r.Positions {
		if next < docs && int(from[next]) == i {
			begin, next = i, next+1
		} else if docs > 0 && int(to[docs-1]) == i { // what follows is padding
			begin = i
		}
		if r.Positions[i] = int32(i - begin); p.Joined {
			r.Positions[i] = int32(i)
		}
	}
	for d := range docs {
		r.Docs = append(r.Docs, Span{
			string(columns[rowNames].Text(lo + d)), 0, int(from[d]), int(to[d]), int(offset[d]),
		})
	}
	return nil
}
