// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// spModel is a SentencePiece model of the type BPE or unigram.
//
// Kudo & Richardson, "SentencePiece: A simple and language independent subword
// tokenizer and detokenizer for Neural Text Processing", 2018,
// arXiv:1808.06226; the order of merges is that of the released code.
type spModel struct {
	spec  spSpec
	kinds []byte // the type of each piece
	bytes map[int32]byte
	model model

	rules *charsmap           // nil: text stays as it is
	users *trie               // pieces that are not normalized, or nil
	plain [utf8.RuneSelf]bool // see [charsmap.plainASCII]; no user-defined piece starts so
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

// normalize replaces what the character map replaces, writes ▁ for a space, puts
// one in front or behind, and U+FFFD for every byte that is not UTF-8.
func (m *spModel) normalize(dst, s []byte) []byte {
	trim := m.spec.trim
	for trim && len(s) > 0 {
		text, n := m.next(s)
		if string(text) != " " {
			break
		}
		s = s[n:]
	}
	if len(s) == 0 {
		return dst
	}
	space := meta
	if !m.spec.escape {
		space = " "
	}
	if m.spec.prefix && !m.spec.suffix {
		dst = append(dst, space...)
	}
	dst = m.rewrite(dst, s, space)
	if trim {
		for bytes.HasSuffix(dst, []byte(space)) {
			dst = dst[:len(dst)-len(space)]
		}
	}
	if m.spec.prefix && m.spec.suffix {
		dst = append(dst, space...)
	}
	return dst
}

// rewrite is the part of normalize between the ends. With trim a space behind
// a space is dropped.
func (m *spModel) rewrite(dst, s []byte, space string) []byte {
	after := m.spec.trim // behind a space
	for len(s) > 0 {
		if n := m.plainRun(s); n > 0 {
			dst, after = append(dst, s[:n]...), false
			s = s[n:]
			continue
		}
		if s[0] == ' ' && m.plain[' '] && (len(s) == 1 || s[1] < utf8.RuneSelf) {
			if !after {
				dst, after = append(dst, space...), m.spec.trim
			}
			s = s[1:]
			continue
		}
		text, n := m.next(s)
		s = s[n:]
		if after {
			text = bytes.TrimLeft(text, " ")
		}
		if len(text) > 0 {
			after = m.spec.trim && text[len(text)-1] == ' '
		}
		for {
			i := bytes.IndexByte(text, ' ')
			if i < 0 {
				break
			}
			dst = append(append(dst, text[:i]...), space...)
			text = text[i+1:]
		}
		dst = append(dst, text...)
	}
	return dst
}

// plainRun is the length of the start of s that stays as it is and holds no
// space: ASCII, or any UTF-8 where there are no rules.
func (m *spModel) plainRun(s []byte) int {
	i := 0
	for i < len(s) {
		c := s[i]
		if c < utf8.RuneSelf {
			if c == ' ' || !m.plain[c] {
				break
			}
			i++
			continue
		}
		if m.rules != nil {
			return max(0, i-1) // a rule may begin with the character in front
		}
		r, n := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && n == 1 || m.users != nil && m.users.first[c] {
			break
		}
		i += n
	}
	return i
}

// next is what stands for the first n bytes of s, which is not empty: a
// user-defined piece as it is, what the longest rule that applies says, or a
// character.
func (m *spModel) next(s []byte) (text []byte, n int) {
	if m.users != nil {
		if n, _ := m.users.longest(s); n > 0 {
			return s[:n], n
		}
	}
	if m.rules != nil {
		if text, n := m.rules.longest(s); n > 0 {
			return text, n
		}
	}
	r, n := utf8.DecodeRune(s)
	if r == utf8.RuneError && n == 1 {
		return []byte("\ufffd"), 1
	}
	return s[:n], n
}

// findPlain fills m.plain.
func (m *spModel) findPlain() {
	m.plain = m.rules.plainASCII()
	for b := range m.plain {
		m.plain[b] = m.plain[b] && (m.users == nil || !m.users.first[b])
	}
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
