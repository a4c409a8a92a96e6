// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"sync"
	"unicode/utf8"
)

// UnicodeVersion is the version of the Unicode Character Database that \p{L}
// and \p{N} of the splitting patterns follow. It is the version of the regular
// expression engine inside Hugging Face tokenizers 0.23, not Go's: a splitter
// that knows more letters than the reference produces other ids.
const UnicodeVersion = "16.0"

// Properties of a code point, one bit each. Several can be set.
const (
	isLetter  = 1 << iota // \p{L}
	isNumber              // \p{N}
	isSpace               // \s
	isNumeric             // split off by Digits
	isPunct               // split off by Punctuation
	isWord                // \w
	isHead                // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]: what a word of o200k begins with
	isTail                // [\p{Ll}\p{Lm}\p{Lo}\p{M}]: what it goes on with
)

// classTable holds the properties of every code point in blocks of 256; equal
// blocks are stored once. ascii is the part that most text needs.
type classTable struct {
	ascii  [utf8.RuneSelf]uint8
	index  [(utf8.MaxRune + 1) >> 8]uint16
	blocks [][256]uint8
}

// classes is computed once from the tables, then only read.
var classes = sync.OnceValue(func() *classTable {
	all := make([]uint8, utf8.MaxRune+1)
	each := func(pairs []uint32, f func(class *uint8)) {
		for i := 0; i < len(pairs); i += 2 {
			for c := pairs[i]; c <= pairs[i+1]; c++ {
				f(&all[c])
			}
		}
	}
	mark := func(pairs []uint32, bits uint8) {
		each(pairs, func(class *uint8) { *class |= bits })
	}
	mark(letters[:], isLetter|isHead|isTail)
	mark(marks[:], isHead|isTail)
	each(capitals[:], func(class *uint8) { *class &^= isTail })
	each(smalls[:], func(class *uint8) { *class &^= isHead })
	mark(numbers[:], isNumber)
	mark(spaces[:], isSpace)
	mark(numerics[:], isNumeric)
	mark(puncts[:], isPunct)
	mark(words[:], isWord)

	t := new(classTable)
	t.blocks = shareBlocks(t.index[:], all)
	copy(t.ascii[:], all)
	return t
})

// of is the properties of r, which must be a code point.
func (t *classTable) of(r rune) uint8 {
	return t.blocks[t.index[r>>8]][r&0xff]
}

// at is the properties and the length of the code point that starts at s[i].
// A byte that is not UTF-8 is a code point of its own with no properties, as
// U+FFFD is.
func (t *classTable) at(s []byte, i int) (class uint8, size int) {
	if c := s[i]; c < utf8.RuneSelf {
		return t.ascii[c], 1
	}
	return t.wide(s, i)
}

// wide is at for a code point outside of ASCII.
func (t *classTable) wide(s []byte, i int) (class uint8, size int) {
	r, n := utf8.DecodeRune(s[i:])
	return t.of(r), n
}

// lowerMap is lowercase letter by capital letter, for the normalizer Lowercase.
var lowerMap = sync.OnceValue(func() map[rune]rune {
	m := map[rune]rune{}
	for _, run := range lowerRuns {
		for c := run[0]; c <= run[1]; c += run[2] {
			m[c] = c + run[3]
		}
	}
	return m
})

// shareBlocks cuts the classes of all code points into blocks of 256, of which
// equal ones are kept once, and says in index which block is where.
func shareBlocks[E comparable](index []uint16, all []E) (blocks [][256]E) {
	known := map[[256]E]uint16{}
	for i := range index {
		b := [256]E(all[i<<8:])
		k, ok := known[b]
		if !ok {
			k = uint16(len(blocks))
			known[b] = k
			blocks = append(blocks, b)
		}
		index[i] = k
	}
	return blocks
}
