// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

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
	}
	return nil
}

// scanGPT2 follows [patternGPT2], alternative by alternative.
func scanGPT2(t *classTable, s []byte, i int) int {
	c := s[i]
	if c == '\'' {
		if n := contraction(s[i+1:], false); n > 0 {
			return i + 1 + n
		}
	}
	class, size := t.at(s, i)
	start := i + size
	if c == ' ' && start < len(s) { // " ?": a space joins the run that follows it
		class, size = t.at(s, start)
		start += size
	}
	if class&isSpace != 0 {
		return spaceEnd(t, s, i)
	}
	return runEnd(t, s, start, class&(isLetter|isNumber))
}

// runEnd is the end of the run, from s[i] on, of letters, of numbers, or of
// what is neither of them nor a space (kind 0).
func runEnd(t *classTable, s []byte, i int, kind uint8) int {
	for i < len(s) {
		class, size := t.at(s, i)
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
	if c == '\'' {
		if n := contraction(s[i+1:], true); n > 0 {
			return i + 1 + n
		}
	}
	class, size := t.at(s, i)
	next := i + size
	switch {
	case class&isLetter != 0:
		return runEnd(t, s, next, isLetter)
	case class&isNumber != 0:
		return digitsEnd(t, s, next, digits-1)
	}
	var after uint8 = isSpace // the class behind c; at the end of the text none
	var width int
	if next < len(s) {
		after, width = t.at(s, next)
		if after&isLetter != 0 && c != '\r' && c != '\n' {
			return runEnd(t, s, next+width, isLetter)
		}
	}
	if class&isSpace == 0 {
		return newlinesEnd(s, runEnd(t, s, next, 0))
	}
	if c == ' ' && after&(isLetter|isNumber|isSpace) == 0 {
		return newlinesEnd(s, runEnd(t, s, next+width, 0))
	}
	if j := lastNewline(t, s, i); j > i {
		return j
	}
	return spaceEnd(t, s, i)
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

// lastNewline follows `\s*[\r\n]+` at a space: the offset behind the last line
// break of the run of spaces, or i if it has none.
func lastNewline(t *classTable, s []byte, i int) int {
	end := i
	for i < len(s) {
		class, size := t.at(s, i)
		if class&isSpace == 0 {
			break
		}
		i += size
		if c := s[i-1]; c == '\r' || c == '\n' {
			end = i
		}
	}
	return end
}
