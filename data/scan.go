// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"bytes"
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"pleach/data/frame"
	"pleach/data/table"
	"pleach/internal/fault"
)

// A Report is what [Scan] has found below some paths.
type Report struct {
	Found    []Found
	Skipped  map[string]int64  // files left out, by reason
	Examples map[string]string // the first of each reason
}

// Found is files of one format below one path.
type Found struct {
	Source     Source // reads them, with fields as their first lines suggest
	Format     string // "text", "jsonl", "parquet" or "arrow"
	Files      int
	Bytes      int64 // as they are stored
	Text       int64 // bytes of text, estimated where files are compressed or tables
	Documents  int64 // or an estimate
	Exact      bool
	Extensions map[string]int // files by extension, "" for none
	IDs        bool           // documents are lists of ids
}

// Of each of scanFiles files of lines, the first scanBytes are looked at.
const (
	scanFiles = 16
	scanBytes = 1 << 20
)

// Scan looks at files, folders and patterns of which nothing is known, to write
// a first recipe for them. It reads the head of every file and the first lines
// of some. Nothing to read at all is an error that says what was left out.
func Scan(paths []string, access Access) (*Report, error) {
	r := &Report{Skipped: map[string]int64{}, Examples: map[string]string{}}
	for _, path := range paths {
		g, err := gather(&Source{Paths: []string{path}, Access: access})
		if err != nil {
			return nil, err
		}
		for why, n := range g.skipped {
			r.Skipped[why] += n
			if r.Examples[why] == "" {
				r.Examples[why] = g.examples[why]
			}
		}
		if err := r.sort(path, access, g); err != nil {
			return nil, err
		}
	}
	if len(r.Found) == 0 {
		s := source{Source: Source{Name: "text", Paths: paths}}
		s.skipped, s.examples = r.Skipped, r.Examples
		return nil, s.emptyError()
	}
	return r, nil
}

// sort adds what one path has, by format.
func (r *Report) sort(path string, access Access, g *gathered) error {
	byFormat := map[string][]file{}
	for _, f := range g.files {
		byFormat[f.format] = append(byFormat[f.format], f)
	}
	for _, format := range []string{formatText, formatJSONL, formatParquet, formatArrow} {
		files := byFormat[format]
		if len(files) == 0 {
			continue
		}
		found := Found{
			Source: Source{Paths: []string{path}, Access: access}, Format: format, Files: len(files), Extensions: map[string]int{},
		}
		if len(files) < len(g.files) {
			found.Source.Format = format // other formats lie below the path too
		}
		for _, f := range files {
			found.Bytes += f.size
			found.Text += f.text()
			found.Extensions[strings.ToLower(filepath.Ext(f.name))]++
		}
		found.Documents, found.Exact = int64(len(files)), true
		var err error
		switch {
		case format == formatJSONL:
			err = found.lines(files)
		case isTable(format):
			err = found.tables(files)
		}
		if err != nil {
			return err
		}
		if m, _ := readTokens(path); m != nil { // it knows its columns
			found.Source.Field, found.Source.ID, found.Source.Mask, found.Source.Format = "", "", "", ""
		}
		r.Found = append(r.Found, found)
	}
	return nil
}

// text is about how many bytes of text a file holds.
func (f *file) text() int64 {
	switch {
	case f.packed != frame.None:
		return expansion * f.size
	case f.format == formatParquet:
		return 2 * f.size
	}
	return f.size
}

// A column is one key of the lines looked at.
type column struct {
	texts, ids, names int // lines in which it is a text, a list of numbers, fit for a name
	bytes             int // of its texts
}

// lines counts or estimates the documents in files of lines and guesses which
// fields hold what.
func (f *Found) lines(files []file) error {
	columns := map[string]*column{}
	lines, read := int64(0), int64(0)
	step := max(1, len(files)/scanFiles)
	for i := 0; i < len(files); i += step {
		k, n, err := look(files[i], f.Source.Access, columns)
		if err != nil {
			return err
		}
		lines += k
		read += n
	}
	f.Documents, f.Exact = lines, read == f.Bytes
	if !f.Exact {
		f.Documents = int64(float64(lines) * float64(f.Bytes) / float64(read))
	}
	return f.settle(columns, int(lines), files[0].name)
}

// settle guesses the fields, of which one must hold documents.
func (f *Found) settle(columns map[string]*column, lines int, name string) error {
	if f.guess(columns, lines); f.Source.Field == "" {
		keys := slices.Sorted(maps.Keys(columns))
		return fault.Dataf("data: %s: no field holds a text or ids in nine of ten lines: got %s",
			name, strings.Join(keys[:min(16, len(keys))], ", "))
	}
	return nil
}

