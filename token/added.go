// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import "unicode/utf8"

// added is a token that is found in the text before anything else happens to
// it, or, if normalized, right after the normalizer.
type added struct {
	text       string
	id         int32
	word       bool // only where no letter touches it
	left       bool // takes the spaces in front of it along
	right      bool // and those behind it
	normalized bool
	special    bool
	form       string // what is searched for and what decoding sees: text, normalized if so asked
}

// next finds the first added token in s at or behind offset from that may
// stand there. done is the end of what has been given out, which spaces in
// front of a token must not reach into; resume is where to search next, which
// is not stop when spaces behind the token were taken along.
func (p *pipeline) nextAdded(t *trie, s []byte, from, done int) (a *added, start, stop, resume int) {
	for {
		begin, end, k := t.find(s, from)
		if end == 0 {
			return nil, 0, 0, 0
		}
		from = end
		a := &p.added[k]
		if a.word && (wordBefore(s[:begin]) || wordAfter(s[end:])) {
			continue
		}
		start, stop := begin, end
		if a.left {
			start = max(len(trimSpaceRight(s[:begin])), done)
		}
		if a.right {
			stop = len(s) - len(trimSpaceLeft(s[end:]))
		}
		return a, start, stop, end
	}
}

func wordBefore(s []byte) bool {
	r, n := utf8.DecodeLastRune(s)
	return n > 0 && classes().of(r)&isWord != 0
}

func wordAfter(s []byte) bool {
	r, n := utf8.DecodeRune(s)
	return n > 0 && classes().of(r)&isWord != 0
}

func trimSpaceLeft(s []byte) []byte {
	t := classes()
	for len(s) > 0 {
		class, n := t.at(s, 0)
		if class&isSpace == 0 {
			break
		}
		s = s[n:]
	}
	return s
}

func trimSpaceRight(s []byte) []byte {
	t := classes()
	for len(s) > 0 {
		r, n := utf8.DecodeLastRune(s)
		if t.of(r)&isSpace == 0 {
			break
		}
		s = s[:len(s)-n]
	}
	return s
}
