// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// The splitting patterns with a scanner of their own. Any other pattern runs
// in the regular expression engine, at a tenth of the speed.
const (
	// patternGPT2 is from Radford et al., "Language Models are Unsupervised
	// Multitask Learners", 2019 (encoder.py of the released code).
	patternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

	// patternLlama3 is in the tokenizer of the Llama 3 models; patternQwen2
	// differs in the digits only.
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternQwen2 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	// patternO200k is in OpenAI's tokenizer o200k_base and in models that took it
	// over.
	patternO200k = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// scanner finds the end of the word that starts at s[i], where 0 ≤ i < len(s).
// Words cover the whole text, so the next one starts there. A scanner never
// allocates and does not look back before i.
type scanner func(t *classTable, s []byte, i int) int

// scannerFor is the hand-written scanner for a pattern, or nil.
func scannerFor(pattern string) scanner {
	switch pattern {
	case patternGPT2:
		return scanGPT2
	case patternLlama3:
		return scanLlama3
	case patternQwen2:
		return scanQwen2
	case patternO200k:
		return scanO200k
	}
	return nil
}

// Eight bytes at a time, with a byte of the text in each byte of a number.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// notLetters has the high bit of each byte of x set that is no ASCII letter.
func notLetters(x uint64) uint64 {
	low := x&(0x7f*ones) | 0x20*ones
	from := low + (0x80-'a')*ones   // high bit: 'a' or more
	past := low + (0x80-'z'-1)*ones // high bit: more than 'z'
	return ^(from &^ past &^ x) & highs
}

// letters8 is the number of ASCII letters at the start of x, up to 8.
func letters8(x uint64) int { return bits.TrailingZeros64(notLetters(x)) >> 3 }

// scanGPT2 follows [patternGPT2], alternative by alternative.
func scanGPT2(t *classTable, s []byte, i int) int {
	c := s[i]
	start := i
	if c == ' ' { // " ?": a space joins the run that follows it
		start++
	}
	if start+8 < len(s) {
		if n := letters8(binary.LittleEndian.Uint64(s[start:])); n > 0 {
			if start += n; n == 8 || s[start] >= utf8.RuneSelf {
				return lettersEnd(t, s, start)
			}
			return start
		}
	}
	if c == '\'' {
		if n := contraction(s[i+1:], false); n > 0 {
			return i + 1 + n
		}
	}
	if start == len(s) {
		return start
	}
	class, size := t.at(s, start)
	if class&isSpace != 0 {
		return spaceEnd(t, s, i)
	}
	return runEnd(t, s, start+size, class&(isLetter|isNumber))
}

// lettersEnd is the end of the run of letters from s[i] on.
func lettersEnd(t *classTable, s []byte, i int) int {
	for i+8 <= len(s) {
		n := letters8(binary.LittleEndian.Uint64(s[i:]))
		if i += n; n == 8 {
			continue
		}
		if s[i] < utf8.RuneSelf {
			return i
		}
		class, size := t.wide(s, i)
		if class&isLetter == 0 {
			return i
		}
		i += size
	}
	return runEnd(t, s, i, isLetter)
}

// runEnd is the end of the run, from s[i] on, of letters, of numbers, or of
// what is neither of them nor a space (kind 0).
func runEnd(t *classTable, s []byte, i int, kind uint8) int {
	for i < len(s) {
		if c := s[i]; c < utf8.RuneSelf {
			if t.ascii[c]&(isLetter|isNumber|isSpace) != kind {
				break
			}
			i++
			continue
		}
		class, size := t.wide(s, i)
		if class&(isLetter|isNumber|isSpace) != kind {
			break
		}
		i += size
	}
	return i
}

// spaceEnd follows `\s+(?!\S)|\s+` at a space: the run of spaces without its
// last one, which stays with the word behind it; the whole run at the end of
// the text; and a single space alone.
func spaceEnd(t *classTable, s []byte, i int) int {
	start, last := i, i
	for i < len(s) {
		class, size := t.at(s, i)
		if class&isSpace == 0 {
			if last == start {
				return i
			}
			return last
		}
		last = i
		i += size
	}
	return i
}

// breakEnd follows `\s*[\r\n]+|\s+(?!\S)|\s+` at a space: the run of spaces up
// to its last line break, or if it has none as in [spaceEnd].
func breakEnd(t *classTable, s []byte, i int) int {
	start, last, line := i, i, i
	for i < len(s) {
		class, size := t.at(s, i)
		if class&isSpace == 0 {
			break
		}
		last = i
		if i += size; s[i-1] == '\r' || s[i-1] == '\n' {
			line = i
		}
	}
	switch {
	case line > start:
		return line
	case i == len(s) || last == start:
		return i
	}
	return last
}

// contraction is the length of s, t, re, ve, m, ll or d at the start of s, and
// 0 for anything else. With fold, capitals count too, and so does ſ (U+017F),
// which folds to s.
func contraction(s []byte, fold bool) int {
	at := func(i int) byte {
		if i >= len(s) {
			return 0
		}
		if c := s[i]; fold && 'A' <= c && c <= 'Z' {
			return c | 0x20
		}
		return s[i]
	}
	switch at(0) {
	case 's', 't', 'm', 'd':
		return 1
	case 'r', 'v':
		if at(1) == 'e' {
			return 2
		}
	case 'l':
		if at(1) == 'l' {
			return 2
		}
	case 0xc5:
		if fold && at(1) == 0xbf {
			return 2
		}
	}
	return 0
}

func scanLlama3(t *classTable, s []byte, i int) int { return scanNew(t, s, i, 3) }
func scanQwen2(t *classTable, s []byte, i int) int  { return scanNew(t, s, i, 1) }

// scanNew follows [patternLlama3], alternative by alternative, with at most
// the given number of digits in a word.
func scanNew(t *classTable, s []byte, i, digits int) int {
	c := s[i]
	if i+9 < len(s) { // a letter, or one other character of ASCII and a letter
		start := i
		if c|0x20 < 'a' || c|0x20 > 'z' {
			start++
		}
		n := letters8(binary.LittleEndian.Uint64(s[start:]))
		if n > 0 && (start == i || joinsLetters(t, c) && c != '\'') {
			if start += n; n == 8 || s[start] >= utf8.RuneSelf {
				return lettersEnd(t, s, start)
			}
			return start
		}
	}
	if c == '\'' {
		if n := contraction(s[i+1:], true); n > 0 {
			return i + 1 + n
		}
	}
	class, size := t.at(s, i)
	next := i + size
	switch {
	case class&isLetter != 0:
		return lettersEnd(t, s, next)
	case class&isNumber != 0:
		return digitsEnd(t, s, next, digits-1)
	}
	var after uint8 = isSpace // the class behind c; at the end of the text none
	var width int
	if next < len(s) {
		after, width = t.at(s, next)
		if after&isLetter != 0 && c != '\r' && c != '\n' {
			return lettersEnd(t, s, next+width)
		}
	}
	if class&isSpace == 0 {
		return newlinesEnd(s, runEnd(t, s, next, 0))
	}
	if c == ' ' && after&(isLetter|isNumber|isSpace) == 0 {
		return newlinesEnd(s, runEnd(t, s, next+width, 0))
	}
	return breakEnd(t, s, i)
}

// joinsLetters reports whether c is an ASCII character in [^\r\n\p{L}\p{N}].
func joinsLetters(t *classTable, c byte) bool {
	return c < utf8.RuneSelf && t.ascii[c]&(isLetter|isNumber) == 0 && c != '\r' && c != '\n'
}

// digitsEnd takes up to n more numbers.
func digitsEnd(t *classTable, s []byte, i, n int) int {
	for ; n > 0 && i < len(s); n-- {
		class, size := t.at(s, i)
		if class&isNumber == 0 {
			break
		}
		i += size
	}
	return i
}

func newlinesEnd(s []byte, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// scanO200k follows [patternO200k], alternative by alternative. Of the second
// one nothing is left but a run of heads: with a tail behind or among them the
// first one matches.
func scanO200k(t *classTable, s []byte, i int) int {
	if end := casedASCII(t, s, i); end > 0 {
		return end
	}
	class, size := t.at(s, i)
	next := i + size
	if class&(isLetter|isNumber) == 0 && s[i] != '\r' && s[i] != '\n' && next < len(s) {
		// A mark in front of heads alone is the first alternative by itself.
		if end, tails := casedEnd(t, s, next); end > next && (tails || class&isTail == 0) {
			return end
		}
	}
	if end, _ := casedEnd(t, s, i); end > i {
		return end
	}
	if class&isNumber != 0 {
		return digitsEnd(t, s, next, 2)
	}
	if class&isSpace == 0 {
		return slashesEnd(s, runEnd(t, s, next, 0))
	}
	if s[i] == ' ' && next < len(s) {
		if after, width := t.at(s, next); after&(isLetter|isNumber|isSpace) == 0 {
			return slashesEnd(s, runEnd(t, s, next+width, 0))
		}
	}
	return breakEnd(t, s, i)
}

// casedASCII is the end of a word of up to 7 letters, all of ASCII, and of what
// may stand in front; 0 if this is none.
func casedASCII(t *classTable, s []byte, i int) int {
	if i+9 >= len(s) {
		return 0
	}
	c := s[i]
	if c|0x20 < 'a' || c|0x20 > 'z' {
		if !joinsLetters(t, c) {
			return 0
		}
		i++
	}
	x := binary.LittleEndian.Uint64(s[i:])
	n := letters8(x)
	if n == 0 || n == 8 || s[i+n] >= utf8.RuneSelf {
		return 0
	}
	const small = 0x20 * ones
	heads := bits.TrailingZeros64(x&small) &^ 7 // bits in front of the first small letter
	if heads < 8*n {                            // and the next capital behind it
		n = min(n, bits.TrailingZeros64(^x&small&^(1<<heads-1))>>3)
	}
	i += n
	if s[i] == '\'' {
		if k := contraction(s[i+1:], true); k > 0 {
			i += 1 + k
		}
	}
	return i
}

// casedEnd is the end of a word of o200k without what may stand in front: heads
// and then tails, and a contraction; i if there is none. Heads that are tails
// too are given back where no tail follows, up to the last of them.
func casedEnd(t *classTable, s []byte, i int) (end int, tails bool) {
	start, both := i, -1 // both: the end of the last head that is a tail
	for i < len(s) {
		class, size := t.at(s, i)
		if class&isHead == 0 {
			break
		}
		if i += size; class&isTail != 0 {
			both = i
		}
	}
	heads := i
	for i < len(s) {
		class, size := t.at(s, i)
		if class&isTail == 0 {
			break
		}
		i += size
	}
	tails = i > heads
	if !tails && both >= 0 {
		i, tails = both, true
	}
	if i > start && i < len(s) && s[i] == '\'' {
		if n := contraction(s[i+1:], true); n > 0 {
			i += 1 + n
		}
	}
	return i, tails
}

// slashesEnd follows `[\r\n/]*`.
func slashesEnd(s []byte, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n' || s[i] == '/') {
		i++
	}
	return i
}