// tables counts the rows of tables and guesses by the first one which columns hold
// what.
func (f *Found) tables(files []file) error {
	f.Documents = 0
	for i := range files {
		s := source{Source: Source{Access: f.Source.Access}, files: []file{files[i]}, size: files[i].size}
		o, err := s.open(&s.files[0])
		if err != nil {
			return err
		}
		t, err := table.Open(o, o.Size(), files[i].name)
		if err != nil {
			o.Close()
			return err
		}
		f.Documents += t.Rows()
		if i == 0 {
			err = f.settle(columnsOf(t), 1, files[0].name)
		}
		t.Close()
		if o.Close(); err != nil {
			return err
		}
	}
	return nil
}

// columnsOf says what the columns of a table are fit for.
func columnsOf(t *table.Table) map[string]*column {
	columns := map[string]*column{}
	for i, name := range t.Fields() {
		c := &column{bytes: len(t.Fields()) - i} // the first ones are likelier
		if t.Check(table.Field{Path: name}) == nil {
			c.texts = 1
		}
		if t.Check(table.Field{Path: name, Form: table.IDs}) == nil {
			c.ids = 1
		}
		if t.Check(table.Field{Path: name, Form: table.Label}) == nil {
			c.names = 1
		}
		columns[name] = c
	}
	return columns
}

// look counts the lines in the first part of a file, of read bytes as it is stored,
// and adds what fields they have.
func look(f file, access Access, columns map[string]*column) (lines, read int64, err error) {
	s := source{Source: Source{Field: "text", Access: access}, files: []file{f}, size: f.size}
	n, err := s.places(0)
	if err != nil {
		return 0, 0, err
	}
	refs, err := s.findLines(nil, 0, 0, min(n, scanBytes))
	if err != nil {
		return 0, 0, err
	}
	var c scratch
	defer c.close()
	for _, r := range refs {
		if r.n > longest {
			continue
		}
		line, err := s.raw(r, &c)
		if err != nil {
			return 0, 0, err
		}
		if r.off == 0 {
			line = trimBOM(line)
		}
		if bytes.HasPrefix(line, []byte("[")) {
			columnOf(columns, s.Field).ids++ // rows without keys
			continue
		}
		err = parseObject(line, func(key string, raw []byte) { columnOf(columns, key).add(raw) })
		if err != nil {
			return 0, 0, s.bad(r, 0, "%w", err)
		}
	}
	return int64(len(refs)), s.stored(0, min(n, scanBytes)), nil
}

func columnOf(columns map[string]*column, key string) *column {
	c := columns[key]
	if c == nil {
		c = &column{}
		columns[key] = c
	}
	return c
}

func (c *column) add(raw []byte) {
	switch first := raw[0]; {
	case first == '"':
		c.texts++
		c.bytes += len(raw)
		if len(raw) < 200 {
			c.names++
		}
	case first == '-' || '0' <= first && first <= '9':
		c.names++
	case first == '[':
		if _, bad, _ := parseInts[int32](nil, raw, 1<<31-1); bad < 0 {
			c.ids++
		}
	}
}

// guess sets the fields of the source from the names that data sets use, and
// from what is in them.
func (f *Found) guess(columns map[string]*column, lines int) {
	all := func(n int) bool { return n*10 >= lines*9 }
	first := func(fits func(*column) bool, names ...string) string {
		for _, name := range names {
			if c := columns[name]; c != nil && fits(c) {
				return name
			}
		}
		return ""
	}
	text := func(c *column) bool { return all(c.texts) }
	ids := func(c *column) bool { return all(c.ids) }
	s := &f.Source
	if s.Field = first(text, "text", "content", "body", "document", "abstract", "code"); s.Field == "" {
		s.Field = first(ids, "tokens", "input_ids", "ids", "text")
		f.IDs = s.Field != ""
	}
	if s.Field == "" {
		keys := slices.SortedFunc(maps.Keys(columns), func(a, b string) int {
			return cmp.Or(columns[b].bytes-columns[a].bytes, cmp.Compare(a, b))
		})
		s.Field = first(text, keys...)
	}
	if f.IDs {
		s.Mask = first(ids, "mask", "loss_mask")
	}
	name := func(c *column) bool { return c.names == lines }
	s.ID = first(name, "id", "_id", "doc_id", "uid", "url", "path")
	if s.ID == s.Field {
		s.ID = ""
	}
}
