// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sync"

	"pleach/data/frame"
	"pleach/data/table"
	"pleach/internal/fault"
)

// open opens a file, which must be as long as it was at the start. What is
// compressed reads as what it holds.
func (s *source) open(f *file) (object, error) {
	o, err := f.from.open(f.name)
	if err != nil {
		return nil, err
	}
	if o.Size() != f.size {
		o.Close()
		return nil, fault.Dataf("data: %s has changed since the start: got %d bytes, want %d",
			f.name, o.Size(), f.size)
	}
	if f.packed == frame.None {
		return o, nil
	}
	in, err := frame.Open(o, f.size, f.name, frame.Options{
		Cache: s.Access.cache(), Key: fmt.Sprintf("%s %d %s", f.name, f.size, hex.EncodeToString(f.print)),
	})
	if err != nil {
		o.Close()
		return nil, err
	}
	return unpacked{in, o}, nil
}

// unpacked is a compressed object as what it holds.
type unpacked struct {
	*frame.File
	from object
}

func (u unpacked) Close() error {
	err := u.File.Close()
	if e := u.from.Close(); err == nil {
		err = e
	}
	return err
}

// tablesOpen is how many tables of a source stay open.
const tablesOpen = 32

// shelf holds the open tables of a source: what a table says of itself is read
// once for all lanes.
type shelf struct {
	mu    sync.Mutex
	open  map[int32]*shelved
	clock int64
}

// shelved is an open table. Its fields are those the source wants: the text or
// ids, then, where asked for, name and mask.
type shelved struct {
	file     int32
	once     sync.Once
	err      error
	from     object
	table    *table.Table
	fields   []table.Field
	id, mask int // indices into fields, 0: none

	users int
	last  int64
}

// take gives the table of a file, opened, until [shelf.give].
func (h *shelf) take(s *source, i int32) (*shelved, error) {
	h.mu.Lock()
	t := h.open[i]
	if t == nil {
		t = &shelved{file: i}
		if h.open == nil {
			h.open = map[int32]*shelved{}
		}
		h.open[i] = t
	}
	t.users++
	h.mu.Unlock()
	t.once.Do(func() { t.err = t.prepare(s) })
	if t.err != nil {
		h.give(t)
		return nil, t.err
	}
	return t, nil
}

// give ends the use of a table. One that could not be opened is tried again later;
// of too many the one used longest ago is closed.
func (h *shelf) give(t *shelved) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.users--
	h.clock++
	t.last = h.clock
	if t.err != nil && h.open[t.file] == t {
		delete(h.open, t.file)
	}
	if len(h.open) <= tablesOpen {
		return
	}
	var oldest *shelved
	for _, o := range h.open {
		if o.users == 0 && (oldest == nil || o.last < oldest.last) {
			oldest = o
		}
	}
	if oldest != nil {
		delete(h.open, oldest.file)
		oldest.close()
	}
}

// close closes all tables; nobody uses them.
func (h *shelf) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.open {
		t.close()
	}
	h.open = nil
}

func (t *shelved) close() {
	if t.table != nil {
		t.table.Close()
	}
	if t.from != nil {
		t.from.Close()
	}
}

func (t *shelved) prepare(s *source) error {
	switch {
	case s.parts != nil:
		return s.parts.prepare(t)
	case s.packed != nil:
		return s.packed.prepare(t)
	}
	f := &s.files[t.file]
	var err error
	if t.from, err = s.open(f); err != nil {
		return err
	}
	if t.table, err = table.Open(t.from, t.from.Size(), f.name); err == nil {
		err = t.choose(s)
	}
	if err != nil {
		t.close()
		if m, e := readTokens(filepath.Dir(f.name)); m != nil && e == nil {
			return fault.Configf("data: source %s: %s holds tokens: want it as the path of the source: %w",
				s.Name, filepath.Dir(f.name), err)
		}
	}
	return err
}

// choose finds the columns of the source. A column of integers is ids.
func (t *shelved) choose(s *source) error {
	main := table.Field{Path: s.Field}
	err := t.table.Check(main)
	if err != nil {
		main.Form = table.IDs
		if t.table.Check(main) != nil {
			return err
		}
	}
	t.fields = []table.Field{main}
	for _, extra := range []struct {
		path string
		form table.Form
		at   *int
	}{{s.ID, table.Label, &t.id}, {s.Mask, table.IDs, &t.mask}} {
		if extra.path == "" {
			continue
		}
		f := table.Field{Path: extra.path, Form: extra.form}
		if err := t.table.Check(f); err != nil {
			return err
		}
		*extra.at = len(t.fields)
		t.fields = append(t.fields, f)
	}
	return nil
}
