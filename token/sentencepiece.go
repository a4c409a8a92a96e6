// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// spModel is a SentencePiece BPE model.
//
// Kudo & Richardson, "SentencePiece: A simple and language independent subword
// tokenizer and detokenizer for Neural Text Processing", 2018,
// arXiv:1808.06226; the order of merges is that of the released code.
type spModel struct {
	spec  spSpec
	kinds []byte // the type of each piece
	bytes map[int32]byte
	model model
}

// Types of a piece.
const (
	spNormal  = 1
	spUnknown = 2
	spControl = 3
	spUser    = 4
	spUnused  = 5
	spByte    = 6
)

// encode appends the ids of a text. Special tokens that are written in the text
// are text.
func (m *spModel) encode(w *work, dst []int32, s []byte) []int32 {
	if m.model.spaced && !m.spec.trim && len(s) > 0 {
		if m.spec.prefix {
			n := m.model.split(nil, s, 0)
			w.bufs[0] = append(append(w.bufs[0][:0], ' '), s[:n]...)
			dst, s = m.model.encode(w, dst, w.bufs[0]), s[n:]
		}
		return m.model.appendWords(w, dst, s, m.model.split)
	}
	w.bufs[0] = m.normalize(w.bufs[0][:0], s)
	return m.model.encode(w, dst, w.bufs[0])
}

// normalize writes ▁ for a space, puts one in front, and U+FFFD for every byte
// that is not UTF-8.
func (m *spModel) normalize(dst, s []byte) []byte {
	if m.spec.trim {
		s = bytes.TrimLeft(s, " ")
	}
	if len(s) == 0 {
		return dst
	}
	space := meta
	if !m.spec.escape {
		space = " "
	}
	if m.spec.prefix {
		dst = append(dst, space...)
	}
	for len(s) > 0 {
		n := plain(s)
		dst = append(dst, s[:n]...)
		s = s[n:]
		switch {
		case len(s) == 0:
		case s[0] == ' ':
			dst = append(dst, space...)
			s = s[1:]
			if m.spec.trim {
				s = bytes.TrimLeft(s, " ")
			}
		default:
			dst = append(dst, "\ufffd"...)
			s = s[1:]
		}
	}
	if m.spec.trim {
		for bytes.HasSuffix(dst, []byte(space)) {
			dst = dst[:len(dst)-len(space)]
		}
	}
	return dst
}

// plain is the length of the start of s that has no space and is UTF-8.
func plain(s []byte) int {
	i := 0
	for i < len(s) && s[i] != ' ' {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// spState is how far the decoding of a SentencePiece model has got.
type spState struct {
	inside bool // past the place where the mark in front is dropped
	mark   bool // the last piece began with that mark
	text   bool // there has been text
	run    []byte
}

func (st *spState) push(d *Decoder, id int32) {
	m := d.t.sp
	tok, ok := d.t.words.get(id)
	if !ok {
		return
	}
	if b, ok := m.bytes[id]; ok {
		st.run = append(st.run, b)
		st.settle(d, false)
		return
	}
	st.settle(d, true)
	if st.mark || st.text {
		st.inside = true
	}
	st.mark = false
	switch m.kinds[id] {
	case spControl:
		return
	case spUnknown:
		tok = m.spec.unkSurface
	default:
		if !st.inside && (m.spec.prefix || m.spec.trim) {
			cut := strings.HasPrefix(tok, meta)
			tok = strings.TrimPrefix(tok, meta)
			st.mark = cut && !m.spec.trim
		}
		tok = strings.ReplaceAll(tok, meta, " ")
	}
	st.emit(d, tok)
}

func (st *spState) flush(d *Decoder) { st.settle(d, true) }

// settle gives out the characters that the bytes so far make; a byte that can
// be no part of one becomes U+FFFD. With all, the beginning of one is given up.
func (st *spState) settle(d *Decoder, all bool) {
	for len(st.run) > 0 && (all || utf8.FullRune(st.run)) {
		r, n := utf8.DecodeRune(st.run)
		if r == utf8.RuneError && n == 1 {
			st.emit(d, "\ufffd")
		} else {
			st.emit(d, string(st.run[:n]))
		}
		st.run = append(st.run[:0], st.run[n:]...)
	}
}

func (st *spState) emit(d *Decoder, s string) {
	st.text = st.text || s != ""
	d.out = append(d.out, s...)
}
