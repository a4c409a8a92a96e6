// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// form is NFC, NFD, NFKC or NFKD of Unicode Standard Annex 15, as the reference
// computes them. golang.org/x/text differs from it twice: it knows code points
// that the reference's older tables do not, which must stay as they are, and it
// puts U+034F into long runs of marks. Texts with either go a slower way.
type form norm.Form

func (f form) normalize(dst, s []byte) ([]byte, bool) {
	if plainForm(s) {
		return norm.Form(f).Append(dst, s...), true
	}
	start := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		if isNewer(r) {
			dst = f.slow(dst, s[start:i])
			dst = append(dst, s[i:i+n]...)
			start = i + n
		}
		i += n
	}
	return f.slow(dst, s[start:]), true
}

// longRun is how many code points in a row that are no letters can be left to
// x/text, which acts from 30 marks on: some letters hold four marks.
const longRun = 10

// plainForm reports whether x/text and the reference surely agree on s.
func plainForm(s []byte) bool {
	t := classes()
	run := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			run = 0
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if run++; t.of(r)&(isLetter|isNumber|isSpace) != 0 {
			run = 0
		}
		if run > longRun || r >= rune(newer[0]) && isNewer(r) {
			return false
		}
		i += n
	}
	return true
}

// isNewer reports whether x/text, but not the reference, does something to r.
func isNewer(r rune) bool { return inPairs(newer[:], r) }

// slow decomposes, sorts the marks by class, and composes.
func (f form) slow(dst, s []byte) []byte {
	full := norm.NFD
	if norm.Form(f) == norm.NFKC || norm.Form(f) == norm.NFKD {
		full = norm.NFKD
	}
	var runes []rune
	var bad []byte // bytes that are not UTF-8 part the text, as code points do
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && n == 1 {
			bad = append(bad, s[i])
			r = -1
		}
		if r < 0 {
			runes = append(runes, r)
		} else {
			runes = append(runes, []rune(full.String(string(s[i:i+n])))...)
		}
		i += n
	}
	sortMarks(runes)
	if norm.Form(f) == norm.NFC || norm.Form(f) == norm.NFKC {
		runes = compose(runes)
	}
	for _, r := range runes {
		if r < 0 {
			dst, bad = append(dst, bad[0]), bad[1:]
			continue
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

func combining(r rune) uint8 {
	if r < 0 {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}

// sortMarks puts each run of marks into the order of their classes.
func sortMarks(runes []rune) {
	for i := 0; i < len(runes); i++ {
		j := i
		for j < len(runes) && combining(runes[j]) != 0 {
			j++
		}
		slices.SortStableFunc(runes[i:j], func(a, b rune) int {
			return int(combining(a)) - int(combining(b))
		})
		i = max(i, j-1)
	}
}

// compose joins each code point with the last starter, if nothing between them
// is of its class or higher and the two have a common form.
func compose(runes []rune) []rune {
	out := runes[:0]
	starter, last := -1, uint8(0)
	for _, r := range runes {
		c := combining(r)
		if starter >= 0 && r >= 0 && (last < c || last == 0 && starter == len(out)-1) {
			if p, ok := pairForm(out[starter], r); ok {
				out[starter] = p
				continue
			}
		}
		out = append(out, r)
		if last = c; c == 0 {
			starter = len(out) - 1
		}
	}
	return out
}

func pairForm(a, b rune) (rune, bool) {
	if a < 0 {
		return 0, false
	}
	s := norm.NFC.String(string(a) + string(b))
	r, n := utf8.DecodeRuneInString(s)
	return r, n == len(s)
}
