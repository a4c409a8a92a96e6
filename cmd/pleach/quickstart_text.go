// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"pleach/internal/fault"
)

// The two texts of the story, and whether a document is held out, are indices.
const (
	general = 0
	domain  = 1
)

// sideNames are the names of the two texts in files, recipes and tables.
func sideNames() [2]string { return [2]string{"general", "domain"} }

// corpus is where the quickstart's texts come from.
type corpus struct {
	About  string    // for people
	Names  [2]string // what general and domain are
	Prompt string    // what the models go on with, "" for the begin of a held-out document
	files  []textFile
}

// textFile is documents that are read together.
type textFile struct {
	name  string
	sides []int // which texts they give to
	docs  func() iter.Seq2[textPair, error]
}

// textPair is what one document gives to general and to domain; either may be
// empty.
type textPair struct {
	ID      string
	Text    [2]string
	HeldOut bool
}

// hash is the first eight bytes of a SHA-256.
func hash(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.LittleEndian.Uint64(sum[:])
}

// inTwenty is true for one name in twenty, always the same ones.
func inTwenty(name string) bool { return hash("held out "+name)%20 == 0 }

// quota is how many bytes of each text are wanted.
type quota struct{ Train, HeldOut int }

// amounts is how many bytes were written: [general, domain][training, held out].
type amounts [2][2]int

// full reports whether nothing more is wanted for these sides.
func (a amounts) full(q quota, sides ...int) bool {
	for _, side := range sides {
		if a[side][0] < q.Train || a[side][1] < q.HeldOut {
			return false
		}
	}
	return true
}

// write takes files in the order of a hash of their names, so that any amount is
// a sample of the whole, and writes general.jsonl, domain.jsonl and their
// held-out counterparts into a folder, which is there when all of them are.
func (c *corpus) write(ctx context.Context, dir string, q quota) (amounts, error) {
	var got amounts
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return got, fault.Machinef("quickstart: %w", err)
	}
	if err := os.MkdirAll(part, 0o777); err != nil {
		return got, fault.Machinef("quickstart: %w", err)
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
		return w.got, fault.Machinef("quickstart: %w", err)
	}
	return w.got, nil
}

func (c *corpus) feed(ctx context.Context, w *textWriter) error {
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
	for _, f := range files {
		if ctx.Err() != nil {
			return errInterrupted()
		}
		if w.got.full(w.want, f.sides...) {
			continue
		}
		for p, err := range f.docs() {
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
func enough(got amounts, c *corpus) error {
	for side, n := range got {
		if n[0] < 20_000 || n[1] < 1000 {
			return fault.Dataf("quickstart: %s: %s (%s): %d bytes to train on and %d held out, "+
				"want at least 20000 and 1000", c.About, sideNames()[side], c.Names[side], n[0], n[1])
		}
	}
	return nil
}

// textWriter writes the four files.
type textWriter struct {
	want  quota
	got   amounts
	files [2][2]*os.File
	outs  [2][2]*bufio.Writer
}

// textName is the file of a text.
func textName(side int, heldOut bool) string {
	if heldOut {
		return sideNames()[side] + "-heldout.jsonl"
	}
	return sideNames()[side] + ".jsonl"
}

func newTextWriter(dir string, q quota) (*textWriter, error) {
	w := &textWriter{want: q}
	for side := range w.files {
		for held := range w.files[side] {
			f, err := os.Create(filepath.Join(dir, textName(side, held == 1)))
			if err != nil {
				_ = w.close()
				return nil, fault.Machinef("quickstart: %w", err)
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
			return fault.Machinef("quickstart: %w", err)
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
					err = fault.Machinef("quickstart: %w", e)
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

// readTexts gives the texts of a JSONL file that the quickstart has written, up
// to so many bytes in all.
func readTexts(file string, most int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(nil, fault.Statef("quickstart: %w", err))
			return
		}
		defer f.Close()
		for d := json.NewDecoder(bufio.NewReader(f)); most > 0; {
			var line struct{ Text string }
			if err := d.Decode(&line); err == io.EOF {
				return
			} else if err != nil {
				yield(nil, fault.Statef("quickstart: %s: %w", file, err))
				return
			}
			most -= len(line.Text)
			if !yield([]byte(line.Text), nil) {
				return
			}
		}
	}
}
