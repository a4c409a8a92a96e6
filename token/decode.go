// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decoder turns ids into text one at a time. What it has returned is final:
// bytes of an unfinished character, and text that a later token can still
// change, are held back until they are settled. A Decoder serves one goroutine.
type Decoder struct {
	t    *Tokenizer
	skip bool
	out  []byte
	in   sink
	sp   spState
}

// Next is the text that is settled by one more id, often none. An id without
// a token is passed over.
func (d *Decoder) Next(id int32) string {
	d.out = d.out[:0]
	d.push(id)
	return string(d.out)
}

// Flush is the text that was still held back; the Decoder is then as new.
func (d *Decoder) Flush() string {
	d.out = d.out[:0]
	d.end()
	return string(d.out)
}

func (d *Decoder) push(id int32) {
	if d.t.sp != nil {
		d.sp.push(d, id)
		return
	}
	tok, ok := d.t.shown(id)
	if !ok || d.skip && d.t.special[tok] {
		return
	}
	d.in.push(tok)
}

func (d *Decoder) end() {
	if d.t.sp != nil {
		d.sp.flush(d)
		d.sp = spState{}
		return
	}
	d.in.flush()
}

// A sink takes tokens and, step by step, makes text of them. flush says that
// no more come, and makes the sink as new.
type sink interface {
	push(s string)
	flush()
}

// A decodeStep is one component of the decoder of a tokenizer.json.
type decodeStep struct {
	// chain puts the component in front of next. With raw, bytes that are not
	// UTF-8 are kept.
	chain func(next sink, raw bool) sink

	// fuses says that one token comes out. It may come out in pieces, so what
	// follows either waits for all of them or has another form: whole.
	fuses bool
	whole func(next sink) sink
}

// newSink chains the steps.
func (d *Decoder) newSink(steps []decodeStep, raw bool) sink {
	var s sink = (*outSink)(d)
	if steps == nil {
		return &spaced{next: s}
	}
	first := len(steps) // the first component behind one that fuses
	for i, st := range steps {
		if st.fuses {
			first = i + 1
			break
		}
	}
	for i := len(steps) - 1; i >= 0; i-- {
		switch st := steps[i]; {
		case i < first:
			s = st.chain(s, raw)
		case st.whole != nil:
			s = st.whole(s)
		default:
			s = &gather{next: st.chain(s, raw)}
		}
	}
	return s
}

// outSink is the end of the chain.
type outSink Decoder

func (o *outSink) push(s string) { o.out = append(o.out, s...) }
func (o *outSink) flush()        {}

// spaced stands in for a missing decoder: tokens with spaces between them.
type spaced struct {
	next  sink
	begun bool
}

func (s *spaced) push(tok string) {
	if s.begun {
		s.next.push(" ")
	}
	s.begun = true
	s.next.push(tok)
}

func (s *spaced) flush() {
	s.begun = false
	s.next.flush()
}

// gather holds everything back and hands it on as one token. It stands behind
// a fusing component in front of one that needs to see the whole text.
type gather struct {
	next sink
	b    strings.Builder
	any  bool
}

func (g *gather) push(tok string) {
	g.any = true
	g.b.WriteString(tok)
}

func (g *gather) flush() {
	if g.any {
		g.next.push(g.b.String())
	}
	g.any = false
	g.b.Reset()
	g.next.flush()
}

// mapped rewrites each token by itself.
type mapped struct {
	next sink
	f    func(s string, first bool) string
	old  bool
}

func (m *mapped) push(tok string) {
	m.next.push(m.f(tok, !m.old))
	m.old = true
}

func (m *mapped) flush() {
	m.old = false
	m.next.flush()
}

func mapStep(f func(s string, first bool) string) decodeStep {
	return decodeStep{chain: func(next sink, _ bool) sink { return &mapped{next: next, f: f} }}
}

// metaspaceStep turns marks into spaces; those of the first token vanish if
// the encoder may have put one in front.
func metaspaceStep(mark string, lead bool) decodeStep {
	return mapStep(func(s string, first bool) string {
		if first && lead {
			return strings.ReplaceAll(s, mark, "")
		}
		return strings.ReplaceAll(s, mark, " ")
	})
}

func replacePatternStep(re *pattern, to string, report func(error)) decodeStep {
	r := replacePattern{re, []byte(to), report}
	return mapStep(func(s string, _ bool) string {
		out, _ := r.normalize(nil, []byte(s))
		return string(out)
	})
}

// stripStep cuts up to start marks off the front of a token and up to stop off
// its end.
func stripStep(mark string, start, stop int) decodeStep {
	st := mapStep(func(s string, _ bool) string {
		for i := 0; i < start && strings.HasPrefix(s, mark); i++ {
			s = s[len(mark):]
		}
		for i := 0; i < stop && strings.HasSuffix(s, mark); i++ {
			s = s[:len(s)-len(mark)]
		}
		return s
	})
	if stop == 0 {
		st.whole = func(next sink) sink {
			return &stripStart{next: next, mark: mark, n: start, left: start}
		}
	}
	return st
}

