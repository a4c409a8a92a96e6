// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pleach/data/frame"
	"pleach/internal/fault"
)

// A Document is a text or a list of ids, as it lies in a file: without special
// tokens of ours.
type Document struct {
	// ID is what its id field says, else FILE:LINE, FILE@BYTE in a file of more than
	// 256 MiB, in which lines are not counted, FILE:ROW in a table, or FILE where that
	// is the document.
	ID   string
	Text []byte  // UTF-8; nil if it came as ids
	IDs  []int32 // nil if it came as text
	Mask []uint8 // 0 or 1 for each id, 1: counts as a target; nil: all do

	encoded bool // the ids are those of a text
}

// A reason says why a document is skipped when it is read.
type reason uint8

const (
	empty   reason = iota // no text, no ids, or space only
	notUTF8               // or half a surrogate pair in a JSON string
	tooLong
	damaged // no JSON, or not what the recipe says; an error unless some may be left out
	reasons
	none = reasons
)

func (r reason) String() string {
	return [...]string{"empty", "not UTF-8", "longer than 256 MiB", "damaged"}[r]
}

// longest is the longest document: a document is in memory whole, as text and
// as ids.
const longest = 256 << 20

// ref is where a document lies.
type ref struct {
	file   int32
	off, n int64
	line   int64 // 0: not known
}

// scratch is memory that one reader of documents uses again and again, and the
// files it has open.
type scratch struct {
	raw, text []byte
	ids       []int32
	mask      []uint8
	open      []openFile // used last first
	rows      map[*source]*rows
	clock     *clock
}

// openFile is a file that a reader has open.
type openFile struct {
	file *file
	object
}

// filesOpen is how many files a reader keeps open: sources of a mixture are read in
// turn.
const filesOpen = 3

func (c *scratch) close() {
	for _, o := range c.open {
		o.Close()
	}
	c.open = nil
}

// opened is a file of a source, open until others are used.
func (c *scratch) opened(s *source, f *file) (object, error) {
	i := slices.IndexFunc(c.open, func(o openFile) bool { return o.file == f })
	if i < 0 {
		o, err := s.open(f)
		if err != nil {
			return nil, err
		}
		if i = len(c.open); i < filesOpen {
			c.open = append(c.open, openFile{})
		} else {
			i--
			c.open[i].Close()
		}
		c.open[i] = openFile{f, o}
	}
	used := c.open[i]
	copy(c.open[1:i+1], c.open[:i])
	c.open[0] = used
	return used, nil
}

// raw is the bytes of a document; they are valid until the next call.
func (s *source) raw(r ref, c *scratch) ([]byte, error) {
	defer c.clock.enter(c.clock.enter(Reading))
	f := &s.files[r.file]
	o, err := c.opened(s, f)
	if err != nil {
		return nil, err
	}
	c.raw = slices.Grow(c.raw[:0], int(r.n))[:r.n]
	err = readAt(o, f.name, c.raw, r.off)
	if f.packed != frame.None && isDamage(err) {
		err = &damage{err}
	}
	return c.raw, err
}

// read returns a document, or why it is skipped. What it holds is valid until
// the next call with the same scratch.
func (s *source) read(r ref, c *scratch) (Document, reason, error) {
	defer c.clock.enter(c.clock.enter(Parsing))
	d, why, err := s.readSound(r, c)
	if harm := (*damage)(nil); s.Damaged > 0 && errors.As(err, &harm) {
		s.example(harm.Error(), damaged)
		return Document{ID: s.where(r)}, damaged, nil
	}
	return d, why, err
}

// damage is an error about the bytes of one document.
type damage struct{ error }

func (e *damage) Unwrap() error { return e.error }

// isDamage reports whether the bytes are to blame for an error, rather than how
// they are reached.
func isDamage(err error) bool { return errors.Is(err, fault.Data) && !errors.Is(err, fault.Machine) }

// readSound is read of what must not be damaged.
func (s *source) readSound(r ref, c *scratch) (Document, reason, error) {
	if s.parts != nil {
		return s.token(r, c)
	}
	f := &s.files[r.file]
	switch {
	case r.n < 0:
		return Document{ID: s.where(r)}, damaged, nil
	case r.n > longest:
		return Document{ID: s.where(r)}, tooLong, nil
	case isTable(f.format):
		return s.row(r, c)
	}
	b, err := s.raw(r, c)
	if err != nil {
		return Document{}, none, err
	}
	if r.off == 0 {
		b = trimBOM(b)
	}
	if f.format != formatJSONL {
		d := Document{ID: s.where(r), Text: b}
		if f.format == formatLines {
			d.Text = bytes.TrimSuffix(b, []byte("\r"))
		}
		if !utf8.Valid(b) {
			return d, notUTF8, nil
		}
		return d, textOrEmpty(b), nil
	}
	return s.parse(r, b, c)
}

