// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"slices"
	"unicode/utf8"
)

// window is how much of a long word is merged at a time, in bytes: a document
// without a border takes memory for merging this much, whatever its size. An
// eighth of it is more than a piece can have, see [maxPiece].
const window = 1 << 16

// longWord appends the ids of a word that is longer than a window. They are
// those of merging it whole.
//
// A window is merged alone, cut at a border between two of its tokens, and the
// next one begins there. That is exact if, for each two tokens that are
// neighbours in the outcome, merging their two texts alone does not join them.
// For suppose that merging the whole word joins somewhere over a border of the
// outcome, and consider the first time, between the tokens x and y. Up to then
// all merges were inside of tokens; those in x and y came in the order in which
// merging the text xy alone has them, since both always take the pair with the
// lowest rank, the leftmost among equals; so merging xy alone would join over
// the border too. Inside a window the condition holds by the same argument; at
// the cuts it is tested, and where it fails the window grows.
func (m *model) longWord(w *work, dst []int32, s []byte) []int32 {
	type point struct{ begin, left, ids int } // left: where the token in front of begin starts, or -1
	start := point{0, -1, len(dst)}
	at, before, size := start, start, m.window
	for {
		end := min(at.begin+size, len(s))
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end++
		}
		part := s[at.begin:end]
		m.merged(&w.merger, part)
		if at.left >= 0 && !m.apart(w, s, at.left, at.begin) {
			// Again from the cut before, or from the start, with more at a time.
			size *= 2
			if at == before {
				before, size = start, len(s)
			}
			at = before
			dst = dst[:at.ids]
			continue
		}
		if end == len(s) {
			return m.appendIDs(dst, &w.merger, part, len(w.sym))
		}
		k := m.cutBefore(&w.merger, part)
		if k == 0 {
			size *= 2
			continue
		}
		before = at
		dst = m.appendIDs(dst, &w.merger, part, k)
		at = point{at.begin + int(w.at[k]), at.begin + int(w.at[k-1]), len(dst)}
		size = m.window
	}
}

// cutBefore is a token of a window that the next window can begin with: away
// from the end, where merges lack what follows, between two known tokens, and
// at the start of a character.
func (m *model) cutBefore(w *merger, part []byte) int {
	plain := func(k int) bool { return w.sym[k] >= 0 && w.sym[k] < m.size && w.sym[k] != m.unk }
	for k := len(w.sym) - 1; k > 0; k-- {
		at := int(w.at[k])
		if len(part)-at > m.window/8 && plain(k) && plain(k-1) && w.at[k-1] < w.at[k] && w.at[k] < w.at[k+1] &&
			(m.byteLevel || utf8.RuneStart(part[at])) {
			return k
		}
	}
	return 0
}

// apart reports whether the token of s that starts at left, and the first one
// that w.merger holds, of the text from begin on, stay apart when their texts
// are merged alone.
func (m *model) apart(w *work, s []byte, left, begin int) bool {
	m.merged(&w.side, s[left:begin+int(w.at[1])])
	return slices.Contains(w.side.at, int32(begin-left))
}
