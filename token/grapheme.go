// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"sync"
	"unicode/utf8"
)

// breakClass is what a code point does at the borders of grapheme clusters.
type breakClass uint8

const (
	breakOther breakClass = iota
	breakControl
	breakExtend  // marks, spacing ones too, and the joiner U+200D
	breakPrepend // joins what is behind it
	breakPicture
	breakConsonant
	breakLinker // a mark that joins two consonants
	breakL      // Hangul: leading consonant, vowel, trailing consonant, syllables
	breakV
	breakT
	breakLV
	breakLVT
)

const zeroWidthJoiner = 0x200d

// breakTable is the class of every code point in blocks of 256; equal blocks are
// stored once.
type breakTable struct {
	index  [(utf8.MaxRune + 1) >> 8]uint16
	blocks [][256]breakClass
}

func (t *breakTable) of(r rune) breakClass { return t.blocks[t.index[r>>8]][r&0xff] }

// breakClasses is computed once, then only read.
var breakClasses = sync.OnceValue(func() *breakTable {
	all := make([]breakClass, utf8.MaxRune+1)
	mark := func(pairs []uint32, class breakClass) {
		for i := 0; i < len(pairs); i += 2 {
			for c := pairs[i]; c <= pairs[i+1]; c++ {
				all[c] = class
			}
		}
	}
	mark([]uint32{0x1100, 0x115f, 0xa960, 0xa97c}, breakL)
	mark([]uint32{0x1160, 0x11a7, 0xd7b0, 0xd7c6}, breakV)
	mark([]uint32{0x11a8, 0x11ff, 0xd7cb, 0xd7fb}, breakT)
	mark([]uint32{0xac00, 0xd7a3}, breakLVT)
	for c := 0xac00; c <= 0xd7a3; c += 28 {
		all[c] = breakLV
	}
	mark(graphemeExtend[:], breakExtend)
	mark(graphemePrepend[:], breakPrepend)
	mark(graphemeControl[:], breakControl)
	mark(graphemePicture[:], breakPicture)
	mark(graphemeConsonant[:], breakConsonant)
	mark(graphemeLinker[:], breakLinker)
	all[0] = breakControl

	t := new(breakTable)
	t.blocks = shareBlocks(t.index[:], all)
	return t
})

// clusterEnd is the length of the grapheme cluster at the start of s, which is
// not empty: the rules GB3 to GB11 of Unicode Standard Annex 29. Flags (GB12),
// of four bytes a letter, are left apart: no cluster with two of them is short.
func clusterEnd(s []byte) int {
	if len(s) > 1 && s[0] == '\r' && s[1] == '\n' {
		return 2
	}
	t := breakClasses()
	r, n := utf8.DecodeRune(s)
	c := clusterState{prev: t.of(r)}
	c.base = c.prev
	for n < len(s) && c.prev != breakControl {
		r, size := utf8.DecodeRune(s[n:])
		if !c.joins(r, t.of(r)) {
			break
		}
		n += size
	}
	return n
}

// clusterState is what the rules look back at.
type clusterState struct {
	prev   breakClass
	base   breakClass // the last one that is no mark
	joiner bool       // the last one is U+200D
	linked bool       // there was a linker behind base
}

// joins reports whether a code point belongs to the cluster so far, and adds it.
func (c *clusterState) joins(r rune, class breakClass) bool {
	ok := false
	switch class {
	case breakControl:
		return false
	case breakExtend, breakLinker:
		c.joiner = r == zeroWidthJoiner
		c.linked = c.linked || class == breakLinker
		c.prev = class
		return true
	case breakPicture:
		ok = c.joiner && c.base == breakPicture
	case breakConsonant:
		ok = c.linked && c.base == breakConsonant
	case breakL, breakLV, breakLVT:
		ok = c.prev == breakL
	case breakV:
		ok = c.prev == breakL || c.prev == breakV || c.prev == breakLV
	case breakT:
		ok = c.prev == breakV || c.prev == breakT || c.prev == breakLV || c.prev == breakLVT
	}
	ok = ok || c.prev == breakPrepend
	*c = clusterState{prev: class, base: class}
	return ok
}
