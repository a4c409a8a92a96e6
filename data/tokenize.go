// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"context"
	"encoding/hex"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"pleach/blob"
	"pleach/data/table"
	"pleach/internal/fault"
)

// Tokenized is how far [Tokenize] has got with a source.
type Tokenized struct {
	Source            string
	Done, Total       int64 // bytes of its files
	Documents, Tokens int64 // without special ids
	Skipped           map[string]int64
}

// Tokenize writes the documents of each source as ids into a folder below out, by
// the name of the source. A run whose source has that folder as its path has the
// same rows as one that reads the texts. Sequence, lanes, seed, weights and epochs
// do not matter and may change; the tokenizer and the files are recorded.
//
// Parts that are there already, of the same files and tokenizer, are kept, up to the
// first that cannot be opened: a killed Tokenize goes on. A folder with others is
// refused. Processors work on chunks of their own; the files do not depend on how
// many there are. progress may be nil; it is called from time to time, by one
// goroutine at a time.
func Tokenize(ctx context.Context, spec Spec, enc Encoder, out string, progress func(Tokenized)) error {
	named, err := unique(spec.Sources)
	if err != nil {
		return err
	}
	if progress == nil {
		progress = func(Tokenized) {}
	}
	for _, src := range named {
		if name := src.Name; name == "." || name == ".." || filepath.Base(name) != name {
			return fault.Configf("data: tokenizing: got a source %q, want a name that a folder can have", name)
		}
		if src.Rows {
			return fault.Configf("data: tokenizing: source %s has ready rows: there is nothing to do", src.Name)
		}
		if err := tokenizeSource(ctx, src, &spec, enc, filepath.Join(out, src.Name), progress); err != nil {
			return err
		}
	}
	return nil
}

// tokenizing is the work on one source.
type tokenizing struct {
	s        *source
	spec     *Spec
	enc      Encoder
	dir      *blob.Dir
	about    tokenManifest
	done     tokenPart // the sum of the parts
	progress func(Tokenized)
}

func tokenizeSource(ctx context.Context, src Source, spec *Spec, enc Encoder, dir string, progress func(Tokenized)) error {
	s, err := newSource(src, 1, spec.Vocabulary)
	if err != nil {
		return err
	}
	defer s.close()
	if s.parts != nil {
		return fault.Configf("data: tokenizing: source %s is tokens already", s.Name)
	}
	if err := s.check(enc != nil); err != nil {
		return err
	}
	w := &tokenizing{s: s, spec: spec, enc: enc, dir: blob.Local(dir), progress: progress}
	w.about = tokenManifest{
		Form: tokensForm, Tokenizer: spec.Tokenizer,
		Options: tokenOptions{s.Field, s.ID, s.Mask, s.Format, s.Damaged, spec.Vocabulary},
		Skipped: maps.Clone(s.skipped), Examples: maps.Clone(s.examples),
	}
	for _, f := range s.files {
		w.about.Files = append(w.about.Files, tokenFile{
			f.name, f.rel, f.size, f.format, uint8(f.packed), hex.EncodeToString(f.print),
		})
	}
	if err := w.begin(dir); err != nil {
		return err
	}
	for i := len(w.about.Parts); int64(i)*tokenChunk*partChunks < s.size; i++ {
		if err := w.part(ctx, i); err != nil {
			return err
		}
	}
	w.about.Complete = true
	return w.record()
}

// begin takes up what an earlier call has left, if it was of the same.
func (w *tokenizing) begin(dir string) error {
	old, err := readTokens(dir)
	if err != nil {
		return err
	}
	if old == nil {
		if holdsFiles(dir) {
			return fault.Statef("data: tokenizing into %s: it holds files that are no tokens: want an empty or a new folder", dir)
		}
		return w.record()
	}
	same := old.Tokenizer == w.about.Tokenizer && old.Options == w.about.Options && slices.Equal(old.Files, w.about.Files)
	if !same {
		return fault.Statef("data: tokenizing into %s: it holds tokens of other files, options or another tokenizer: "+
			"want another folder", dir)
	}
	for i, p := range old.Parts {
		if sound(dir, i, p.Rows) != nil {
			break // it is made again, and those that follow
		}
		w.about.Parts = append(w.about.Parts, p)
		w.done.add(p)
	}
	w.tell(min(int64(len(w.about.Parts))*tokenChunk*partChunks, w.s.size), w.done)
	return w.dir.Sweep(".")
}

// sound opens a part and closes it again.
func sound(dir string, i int, rows int64) error {
	t := &shelved{file: int32(i)}
	err := t.openPart(dir, rows)
	if err == nil {
		t.close()
	}
	return err
}

// tell tells how far it is.
func (w *tokenizing) tell(done int64, sum tokenPart) {
	w.progress(Tokenized{w.s.Name, done, w.s.size, sum.Documents, sum.Tokens, sum.Skipped})
}

