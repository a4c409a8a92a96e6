// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"strings"
)

// pipeline is the way of a text through a tokenizer.json:
//
//	text → added tokens cut out → normalizers → normalized added tokens cut out
//	     → pre-tokenizers → model → ids
type pipeline struct {
	added  []added
	raw    *trie // added tokens to find before the normalizers, or nil
	cooked *trie // and after them, or nil
	norms  []normalizer
	stages []stage
	model  *model
	report func(error)

	spaced *pipeline // the same where the text has no ▁, with spaces left as they are; or nil
}

// A stage is one pre-tokenizer. It leaves its pieces of s in l.spans, as
// offsets into the text that it returns: s itself, or l.text. first says that
// s starts where the whole text starts.
type stage interface {
	split(l *level, s []byte, first bool) []byte
}

// level is the working memory of one stage.
type level struct {
	spans []span
	text  []byte
	runes []rune
	begin []int32 // byte offset of each rune
	err   error
}

type span struct {
	start, end int
	match      bool
}

// encode appends the ids of a text, without those of the post-processor.
func (p *pipeline) encode(w *work, dst []int32, s []byte) []int32 {
	if !p.model.byteLevel {
		s = w.valid(s)
	}
	if p.spaced != nil && (p.spaced.cooked == nil || !bytes.Contains(s, []byte(meta))) {
		p = p.spaced
	}
	if p.raw == nil {
		return p.cook(w, dst, s, true)
	}
	done, from := 0, 0
	for {
		a, start, stop, resume := p.nextAdded(p.raw, s, from, done)
		if a == nil {
			return p.cook(w, dst, s[done:], done == 0)
		}
		if done < start {
			dst = p.cook(w, dst, s[done:start], done == 0)
		}
		if start < stop { // else an earlier token has taken these spaces
			dst = append(dst, a.id)
		}
		done, from = stop, resume
	}
}

// cook normalizes a stretch between added tokens and goes on with it.
//
// Differs: the reference knows where in the original text each piece comes
// from. Here a piece is the first one if nothing stands in front of it, which
// is not the same if a normalizer makes several characters of the first one
// and an added token, a splitter or another normalizer takes some of them.
func (p *pipeline) cook(w *work, dst []int32, s []byte, first bool) []int32 {
	for i, n := range p.norms {
		var kept bool
		w.bufs[i%2], kept = n.normalize(w.bufs[i%2][:0], s)
		s = w.bufs[i%2]
		first = first && kept
	}
	if p.cooked == nil {
		return p.pre(w, 0, dst, s, first)
	}
	done, from := 0, 0
	for {
		a, start, stop, resume := p.nextAdded(p.cooked, s, from, done)
		if a == nil {
			return p.pre(w, 0, dst, s[done:], first && done == 0)
		}
		if done < start {
			dst = p.pre(w, 0, dst, s[done:start], first && done == 0)
		}
		if start < stop { // else an earlier token has taken these spaces
			dst = append(dst, a.id)
		}
		done, from = stop, resume
	}
}

// pre runs a piece through the pre-tokenizers from the k-th on, and what comes
// out through the model.
func (p *pipeline) pre(w *work, k int, dst []int32, s []byte, first bool) []int32 {
	switch {
	case len(s) == 0:
		return dst
	case k == len(p.stages):
		return p.model.encode(w, dst, s)
	}
	if sc, ok := p.stages[k].(scanStage); ok && k == len(p.stages)-1 && p.model.byteLevel {
		return p.model.appendWords(w, dst, s, sc.scan)
	}
	l := &w.levels[k]
	l.spans = l.spans[:0]
	text := p.stages[k].split(l, s, first)
	if l.err != nil {
		p.report(l.err)
		l.err = nil
	}
	for _, sp := range l.spans {
		dst = p.pre(w, k+1, dst, text[sp.start:sp.end], first && sp.start == 0)
	}
	return dst
}

// prepare makes the tables that encoding needs beside those of the file.
func (p *pipeline) prepare() {
	q, ok := p.withSpaces()
	p.model.prepare(ok)
	if p.model.spaced {
		p.spaced = q
	}
}

// withSpaces is a pipeline that gives the model spaces in the place of ▁, and
// otherwise the same text. ok is false if spaces could reach the model without
// it, or if what is done with ▁ depends on the difference.
func (p *pipeline) withSpaces() (q *pipeline, ok bool) {
	q = &pipeline{added: p.added, raw: p.raw, cooked: p.cooked, model: p.model, report: p.report}
	switch {
	case p.model.byteLevel || p.model.whole != nil:
		return nil, false
	case len(p.norms) == 0 && len(p.stages) == 1: // Metaspace
		st, ok := p.stages[0].(metaspace)
		q.stages = []stage{spaceFirst(st.scheme)}
		return q, ok && string(st.mark) == meta && !st.cut
	case len(p.norms) == 2: // Prepend, Replace
		if first, ok := p.norms[0].(prepend); !ok || first != meta {
			return nil, false
		}
		q.norms = []normalizer{prepend(" ")}
	case len(p.norms) != 1: // Replace
		return nil, false
	}
	last, ok := p.norms[len(p.norms)-1].(replace)
	if !ok || string(last.from) != " " || string(last.to) != meta {
		return nil, false
	}
	for _, st := range p.stages { // what splits at a space finds none
		if t, ok := st.(textStage); !ok || !bytes.Contains(t.text, []byte(" ")) || t.behavior == removed {
			return nil, false
		}
	}
	return q, q.spaceAdded()
}

// spaceAdded makes the added tokens that are searched for behind the
// normalizers have spaces too. It reports whether it could: ▁ is no space for
// those that take spaces along, or only stand at the border of a word.
func (p *pipeline) spaceAdded() bool {
	if p.cooked == nil {
		return true
	}
	p.cooked = newTrie()
	for i, a := range p.added {
		if !a.normalized {
			continue
		}
		if a.word || a.left || a.right || !p.cooked.add(strings.ReplaceAll(a.form, meta, " "), int32(i)) {
			return false
		}
	}
	return true
}
