// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"slices"
	"unicode/utf8"
)

// meta is ▁ (U+2581), which SentencePiece writes for a space.
const meta = "▁"

// model is byte-pair encoding of one piece of text: symbols by character or
// byte, then merges, then ids. A symbol below size is an id. Symbols from size
// on are characters that only occur inside tokens, and texts that must not
// merge; extra says which id they stand for, or -1.
type model struct {
	merges *mergeTable
	size   int32
	extra  []int32

	byteLevel bool // symbols are bytes, else characters
	first     [256]int32
	runes     map[rune]int32
	frozen    *trie // texts that are one symbol and never merge, or nil

	unk      int32 // -1: what is unknown leaves no id
	fuseUnk  bool  // neighbouring unknown characters make one id
	fallback *[256]int32
	piece    bool // SentencePiece's treatment of unknown characters

	whole map[string]int32 // a piece that is one token takes no merges; nil: it does
	joins *joins           // where a piece can be cut before merging; nil: nowhere

	// What prepare makes of it.
	window int              // bytes of a word that are merged at a time
	split  scanner          // cuts a piece
	pairs  *[1 << 16]uint64 // the merge of two symbols that are a byte each, as in merges
	spaced bool             // ▁ may be written as a space: the text has no other spaces

	unigram *unigram // or this model, and none of the above
}

// work is the memory of one call, kept between calls in a pool. It depends on
// the model only through the cache, whose entries hold for ever.
type work struct {
	merger
	side   merger // for a look at a few symbols while merger holds others
	cache  *wordCache
	levels []level
	bufs   [2][]byte
	clean  []byte

	lattice lattice
}

// prepare makes the tables that encoding needs beside those of the file.
// Without spaces of its own in the text, a space stands for ▁; not if ▁ could be
// left unknown, since what it leaves then are the bytes of the text.
func (m *model) prepare(noSpaces bool) {
	if m.unigram != nil {
		return
	}
	mark, known := m.runes['▁']
	if m.spaced = noSpaces && known && mark < m.size && m.frozen == nil; m.spaced {
		m.first[' '] = mark
	}
	m.window, m.split = window, onePiece
	if m.frozen != nil {
		m.window = frozenWindow
	}
	if m.merges == nil || !m.plainMerges() {
		return
	}
	if m.joins != nil {
		if m.fallback == nil || slices.Contains(m.fallback[:], -1) {
			m.joins.addUnknown(m)
		}
		m.split = m.joins.end
	}
	sym := m.first
	if wrong, ok := m.runes[utf8.RuneError]; ok && m.piece { // a byte that is not UTF-8
		for b := utf8.RuneSelf; b < len(sym); b++ {
			sym[b] = wrong
		}
	}
	if m.frozen != nil {
		for b := range sym {
			if n, frozen := m.frozen.longest([]byte{byte(b)}); n > 0 {
				sym[b] = frozen
			}
		}
	}
	m.pairs = new([1 << 16]uint64)
	for i := range m.pairs {
		m.pairs[i] = m.merges.get(sym[i>>8], sym[i&0xff])
	}
}

// plainMerges reports whether no merge takes a token that stands for a text
// other than its own: the unknown one, or that of a byte; nor joins what stands on
// two sides of an unknown character that leaves nothing.
func (m *model) plainMerges() bool {
	if m.unk < 0 && !m.byteLevel && (m.fallback == nil || slices.Contains(m.fallback[:], -1)) {
		return false
	}
	odd := map[uint32]bool{}
	if m.unk >= 0 {
		odd[uint32(m.unk)] = true
	}
	if m.fallback != nil {
		for _, id := range m.fallback {
			odd[uint32(id)] = true
		}
	}
	for _, slot := range m.merges.slots {
		if k := slot.key - 1; slot.key != 0 && (odd[uint32(k>>32)] || odd[uint32(k)]) {
			return false
		}
	}
	return true
}

// encode appends the ids of one piece.
func (m *model) encode(w *work, dst []int32, s []byte) []int32 {
	if m.unigram != nil {
		return m.unigram.encode(&w.lattice, dst, s)
	}
	if m.byteLevel {
		return m.appendWords(w, dst, s, onePiece)
	}
	if m.whole != nil {
		if id, ok := m.whole[string(s)]; ok {
			return append(dst, id)
		}
	}
	return m.appendWords(w, dst, s, m.split)
}