// holdsFiles reports whether a folder has more than locks and what is unfinished.
func holdsFiles(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") })
}

// add sums parts up.
func (p *tokenPart) add(q tokenPart) {
	p.Rows += q.Rows
	p.Documents += q.Documents
	p.Tokens += q.Tokens
	for why, n := range q.Skipped {
		p.skip(why, n)
	}
}

func (p *tokenPart) skip(why string, n int64) {
	if p.Skipped == nil {
		p.Skipped = map[string]int64{}
	}
	p.Skipped[why] += n
}

func (w *tokenizing) record() error { return writeManifest(w.dir, tokensName, w.about) }

// chunk is the documents that stand in a MiB of the source, as ids.
type chunk struct {
	docs []tokenized
	err  error
}

type tokenized struct {
	at, bytes int64
	name, why string
	ids       []int32
	mask      []uint8
}

// part writes part i and records it.
func (w *tokenizing) part(ctx context.Context, i int) error {
	base := int64(i) * tokenChunk * partChunks
	n := int(min(partChunks, (w.s.size-base+tokenChunk-1)/tokenChunk))
	var p tokenPart
	err := w.dir.Write(partName(i), func(f io.Writer) error {
		p = tokenPart{}
		t, err := table.NewWriter(f, map[string]string{"pleach.tokenizer": w.spec.Tokenizer}, tokenColumns()...)
		if err != nil {
			return err
		}
		err = inOrder(ctx, n, func(k int, c *lane) chunk {
			lo := base + int64(k)*tokenChunk
			return w.chunk(lo, min(lo+tokenChunk, w.s.size), c)
		}, func(k int, c chunk) error {
			if c.err != nil {
				return c.err
			}
			return w.write(t, c, &p, min(base+int64(k+1)*tokenChunk, w.s.size))
		}, func() *lane { return &lane{spec: w.spec, enc: w.enc} })
		if e := t.Close(); err == nil {
			err = e
		}
		p.Rows = t.Rows()
		return err
	})
	if err != nil {
		return err
	}
	w.about.Parts = append(w.about.Parts, p)
	w.done.add(p)
	return w.record()
}

// chunk reads and encodes the documents that stand in [lo,hi).
func (w *tokenizing) chunk(lo, hi int64, n *lane) (c chunk) {
	refs, err := w.s.starting(lo, hi)
	if err != nil {
		return chunk{err: err}
	}
	for _, r := range refs {
		d, why, err := w.s.read(r, &n.c)
		if err != nil {
			return chunk{err: err}
		}
		t := tokenized{at: w.s.standing(r), bytes: w.s.takes(r), name: d.ID}
		if why != none {
			t.why = why.String()
		} else {
			if t.why = asIDs; d.IDs == nil {
				t.why = asText
			}
			if d.IDs, err = n.bare(d); err != nil {
				return chunk{err: err}
			}
			t.ids, t.mask = slices.Clone(d.IDs), slices.Clone(d.Mask)
		}
		c.docs = append(c.docs, t)
	}
	return c
}

// write adds a chunk as a batch.
func (w *tokenizing) write(t *table.Writer, c chunk, p *tokenPart, done int64) error {
	for _, d := range c.docs {
		t.Int(colAt, d.at)
		t.Int(colBytes, d.bytes)
		t.Text(colName, d.name)
		t.Text(colWhy, d.why)
		t.Numbers(colIDs, d.ids)
		if d.mask == nil {
			t.Null(colMask)
		} else {
			t.Bits(colMask, d.mask)
		}
		if d.why == asText || d.why == asIDs {
			p.Documents++
			p.Tokens += int64(len(d.ids))
		} else {
			p.skip(d.why, 1)
		}
	}
	var sum tokenPart
	sum.add(w.done)
	sum.add(*p)
	if n := sum.Skipped[damaged.String()]; n > w.s.Damaged {
		return w.s.tooDamaged(n)
	}
	w.tell(done, sum)
	return t.EndBatch()
}

// inOrder computes n results on all processors and uses them in order, with a
// bounded number at hand.
func inOrder[S interface{ close() }, R any](
	ctx context.Context, n int, compute func(i int, state S) R, use func(i int, r R) error, begin func() S,
) error {
	workers := runtime.GOMAXPROCS(0)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	slots := make([]chan R, 2*workers) // result i is in slot i modulo their number
	for i := range slots {
		slots[i] = make(chan R, 1)
	}
	todo := make(chan int)
	for range workers {
		wg.Go(func() {
			s := begin()
			defer s.close()
			for i := range todo {
				slots[i%len(slots)] <- compute(i, s)
			}
		})
	}
	next := 0
	feed := func(upTo int) error {
		for ; next < min(upTo, n); next++ {
			select {
			case todo <- next:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	defer close(todo)
	for i := range n {
		if err := feed(i + len(slots)/2 + 1); err != nil {
			return err
		}
		select {
		case r := <-slots[i%len(slots)]:
			if err := use(i, r); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
