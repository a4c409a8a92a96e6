// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// wordCache remembers the ids of words: most words of a text have been there
// before. The ids of a word are a function of the word alone, so what is found
// is true for ever; a word is kept in full, so that a hit is never a guess. It
// belongs to one call at a time and is bounded: a new word takes the place of
// another one.
//
// Short words of few ids, which are nearly all, lie two in a cache line. The
// others have a place of their own.
type wordCache struct {
	short [1 << shortBits]shortSet
	other [1 << otherBits]otherWord
}

// shortWord is a word and its ids, half a cache line. The last of the word's 16
// bytes is its length, in the low half, and the number of ids.
type shortWord struct {
	lo, hi uint64
	ids    [shortIDs]int32
}

// shortSet is two words, the one used last in front.
type shortSet [2]shortWord

type otherWord struct {
	word    [otherLength]byte
	size, n uint8
	ids     [otherIDs]int32
}

const (
	shortBits   = 14 // a mebibyte
	shortLength = 15 // bytes of a word
	shortIDs    = 4
	shortCount  = 60 // where the number of ids stands in hi

	otherBits   = 13 // a mebibyte
	otherLength = 46 // an entry is two cache lines
	otherIDs    = 20
)

// keyMasks cut the 16 bytes at the start of a word to its length.
var keyMasks = func() (m [shortLength + 1][2]uint64) {
	for n := range m {
		m[n] = [2]uint64{1<<(8*min(n, 8)) - 1, 1<<(8*max(n-8, 0)) - 1}
	}
	return m
}()

// shortKey packs a word of at most [shortLength] bytes with its length.
func shortKey(s []byte) (lo, hi uint64) {
	var b [16]byte
	copy(b[:], s)
	return binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]) | uint64(len(s))<<56
}

// is reports whether e is the word with this key.
func (e *shortWord) is(lo, hi uint64) bool { return e.lo == lo && e.hi<<4>>4 == hi }

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return high ^ low
}

// set is where a short word may be.
func (c *wordCache) set(lo, hi uint64) *shortSet {
	return &c.short[mix(lo, hi)>>(64-shortBits)]
}

// put stores a word if it has few ids, in the place of the one used longer ago.
func (set *shortSet) put(lo, hi uint64, ids []int32) {
	if len(ids) > shortIDs {
		return
	}
	set[1] = set[0]
	e := &set[0]
	e.lo, e.hi = lo, hi|uint64(len(ids))<<shortCount
	copy(e.ids[:], ids)
}

// place is where another word may be.
func (c *wordCache) place(s []byte) *otherWord {
	h := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		h = mix(h, binary.LittleEndian.Uint64(s))
	}
	for _, b := range s {
		h = h<<8 ^ uint64(b) ^ h>>56
	}
	return &c.other[mix(h, h)>>(64-otherBits)]
}

// appendWords appends the ids of the words that scan finds in s.
func (m *model) appendWords(w *work, dst []int32, s []byte, scan scanner) []int32 {
	t, c := classes(), w.cache
	for i := 0; i < len(s); {
		word := s[i:scan(t, s, i)]
		var lo, hi uint64
		switch {
		case len(word) > shortLength:
			dst = m.otherWord(w, dst, word)
			i += len(word)
			continue
		case len(s)-i >= 16:
			mask := &keyMasks[len(word)&shortLength]
			lo = binary.LittleEndian.Uint64(s[i:]) & mask[0]
			hi = binary.LittleEndian.Uint64(s[i+8:])&mask[1] | uint64(len(word))<<56
		default:
			lo, hi = shortKey(word)
		}
		i += len(word)
		set := c.set(lo, hi)
		if !set[0].is(lo, hi) {
			if !set[1].is(lo, hi) {
				n := len(dst)
				dst = m.otherWord(w, dst, word)
				set.put(lo, hi, dst[n:])
				continue
			}
			set[0], set[1] = set[1], set[0]
		}
		e, n := &set[0], len(dst)
		if cap(dst)-n < shortIDs {
			dst = append(dst, e.ids[:e.hi>>shortCount]...)
			continue
		}
		*(*[shortIDs]int32)(dst[n : n+shortIDs]) = e.ids
		dst = dst[:n+int(e.hi>>shortCount)]
	}
	return dst
}

// otherWord appends the ids of a word that is not among the short ones.
func (m *model) otherWord(w *work, dst []int32, s []byte) []int32 {
	if len(s) > otherLength {
		return m.word(w, dst, s)
	}
	e := w.cache.place(s)
	if int(e.size) == len(s) && bytes.Equal(e.word[:e.size], s) {
		return append(dst, e.ids[:e.n]...)
	}
	n := len(dst)
	dst = m.word(w, dst, s)
	if ids := dst[n:]; len(ids) <= otherIDs && (len(ids) > shortIDs || len(s) > shortLength) {
		e.size, e.n = uint8(len(s)), uint8(len(ids))
		copy(e.word[:], s)
		copy(e.ids[:], ids)
	}
	return dst
}