// word appends the ids of a piece, or of a part that was cut from it.
func (m *model) word(w *work, dst []int32, s []byte) []int32 {
	if m.byteLevel && m.whole != nil {
		if id, ok := m.whole[string(s)]; ok {
			return append(dst, id)
		}
	}
	if len(s) > m.window {
		return m.longWord(w, dst, s)
	}
	m.merged(&w.merger, s)
	return m.appendIDs(dst, &w.merger, s, len(w.sym))
}

// merged leaves the symbols of s in w, merged.
func (m *model) merged(w *merger, s []byte) {
	w.reset(len(s))
	switch {
	case m.piece:
		m.splitPiece(w, s)
	case m.byteLevel:
		m.splitBytes(w, s)
	default:
		m.splitRunes(w, s)
	}
	w.at = append(w.at, int32(len(s)))
	switch {
	case len(w.sym) > short:
		w.mergeLong(m.merges)
	case len(w.sym) == len(s) && m.pairs != nil: // each symbol is a byte
		for i := range len(s) - 1 {
			w.pairs[i].merge = m.pairs[uint(s[i])<<8|uint(s[i+1])]
		}
		w.mergeShort(m.merges)
	default:
		w.rankShort(m.merges)
		w.mergeShort(m.merges)
	}
}

// appendIDs appends the ids of the first n symbols of s that w holds.
func (m *model) appendIDs(dst []int32, w *merger, s []byte, n int) []int32 {
	prev := int32(-1)
	for i, sym := range w.sym[:n] {
		id := sym
		if sym < 0 || sym >= m.size {
			if id = -1; sym >= 0 {
				id = m.extra[sym-m.size]
			}
			if id < 0 {
				dst, prev = m.unknown(dst, s[w.at[i]:w.at[i+1]], prev)
				continue
			}
		}
		dst, prev = append(dst, id), id
	}
	return dst
}

// unknown appends the ids of a character that SentencePiece does not know: its
// bytes, or one id for a run of such characters.
func (m *model) unknown(dst []int32, s []byte, prev int32) (out []int32, last int32) {
	if m.fallback != nil {
		if !utf8.Valid(s) {
			s = []byte("\ufffd")
		}
		for _, b := range s {
			dst = append(dst, m.fallback[b])
		}
		return dst, -1
	}
	if prev == m.unk {
		return dst, prev
	}
	return append(dst, m.unk), m.unk
}

// splitPiece makes symbols as SentencePiece does: unknown characters take part
// in the merging and are named afterwards.
func (m *model) splitPiece(w *merger, s []byte) {
	for i := 0; i < len(s); {
		if m.frozen != nil {
			if n, sym := m.frozen.longest(s[i:]); n > 0 {
				w.push(sym, i)
				i += n
				continue
			}
		}
		sym, n := m.rune(s[i:])
		w.push(sym, i)
		i += n
	}
}

// rune is the symbol of the character at the start of s, -1 if it has none.
func (m *model) rune(s []byte) (sym int32, n int) {
	if s[0] < utf8.RuneSelf {
		return m.first[s[0]], 1
	}
	r, n := utf8.DecodeRune(s)
	if sym, ok := m.runes[r]; ok {
		return sym, n
	}
	return -1, n
}

// splitBytes makes symbols of bytes. A byte without a token can only happen
// with a vocabulary that lacks part of the alphabet.
func (m *model) splitBytes(w *merger, s []byte) {
	unknown := false
	for i, b := range s {
		sym := m.first[b]
		if sym >= 0 {
			w.push(sym, i)
			unknown = false
			continue
		}
		if m.unk >= 0 && !(unknown && m.fuseUnk) {
			w.push(m.unk, i)
		}
		unknown = true
	}
}

// splitRunes makes symbols as the BPE model of Hugging Face tokenizers does:
// an unknown character becomes its bytes if all of them have tokens, else the
// unknown token, which is held back until the next known character.
func (m *model) splitRunes(w *merger, s []byte) {
	pending := false
	for i := 0; i < len(s); {
		sym, n := m.rune(s[i:])
		switch {
		case sym >= 0:
			if pending {
				w.push(m.unk, i)
				pending = false
			}
			w.push(sym, i)
		case m.byteSymbols(s[i : i+n]):
			for k := range n {
				w.push(m.fallback[s[i+k]], i+k)
			}
		case m.unk >= 0:
			if pending && !m.fuseUnk {
				w.push(m.unk, i)
			}
			pending = true
		}
		i += n
	}
	if pending {
		w.push(m.unk, len(s))
	}
}

func (m *model) byteSymbols(s []byte) bool {
	if m.fallback == nil {
		return false
	}
	for _, b := range s {
		if m.fallback[b] < 0 {
			return false
		}
	}
	return true
}
