// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// wordTable is how often each word occurs: open addressing with linear probing.
// A word of up to 15 bytes is its own key, so that most lookups touch one cache
// line; the bytes of longer words lie in shared blocks.
type wordTable struct {
	slots  []wordSlot // a power of two, at most three quarters in use
	shift  uint       // 64 minus the bits of an index
	spread uint64
	words  int
	size   int64    // bytes of all words
	long   [][]byte // the longer words
	block  []byte   // where the next longer word goes
}

// wordSlot holds bytes 0 to 7 of a word in lo and the rest in hi, under its
// length in the top byte. A longer word has its hash in lo, and in hi its index
// in long under the mark longWord. An empty slot is zero.
type wordSlot struct {
	lo, hi uint64
	count  int64
}

const (
	packedWord = 15
	longWord   = 0xff << 56
	wordBlock  = 1 << 18
	wordSlots  = 1 << 10 // of a new table
)

// newWordTable makes an empty table. Tables with different numbers have their
// words in different orders: to fill a table that grows in the order of another
// would heap up its words at the front.
func newWordTable(number int) *wordTable {
	t := &wordTable{spread: uint64(2*number + 1)}
	t.resize(wordSlots)
	return t
}

// add counts a word, of at least one byte, n more times.
func (t *wordTable) add(w []byte, n int64) {
	if len(w) <= packedWord {
		lo, hi := packedKey(w)
		t.addShort(lo, hi, n)
		return
	}
	t.addLong(w, hashBytes(w), n)
}

// packedKey packs 1 to 15 bytes and their number.
func packedKey(w []byte) (lo, hi uint64) {
	le, n := binary.LittleEndian, len(w)
	hi = uint64(n) << 56
	switch {
	case n >= 8:
		return le.Uint64(w), hi | le.Uint64(w[n-8:])>>(8*(16-n))
	case n >= 4:
		return uint64(le.Uint32(w)) | uint64(le.Uint32(w[n-4:]))<<(8*(n-4)), hi
	}
	return uint64(w[0]) | uint64(w[n/2])<<(8*(n/2)) | uint64(w[n-1])<<(8*(n-1)), hi
}

func mixWords(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd6e8feb86659fd93)
	return hi ^ lo
}

// hashBytes is a hash of more than 8 bytes.
func hashBytes(w []byte) uint64 {
	h := uint64(len(w))
	last := binary.LittleEndian.Uint64(w[len(w)-8:])
	for ; len(w) > 8; w = w[8:] {
		h = mixWords(h, binary.LittleEndian.Uint64(w))
	}
	return mixWords(h, last)
}

// home is the hash of what a slot holds.
func (s *wordSlot) home() uint64 {
	if s.hi >= longWord {
		return s.lo
	}
	return mixWords(s.lo, s.hi)
}

func (t *wordTable) addShort(lo, hi uint64, n int64) {
	mask := uint64(len(t.slots) - 1)
	for i := mixWords(lo, hi) * t.spread >> t.shift; ; i = (i + 1) & mask {
		s := &t.slots[i&mask]
		if s.lo == lo && s.hi == hi {
			s.count += n
			return
		}
		if s.hi == 0 {
			*s = wordSlot{lo, hi, n}
			t.grown(int(hi >> 56))
			return
		}
	}
}

func (t *wordTable) addLong(w []byte, hash uint64, n int64) {
	mask := uint64(len(t.slots) - 1)
	for i := hash * t.spread >> t.shift; ; i = (i + 1) & mask {
		s := &t.slots[i&mask]
		if s.lo == hash && s.hi >= longWord && bytes.Equal(t.long[s.hi&^longWord], w) {
			s.count += n
			return
		}
		if s.hi == 0 {
			*s = wordSlot{hash, longWord | uint64(len(t.long)), n}
			t.long = append(t.long, t.store(w))
			t.grown(len(w))
			return
		}
	}
}

// store copies a word to where it stays.
func (t *wordTable) store(w []byte) []byte {
	if len(w) > wordBlock/8 {
		return bytes.Clone(w)
	}
	if cap(t.block)-len(t.block) < len(w) {
		t.block = make([]byte, 0, wordBlock)
	}
	at := len(t.block)
	t.block = append(t.block, w...)
	return t.block[at:len(t.block):len(t.block)]
}

// grown accounts for a new word, and makes room for the next one.
func (t *wordTable) grown(size int) {
	t.size += int64(size)
	if t.words++; t.words > len(t.slots)/4*3 {
		t.resize(2 * len(t.slots))
	}
}

func (t *wordTable) resize(n int) {
	old := t.slots
	t.slots = make([]wordSlot, n)
	t.shift = uint(64 - bits.Len(uint(n-1)))
	mask := uint64(n - 1)
	for k := range old {
		if old[k].hi == 0 {
			continue
		}
		i := old[k].home() * t.spread >> t.shift
		for t.slots[i].hi != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = old[k]
	}
}

// each calls f with every word and its count, in no order. The word is only
// valid during the call.
func (t *wordTable) each(f func(w []byte, n int64)) {
	var buf [16]byte
	for k := range t.slots {
		if t.slots[k].hi != 0 {
			f(t.word(&t.slots[k], &buf), t.slots[k].count)
		}
	}
}

func (t *wordTable) word(s *wordSlot, buf *[16]byte) []byte {
	if s.hi >= longWord {
		return t.long[s.hi&^longWord]
	}
	binary.LittleEndian.PutUint64(buf[:], s.lo)
	binary.LittleEndian.PutUint64(buf[8:], s.hi)
	return buf[:s.hi>>56]
}

// addAll adds the counts of another table.
func (t *wordTable) addAll(u *wordTable) {
	for k := range u.slots {
		switch s := &u.slots[k]; {
		case s.hi == 0:
		case s.hi >= longWord:
			t.addLong(u.long[s.hi&^longWord], s.lo, s.count)
		default:
			t.addShort(s.lo, s.hi, s.count)
		}
	}
}

// above is a table of the words that occur more than n times.
func (t *wordTable) above(n int64) *wordTable {
	u := newWordTable(int(t.spread/2) + 1)
	t.each(func(w []byte, count int64) {
		if count > n {
			u.add(w, count)
		}
	})
	return u
}