// stripStart is stripStep on one long token, without waiting for its end.
type stripStart struct {
	next    sink
	mark    string
	n, left int
}

func (s *stripStart) push(tok string) {
	for s.left > 0 && tok != "" {
		if !strings.HasPrefix(tok, s.mark) {
			s.left = 0
			break
		}
		tok = tok[len(s.mark):]
		s.left--
	}
	if tok != "" {
		s.next.push(tok)
	}
}

func (s *stripStart) flush() {
	s.left = s.n
	s.next.flush()
}

// fuseStep makes one token of all.
func fuseStep() decodeStep {
	return decodeStep{
		chain: func(next sink, _ bool) sink { return next },
		fuses: true,
		whole: func(next sink) sink { return next },
	}
}

// byteRun collects tokens like <0xE2>. A run of them becomes text if all of it
// is UTF-8, and else one U+FFFD each.
type byteRun struct {
	next sink
	run  []byte
}

func byteFallbackStep() decodeStep {
	return decodeStep{chain: func(next sink, _ bool) sink { return &byteRun{next: next} }}
}

func (b *byteRun) push(tok string) {
	if v, ok := byteToken(tok); ok {
		b.run = append(b.run, v)
		return
	}
	b.settle()
	b.next.push(tok)
}

func (b *byteRun) flush() {
	b.settle()
	b.next.flush()
}

func (b *byteRun) settle() {
	if len(b.run) == 0 {
		return
	}
	if utf8.Valid(b.run) {
		b.next.push(string(b.run))
	} else {
		for range b.run {
			b.next.push("\ufffd")
		}
	}
	b.run = b.run[:0]
}

// byteToken reads a token of the form <0xE2>.
func byteToken(tok string) (byte, bool) {
	if len(tok) != 6 || !strings.HasPrefix(tok, "<0x") || tok[5] != '>' {
		return 0, false
	}
	v, err := strconv.ParseUint(tok[3:5], 16, 8)
	return byte(v), err == nil
}

// byteLevel turns the letters that stand for bytes back into bytes, which make
// one text. Unless raw, what is not UTF-8 becomes U+FFFD, as in the reference.
type byteLevel struct {
	next sink
	raw  bool
	held []byte // the beginning of a character
}

func byteLevelStep() decodeStep {
	return decodeStep{
		chain: func(next sink, raw bool) sink { return &byteLevel{next: next, raw: raw} },
		fuses: true,
	}
}

func (b *byteLevel) push(tok string) {
	b.held = appendBytes(b.held, tok)
	n := len(b.held)
	if !b.raw {
		n = settled(b.held)
	}
	b.emit(n)
}

func (b *byteLevel) flush() {
	b.emit(len(b.held))
	b.next.flush()
}

func (b *byteLevel) emit(n int) {
	if n == 0 {
		return
	}
	if b.raw {
		b.next.push(string(b.held[:n]))
	} else {
		b.next.push(string(appendValid(nil, b.held[:n])))
	}
	b.held = append(b.held[:0], b.held[n:]...)
}

// settled is the length of s without the beginning of a character at its end.
func settled(s []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if utf8.RuneStart(s[len(s)-i]) {
			if !utf8.FullRune(s[len(s)-i:]) {
				return len(s) - i
			}
			break
		}
	}
	return len(s)
}

// appendBytes appends the bytes that a token of a byte-level vocabulary stands
// for; a token with any other character stands for itself.
func appendBytes(dst []byte, tok string) []byte {
	start := len(dst)
	for _, r := range tok {
		b, ok := byteOf(r)
		if !ok {
			return append(dst[:start], tok...)
		}
		dst = append(dst, b)
	}
	return dst
}

// runeOf is the printable letter that a byte-level vocabulary writes for b:
// itself, or U+0100 + n for the n-th byte that cannot be printed.
//
// Radford et al., 2019, as in [patternGPT2].
func runeOf(b byte) rune {
	switch {
	case b < '!':
		return 0x100 + rune(b)
	case b <= '~', b >= 0xae, 0xa1 <= b && b <= 0xac:
		return rune(b)
	case b == 0xad:
		return 0x100 + 67
	}
	return 0x100 + 33 + rune(b) - 0x7f // 0x7f … 0xa0
}

// byteOf is the inverse of runeOf.
func byteOf(r rune) (byte, bool) {
	switch {
	case r >= 0x100+68 || r < '!':
		return 0, false
	case r == 0x100+67:
		return 0xad, true
	case r >= 0x100+33:
		return byte(r - 0x100 - 33 + 0x7f), true
	case r >= 0x100:
		return byte(r - 0x100), true
	}
	return byte(r), runeOf(byte(r)) == r
}

func replaceStep(from, to string) decodeStep {
	return mapStep(func(s string, _ bool) string { return strings.ReplaceAll(s, from, to) })
}
