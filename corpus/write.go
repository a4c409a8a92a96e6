// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"pleach/internal/fault"
)

// Quota is how many bytes of each text are wanted. What is written is at most
// one document more.
type Quota struct{ Train, HeldOut int }

// Amounts is how many bytes of text were written: [general, domain][training, held out].
type Amounts [2][2]int

// full reports whether nothing more is wanted for these sides.
func (a Amounts) full(q Quota, sides ...int) bool {
	for _, side := range sides {
		if a[side][0] < q.Train || a[side][1] < q.HeldOut {
			return false
		}
	}
	return true
}

// FileName is the file of a text in the folder that [Corpus.Write] makes.
func FileName(side int, heldOut bool) string {
	if heldOut {
		return Sides()[side] + "-heldout.jsonl"
	}
	return Sides()[side] + ".jsonl"
}

// Write takes files in the order of a hash of their names, so that any amount is
// a sample of the whole, and writes general.jsonl, domain.jsonl and their
// held-out counterparts into a folder, which must not be there and is when all
// of them are. A line is an object with an id and a text. Beside the folder a
// name with .part is used, and left behind by an error.
//
// An error is of kind [fault.Data] if a Go source cannot be read, or a text is too
// small to learn or to measure on; of kind [fault.Config] if a file of the user
// holds ids; of kind [fault.Machine] if writing fails; of kind [fault.Stopped] if
// ctx ended. Errors of package data pass as they are.
func (c *Corpus) Write(ctx context.Context, dir string, q Quota) (Amounts, error) {
	var got Amounts
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return got, fault.Machinef("corpus: %w", err)
	}
	if err := os.MkdirAll(part, 0o777); err != nil {
		return got, fault.Machinef("corpus: %w", err)
	}
	w, err := newTextWriter(part, q)
	if err != nil {
		return got, err
	}
	err = c.feed(ctx, w)
	if closing := w.close(); err == nil {
		err = closing
	}
	if err != nil {
		return w.got, err
	}
	if err := enough(w.got, c); err != nil {
		return w.got, err
	}
	if err := os.Rename(part, dir); err != nil {
		return w.got, fault.Machinef("corpus: %w", err)
	}
	return w.got, nil
}

func (c *Corpus) feed(ctx context.Context, w *textWriter) error {
	files := slices.Clone(c.files)
	slices.SortFunc(files, func(a, b textFile) int {
		if x, y := hash(a.name), hash(b.name); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	var nth [2]int
	for _, f := range files {
		if ctx.Err() != nil {
			return fault.As(fault.Stopped, errors.New("corpus: stopped"))
		}
		if w.got.full(w.want, f.sides...) {
			continue
		}
		for p, err := range f.docs(&nth) {
			if err != nil {
				return err
			}
			if err := w.add(p); err != nil {
				return err
			}
			if w.got.full(w.want, f.sides...) {
				break
			}
		}
	}
	return nil
}

// enough refuses texts from which nothing could be learned or told.
func enough(got Amounts, c *Corpus) error {
	for side, n := range got {
		if n[0] < 20_000 || n[1] < 1000 {
			return fault.Dataf("corpus: %s: %s (%s): %d bytes to train on and %d held out, "+
				"want at least 20000 and 1000", c.About, Sides()[side], c.Names[side], n[0], n[1])
		}
	}
	return nil
}

// textWriter writes the four files.
type textWriter struct {
	want  Quota
	got   Amounts
	files [2][2]*os.File
	outs  [2][2]*bufio.Writer
}

func newTextWriter(dir string, q Quota) (*textWriter, error) {
	w := &textWriter{want: q}
	for side := range w.files {
		for held := range w.files[side] {
			f, err := os.Create(filepath.Join(dir, FileName(side, held == 1)))
			if err != nil {
				_ = w.close()
				return nil, fault.Machinef("corpus: %w", err)
			}
			w.files[side][held], w.outs[side][held] = f, bufio.NewWriterSize(f, 1<<16)
		}
	}
	return w, nil
}

// add writes what of a document is wanted: long enough, UTF-8, and not more than
// the quota and one document.
func (w *textWriter) add(p textPair) error {
	held, want, longest := 0, w.want.Train, longestDocument
	if p.HeldOut {
		held, want, longest = 1, w.want.HeldOut, longestHeldOut
	}
	for side, text := range p.Text {
		text = cut(text, longest)
		if w.got[side][held] >= want || len(text) < shortestDocument || !utf8.ValidString(text) {
			continue
		}
		e := json.NewEncoder(w.outs[side][held])
		e.SetEscapeHTML(false)
		line := struct {
			ID   string `json:"id"`
			Text string `json:"text"`
		}{p.ID, text}
		if err := e.Encode(line); err != nil {
			return fault.Machinef("corpus: %w", err)
		}
		w.got[side][held] += len(text)
	}
	return nil
}

func (w *textWriter) close() (err error) {
	for side := range w.files {
		for held, f := range w.files[side] {
			if f == nil {
				continue
			}
			for _, end := range []func() error{w.outs[side][held].Flush, f.Sync, f.Close} {
				if e := end(); err == nil && e != nil {
					err = fault.Machinef("corpus: %w", e)
				}
			}
		}
	}
	return err
}

// cut is the beginning of a text, whole lines of at most n bytes, or whole
// characters where the first line is longer.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if i := strings.LastIndexByte(s[:n], '\n'); i > 0 {
		return s[:i+1]
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Read gives the texts of a file that [Corpus.Write] has written, in order, until
// they are so many bytes in all; the last one is whole. The caller owns the
// bytes. An error is of kind [fault.State] and the last thing that it gives.
func Read(file string, most int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(nil, fault.Statef("corpus: %w", err))
			return
		}
		defer f.Close()
		for d := json.NewDecoder(bufio.NewReader(f)); most > 0; {
			var line struct{ Text string }
			if err := d.Decode(&line); err == io.EOF {
				return
			} else if err != nil {
				yield(nil, fault.Statef("corpus: %s: %w", file, err))
				return
			}
			most -= len(line.Text)
			if !yield([]byte(line.Text), nil) {
				return
			}
		}
	}
}
