// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

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
// and an added token takes some of them.
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
	if sc, ok := p.stages[k].(scanStage); ok && k == len(p.stages)-1 {
		t := classes()
		for i := 0; i < len(s); {
			end := sc.scan(t, s, i)
			dst = p.model.encode(w, dst, s[i:end])
			i = end
		}
		return dst
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
