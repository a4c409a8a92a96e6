// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import "bytes"

// behavior says what becomes of the matches of a splitter.
type behavior int

const (
	isolated   behavior = iota // every match is a piece
	removed                    // matches are dropped
	contiguous                 // neighbouring matches are one piece
	mergedPrev                 // a match ends the piece in front of it
	mergedNext                 // a match begins the piece behind it
)

// apply turns spans that cover a text, with the matches marked, into pieces.
func (b behavior) apply(spans []span) []span {
	switch b {
	case removed:
		out := spans[:0]
		for _, s := range spans {
			if !s.match {
				out = append(out, s)
			}
		}
		return out
	case contiguous, mergedPrev:
		out := spans[:0]
		prev := false
		for _, s := range spans {
			join := s.match == prev
			if b == mergedPrev {
				join = s.match && !prev
			}
			prev = s.match
			if join && len(out) > 0 {
				out[len(out)-1].end = s.end
			} else {
				out = append(out, s)
			}
		}
		return out
	case mergedNext:
		return joinNext(spans)
	}
	return spans
}

// joinNext gives each match the piece behind it, from right to left: of two
// neighbouring matches the second one begins a piece.
func joinNext(spans []span) []span {
	at := len(spans) // spans[at:] is done
	prev := false
	for i := len(spans) - 1; i >= 0; i-- {
		s := spans[i]
		if s.match && !prev && at < len(spans) {
			spans[at].start = s.start
		} else {
			at--
			spans[at] = s
		}
		prev = s.match
	}
	return append(spans[:0], spans[at:]...)
}

// scanStage splits by a hand-written scanner; every word is a piece.
type scanStage struct{ scan scanner }

func (st scanStage) split(l *level, s []byte, _ bool) []byte {
	t := classes()
	for i := 0; i < len(s); {
		end := st.scan(t, s, i)
		l.spans = append(l.spans, span{i, end, true})
		i = end
	}
	return s
}

// classStage makes a match of every code point of a class.
type classStage struct {
	class    uint8
	behavior behavior
}

func (st classStage) split(l *level, s []byte, _ bool) []byte {
	t := classes()
	start := 0
	for i := 0; i < len(s); {
		class, n := t.at(s, i)
		if class&st.class != 0 {
			if start < i {
				l.spans = append(l.spans, span{start, i, false})
			}
			l.spans = append(l.spans, span{i, i + n, true})
			start = i + n
		}
		i += n
	}
	if start < len(s) {
		l.spans = append(l.spans, span{start, len(s), false})
	}
	l.spans = st.behavior.apply(l.spans)
	return s
}

// wordStage is `\w+|[^\w\s]+`, the matches kept and the rest dropped.
type wordStage struct{}

func (wordStage) split(l *level, s []byte, _ bool) []byte {
	t := classes()
	start, kind := 0, uint8(isSpace)
	for i := 0; i <= len(s); {
		next, n := uint8(isSpace), 1
		if i < len(s) {
			if next, n = t.at(s, i); next&isWord != 0 {
				next = isWord
			} else {
				next &= isSpace
			}
		}
		if next != kind || i == len(s) {
			if kind != isSpace && start < i {
				l.spans = append(l.spans, span{start, i, false})
			}
			start, kind = i, next
		}
		i += n
	}
	return s
}

// textStage makes a match of every occurrence of a fixed text.
type textStage struct {
	text     []byte
	invert   bool
	behavior behavior
}

func (st textStage) split(l *level, s []byte, _ bool) []byte {
	start := 0
	for {
		i := bytes.Index(s[start:], st.text)
		if i < 0 {
			break
		}
		if i > 0 {
			l.spans = append(l.spans, span{start, start + i, st.invert})
		}
		start += i
		l.spans = append(l.spans, span{start, start + len(st.text), !st.invert})
		start += len(st.text)
	}
	if start < len(s) {
		l.spans = append(l.spans, span{start, len(s), st.invert})
	}
	l.spans = st.behavior.apply(l.spans)
	return s
}

// patternStage makes a match of every match of a regular expression.
type patternStage struct {
	re       *pattern
	invert   bool
	behavior behavior
}

func (st patternStage) split(l *level, s []byte, _ bool) []byte {
	l.err = st.re.split(l, s)
	if st.invert {
		for i := range l.spans {
			l.spans[i].match = !l.spans[i].match
		}
	}
	l.spans = st.behavior.apply(l.spans)
	return s
}

// metaspace writes a mark for every space, puts one in front, and splits in
// front of each.
type metaspace struct {
	mark   []byte
	scheme string // always, first, never
	cut    bool
}

func (st metaspace) split(l *level, s []byte, first bool) []byte {
	text := l.text[:0]
	lead := bytes.HasPrefix(s, st.mark) || s[0] == ' '
	if !lead && (st.scheme == "always" || st.scheme == "first" && first) {
		text = append(text, st.mark...)
	}
	for {
		i := bytes.IndexByte(s, ' ')
		if i < 0 {
			break
		}
		text = append(append(text, s[:i]...), st.mark...)
		s = s[i+1:]
	}
	text = append(text, s...)
	l.text = text
	if !st.cut {
		l.spans = append(l.spans, span{0, len(text), false})
		return text
	}
	return textStage{text: st.mark, behavior: mergedNext}.split(l, text, first)
}

// spaceFirst is a [metaspace] that does not split, by its scheme, where a space
// stands for the mark.
type spaceFirst string

func (scheme spaceFirst) split(l *level, s []byte, first bool) []byte {
	lead := bytes.HasPrefix(s, []byte(meta)) || s[0] == ' '
	if !lead && (scheme == "always" || scheme == "first" && first) {
		l.text = append(append(l.text[:0], ' '), s...)
		s = l.text
	}
	l.spans = append(l.spans, span{0, len(s), false})
	return s
}

// prefixSpace puts a space in front of a piece that does not start with one.
type prefixSpace struct{}

func (prefixSpace) split(l *level, s []byte, _ bool) []byte {
	if s[0] != ' ' {
		l.text = append(append(l.text[:0], ' '), s...)
		s = l.text
	}
	l.spans = append(l.spans, span{0, len(s), false})
	return s
}