func textOrEmpty(b []byte) reason {
	if len(bytes.TrimSpace(b)) == 0 {
		return empty
	}
	return none
}

// where is FILE:LINE of a document, or FILE where that is the document.
func (s *source) where(r ref) string {
	f := &s.files[r.file]
	switch {
	case f.format == formatText || r.n < 0:
		return f.name
	case isTable(f.format):
		return f.name + ":" + strconv.FormatInt(r.off+1, 10)
	}
	if r.line == 0 && !f.counted() {
		return f.name + "@" + strconv.FormatInt(r.off, 10)
	}
	if r.line == 0 {
		r.line = s.line(r)
	}
	return f.name + ":" + strconv.FormatInt(r.line, 10)
}

// counted reports whether documents are named by lines: to count them, all in
// front must be read.
func (f *file) counted() bool { return !f.bare && f.size <= countedSize && f.tag == "" }

var countedSize int64 = 256 << 20 // tests set it

// line is the line number of a document, 0 if the file cannot be read.
func (s *source) line(r ref) int64 {
	f := &s.files[r.file]
	o, err := s.open(f)
	if err != nil {
		return 0
	}
	defer o.Close()
	n, _ := f.lines.number(o, r.off)
	return n
}

// bad is an error about a document, off bytes into it. It names the line too,
// which takes time in a long file, unless it may be one of many.
func (s *source) bad(r ref, off int64, format string, args ...any) error {
	if isTable(s.files[r.file].format) {
		return &damage{fault.Dataf("data: %s: "+format, append([]any{s.where(r)}, args...)...)}
	}
	if r.line == 0 && s.Damaged == 0 {
		r.line = s.line(r)
	}
	return &damage{fault.Dataf("data: %s (byte %d): "+format,
		append([]any{s.where(r), r.off + off}, args...)...)}
}

// Documents reads a source once, in file order, for evaluation and for training
// a tokenizer. A document belongs to the caller. What is no document is left out
// as by a [Loader]; a source without any is an error that says what was left
// out. Iteration ends with the first error, which comes with a zero Document.
// Weight, Rows and Epochs do not matter.
func Documents(src Source) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		if src.Rows {
			src.Rows, src.Format = false, cmp.Or(src.Format, formatJSONL)
		}
		s, err := newSource(src, 1, 0)
		if err == nil && s.parts != nil {
			err = fault.Configf("data: %s: it holds documents as ids of a tokenizer: want the documents", s.parts.dir)
		}
		if err != nil {
			yield(Document{}, err)
			return
		}
		defer s.close()
		seen, harmed := false, int64(0)
		err = s.each(0, s.size, func(d Document, why reason) bool {
			if why == damaged {
				if harmed++; harmed > s.Damaged {
					yield(Document{}, s.tooDamaged(harmed))
					return false
				}
			}
			if why != none {
				s.skip(d.ID, why.String())
				return true
			}
			seen = true
			d.Text, d.IDs, d.Mask = bytes.Clone(d.Text), slices.Clone(d.IDs), slices.Clone(d.Mask)
			return yield(d, nil)
		})
		if err == nil && !seen {
			err = s.emptyError()
		}
		if err != nil && err != errStop {
			yield(Document{}, err)
		}
	}
}

var errStop = errors.New("stop")

// tooDamaged says that more documents are damaged than may be left out.
func (s *source) tooDamaged(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fault.Dataf("data: source %s: %d documents are damaged, want at most %d; the first: %s",
		s.Name, n, s.Damaged, s.examples[damaged.String()])
}

// each calls visit with every document that starts in [lo,hi), in file order,
// and with those skipped and why.
func (s *source) each(lo, hi int64, visit func(Document, reason) bool) error {
	var c scratch
	defer c.close()
	// Ranges bound the memory for references.
	for ; lo < hi; lo += blockSize {
		refs, err := s.starting(lo, min(lo+blockSize, hi))
		if err != nil {
			return err
		}
		for _, r := range refs {
			d, why, err := s.read(r, &c)
			if err != nil {
				return err
			}
			if !visit(d, why) {
				return errStop
			}
		}
	}
	return nil
}

// emptyError says that a source has no document, and what it has instead.
func (s *source) emptyError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.skipped) == 0 {
		return fault.Dataf("data: source %s: %s: no documents: the folder has no files",
			s.Name, strings.Join(s.Paths, ", "))
	}
	var why []string
	for _, r := range slices.Sorted(maps.Keys(s.skipped)) {
		why = append(why, strconv.FormatInt(s.skipped[r], 10)+" "+r+" ("+s.examples[r]+")")
	}
	return fault.Dataf("data: source %s: %s: no documents: skipped %s",
		s.Name, strings.Join(s.Paths, ", "), strings.Join(why, ", "))
}
