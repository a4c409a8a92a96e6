// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"encoding/binary"
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
	cut   bool             // no token spans the border in front of ▁, so merging can stop there

	unigram *unigram // or this model, and none of the above
}

// work is the memory of one call, kept between calls in a pool. It depends on
// the model only through the cache, whose entries hold for ever.
type work struct {
	merger
	cache  []cacheEntry
	levels []level
	bufs   [2][]byte
	clean  []byte

	lattice lattice
}

// cacheEntry remembers the ids of one short word. The word is kept in full,
// in two overlapping halves, so a hit is never a guess.
type cacheEntry struct {
	lo, hi uint64
	size   uint8 // bytes of the word, 0: empty
	n      uint8
	ids    [cacheIDs]int32
}

const (
	cacheBits = 14 // a mebibyte: entries are 64 bytes
	cacheWord = 16
	cacheIDs  = 11
)

// encode appends the ids of one piece.
func (m *model) encode(w *work, dst []int32, s []byte) []int32 {
	if m.unigram != nil {
		return m.unigram.encode(&w.lattice, dst, s)
	}
	if m.whole != nil {
		if id, ok := m.whole[string(s)]; ok {
			return append(dst, id)
		}
	}
	if !m.cut {
		return m.word(w, dst, s)
	}
	for len(s) > 0 {
		n := metaEnd(s)
		dst = m.word(w, dst, s[:n])
		s = s[n:]
	}
	return dst
}

// metaEnd is the length of the marks ▁ at the start of s and of all that
// follows up to the next one.
func metaEnd(s []byte) int {
	i := 0
	for bytes.HasPrefix(s[i:], []byte(meta)) {
		i += len(meta)
	}
	for i < len(s) {
		if s[i] == meta[0] && len(s) >= i+3 && s[i+1] == meta[1] && s[i+2] == meta[2] {
			break
		}
		i++
	}
	return i
}

// word appends the ids of a piece, from the cache if it is short.
func (m *model) word(w *work, dst []int32, s []byte) []int32 {
	if len(s) == 0 || len(s) > cacheWord {
		return m.mergeWord(w, dst, s)
	}
	lo, hi := wordKey(s)
	h := (lo ^ hi*0x9e3779b97f4a7c15 + uint64(len(s))) * 0xd6e8feb86659fd93
	e := &w.cache[h>>(64-cacheBits)]
	if e.size == uint8(len(s)) && e.lo == lo && e.hi == hi {
		return append(dst, e.ids[:e.n]...)
	}
	start := len(dst)
	dst = m.mergeWord(w, dst, s)
	if n := len(dst) - start; n <= cacheIDs {
		e.lo, e.hi, e.size, e.n = lo, hi, uint8(len(s)), uint8(n)
		copy(e.ids[:], dst[start:])
	}
	return dst
}

// wordKey packs 1 to 16 bytes; with the length it determines them.
func wordKey(s []byte) (lo, hi uint64) {
	le, n := binary.LittleEndian, len(s)
	switch {
	case n >= 8:
		return le.Uint64(s), le.Uint64(s[n-8:])
	case n >= 4:
		return uint64(le.Uint32(s)), uint64(le.Uint32(s[n-4:]))
	}
	return uint64(s[0]) | uint64(s[n/2])<<8 | uint64(s[n-1])<<16, 0
}

func (m *model) mergeWord(w *work, dst []int32, s []byte) []int32 {
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
	w.merge(m.merges)
	prev := int32(-1)
	for i, sym := range w.sym {
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
func (m *model) splitPiece(w *work, s []byte) {
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
func (m *model) splitBytes(w *work, s []byte) {
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
func (m *model) splitRunes(w *work, s []byte) {
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

// canCut reports whether no merge can reach over the border between another
// character and a ▁ behind it. results are the texts that merges produce.
func canCut(results func(yield func(string) bool)) bool {
	for s := range results {
		other := false
		for _, r := range s {
			if r == '▁' && other {
				return false
			}
			other = other || r != '▁'
		}
	}
	return true
}
