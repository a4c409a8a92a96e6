// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"iter"
	"unicode/utf8"
)

// joins says which bytes may lie on two sides of a border that some merge
// reaches over: bit d of row c is set if a token has a character that ends with
// byte c in front of one that begins with byte d. Where the bit is not set, no
// merge joins what is left of the border to what is right of it, whatever else
// the text says: its result would be a text with these two characters in a row.
// So the text can be cut there, and its parts encoded one by one.
//
// A space and ▁ count as the same character: see [model.spaced].
type joins [256][4]uint64

// newJoins takes the texts that merges produce, and those that are found whole.
func newJoins(tokens iter.Seq[string]) *joins {
	j := new(joins)
	for s := range tokens {
		prev := rune(-1)
		for _, r := range s {
			if prev >= 0 {
				j.addRunes(prev, r)
			}
			prev = r
		}
	}
	for c := range 256 {
		for d := 0x80; d < 0xc0; d++ { // inside a character there is no border
			j.add(byte(c), byte(d))
		}
	}
	return j
}

func (j *joins) add(c, d byte) { j[c][d>>6] |= 1 << (d & 63) }

func (j *joins) addRunes(a, b rune) {
	var last, first [utf8.UTFMax]byte
	n := utf8.EncodeRune(last[:], a)
	utf8.EncodeRune(first[:], b)
	lasts, firsts := []byte{last[n-1]}, []byte{first[0]}
	if a == '▁' {
		lasts = append(lasts, ' ')
	}
	if b == '▁' {
		firsts = append(firsts, ' ')
	}
	for _, c := range lasts {
		for _, d := range firsts {
			j.add(c, d)
		}
	}
	if a == utf8.RuneError || b == utf8.RuneError { // which any byte that is not UTF-8 becomes
		for x := 0x80; x < 0x100; x++ {
			for y := range 256 {
				j.add(byte(x), byte(y))
				j.add(byte(y), byte(x))
			}
		}
	}
}

// addUnknown forbids borders between characters that may be unknown: a run of
// them can be one id.
func (j *joins) addUnknown(m *model) {
	maybe := func(c int) bool { return c >= utf8.RuneSelf || m.first[c] < 0 || m.first[c] >= m.size }
	for c := range m.first {
		for d := range m.first {
			if maybe(c) && maybe(d) {
				j.add(byte(c), byte(d))
			}
		}
	}
}

// end is a [scanner]: the words are what lies between borders where the text
// can be cut.
func (j *joins) end(_ *classTable, s []byte, i int) int {
	c := s[i]
	for i++; i < len(s); i++ {
		d := s[i]
		if j[c][d>>6]>>(d&63)&1 == 0 {
			break
		}
		c = d
	}
	return i
}

// onePiece is a [scanner] that does not split.
func onePiece(_ *classTable, s []byte, _ int) int { return len(s) }
