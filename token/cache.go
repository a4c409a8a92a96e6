// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/binary"
	"math/bits"
)

// wordCache remembers the ids of short words: most words of a text have been
// there before. The ids of a word are a function of the word alone, so what is
// found is true for ever; a word is kept in full, so that a hit is never a
// guess. It belongs to one call at a time and is bounded: of two words in one
// place the one used longer ago gives way.
type wordCache struct {
	sets [1 << cacheBits][2]cacheEntry
}

// cacheEntry is a word and its ids, half a cache line. The last byte of the
// word's 16 is its length, in the low half, and the number of ids.
type cacheEntry struct {
	lo, hi uint64
	ids    [cacheIDs]int32
}

const (
	cacheBits  = 15 // two mebibytes
	cacheWord  = 15 // bytes
	cacheIDs   = 4
	cacheCount = 60 // where the number of ids stands in hi
)

// keyMasks cut the 16 bytes at the start of a word to its length.
var keyMasks = func() (m [cacheWord + 1][2]uint64) {
	for n := range m {
		m[n] = [2]uint64{1<<(8*min(n, 8)) - 1, 1<<(8*max(n-8, 0)) - 1}
	}
	return m
}()

// wordKey packs a word of at most [cacheWord] bytes with its length.
func wordKey(s []byte) (lo, hi uint64) {
	var b [16]byte
	copy(b[:], s)
	return binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]) | uint64(len(s))<<56
}

// set is where a word may be.
func (c *wordCache) set(lo, hi uint64) *[2]cacheEntry {
	a, b := bits.Mul64(lo^0x9e3779b97f4a7c15, hi^0xd6e8feb86659fd93)
	return &c.sets[(a^b)>>(64-cacheBits)]
}

// put stores a word; the other word of the set is the one used before.
func (c *wordCache) put(lo, hi uint64, ids []int32) {
	if len(ids) > cacheIDs {
		return
	}
	set := c.set(lo, hi)
	set[1] = set[0]
	e := &set[0]
	e.lo, e.hi = lo, hi|uint64(len(ids))<<cacheCount
	copy(e.ids[:], ids)
}

// appendWords appends the ids of the words that scan finds in s.
func (m *model) appendWords(w *work, dst []int32, s []byte, scan scanner) []int32 {
	t := classes()
	for i := 0; i < len(s); {
		end := scan(t, s, i)
		if end-i > cacheWord {
			dst = m.word(w, dst, s[i:end])
			i = end
			continue
		}
		var lo, hi uint64
		if len(s)-i >= 16 {
			mask := &keyMasks[(end-i)&cacheWord]
			lo = binary.LittleEndian.Uint64(s[i:]) & mask[0]
			hi = binary.LittleEndian.Uint64(s[i+8:])&mask[1] | uint64(end-i)<<56
		} else {
			lo, hi = wordKey(s[i:end])
		}
		set := w.cache.set(lo, hi)
		e := &set[0]
		if e.lo != lo || e.hi<<4>>4 != hi {
			if e = &set[1]; e.lo != lo || e.hi<<4>>4 != hi {
				n := len(dst)
				dst = m.word(w, dst, s[i:end])
				w.cache.put(lo, hi, dst[n:])
				i = end
				continue
			}
			set[0], set[1] = set[1], set[0]
			e = &set[0]
		}
		n := len(dst)
		if cap(dst)-n < cacheIDs {
			dst = append(dst, e.ids[:e.hi>>cacheCount]...)
		} else {
			dst = dst[:n+cacheIDs]
			*(*[cacheIDs]int32)(dst[n:]) = e.ids
			dst = dst[:n+int(e.hi>>cacheCount)]
		}
		i = end
	}
	return dst
}
