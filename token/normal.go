// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"sort"
	"unicode/utf8"
)

// A normalizer rewrites a text before it is split. It appends to dst; kept is
// false if the start of s was cut off, or what is written for it counts as
// standing behind the start.
type normalizer interface {
	normalize(dst, s []byte) (out []byte, kept bool)
}

// prepend puts a text in front of every text that is not empty.
type prepend string

func (p prepend) normalize(dst, s []byte) ([]byte, bool) {
	if len(s) > 0 {
		dst = append(dst, p...)
	}
	return append(dst, s...), true
}

// replace puts one text in the place of another.
type replace struct{ from, to []byte }

func (r replace) normalize(dst, s []byte) ([]byte, bool) {
	kept := !bytes.HasPrefix(s, r.from) || replacesFirst(r.from, r.to)
	for {
		i := bytes.Index(s, r.from)
		if i < 0 {
			return append(dst, s...), kept
		}
		dst = append(append(dst, s[:i]...), r.to...)
		s = s[i+len(r.from):]
	}
}

// replacesFirst reports whether to, written for the start of a text, counts as
// its start: the reference takes it for the last character that it replaces.
func replacesFirst(start, to []byte) bool { return len(to) > 0 && utf8.RuneCount(start) <= 1 }

// replacePattern puts a text in the place of every match.
type replacePattern struct {
	re     *pattern
	to     []byte
	report func(error)
}

func (r replacePattern) normalize(dst, s []byte) ([]byte, bool) {
	var l level
	if err := r.re.split(&l, s); err != nil {
		r.report(err)
	}
	kept := true
	for _, sp := range l.spans {
		if !sp.match {
			dst = append(dst, s[sp.start:sp.end]...)
			continue
		}
		kept = kept && (sp.start > 0 || replacesFirst(s[:sp.end], r.to))
		dst = append(dst, r.to...)
	}
	return dst, kept
}

// lowercase replaces each capital letter by itself, without looking at its
// neighbours: a final sigma is σ.
type lowercase struct{}

func (lowercase) normalize(dst, s []byte) ([]byte, bool) {
	m := lowerMap()
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z':
			dst = append(dst, c|0x20)
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(s[i:])
			switch low, ok := m[r]; {
			case r == 'İ':
				dst = append(dst, "i\u0307"...)
			case ok:
				dst = utf8.AppendRune(dst, low)
			default:
				dst = append(dst, s[i:i+n]...)
			}
			i += n
		}
	}
	return dst, true
}

// strip cuts spaces off the ends.
type strip struct{ left, right bool }

func (t strip) normalize(dst, s []byte) ([]byte, bool) {
	n := len(s)
	if t.left {
		s = trimSpaceLeft(s)
	}
	kept := len(s) == n
	if t.right {
		s = trimSpaceRight(s)
	}
	return append(dst, s...), kept
}

// valid is s, or a copy in w.clean in which U+FFFD stands for each longest
// part that could have started a character, as Python's "replace" does.
func (w *work) valid(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	w.clean = appendValid(w.clean[:0], s)
	return w.clean
}

func appendValid(dst, s []byte) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			n = badPrefix(s)
			dst = append(dst, "\ufffd"...)
		} else {
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	return dst
}

// badPrefix is the length of the longest part of s, at its start, that is the
// beginning of a character but not a whole one: at least one byte.
func badPrefix(s []byte) int {
	n := 1
	for n < len(s) && n < utf8.UTFMax && !utf8.FullRune(s[:n]) {
		n++
	}
	// s[:n] is now known to be wrong; without its last byte it was still open.
	if n > 1 && utf8.FullRune(s[:n]) {
		n--
	}
	return n
}

// stripAccents drops combining marks.
type stripAccents struct{}

func (stripAccents) normalize(dst, s []byte) ([]byte, bool) {
	kept, start := true, 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		if r >= rune(accents[0]) && inPairs(accents[:], r) {
			kept = kept && i > 0
			dst = append(dst, s[start:i]...)
			start = i + n
		}
		i += n
	}
	return append(dst, s[start:]...), kept
}

// inPairs reports whether r is in one of the ranges, which are first and last
// code points in order.
func inPairs(pairs []uint32, r rune) bool {
	i := sort.Search(len(pairs)/2, func(i int) bool { return pairs[2*i+1] >= uint32(r) })
	return 2*i < len(pairs) && pairs[2*i] <= uint32(r)
}
