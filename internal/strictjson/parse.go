// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a text. Sequences inside sequences are the
// deepest thing that a tokenizer has, and other files are flatter: under ten
// levels.
const maxDepth = 64

// Parse reads one JSON value of at most 2 GiB. An error is an [*Error].
//
// Differs: of two values of one key other readers take the last.
func Parse(src string) (Value, error) {
	if len(src) > math.MaxInt32 {
		return Value{}, &Error{0, fmt.Errorf("got %d bytes, want at most %d", len(src), math.MaxInt32)}
	}
	p := parser{src: src}
	p.checkUTF8()
	p.space()
	v := p.value(0)
	p.space()
	if p.err == nil && p.pos < len(src) {
		p.fail("text after the end of the document")
	}
	if p.err != nil {
		return Value{}, p.err
	}
	return v, nil
}

// ParseFile is [Parse] for the text of a file. Its errors are of the form
// "file:line: …".
func ParseFile(file, src string) (Value, error) {
	v, err := Parse(src)
	if e, ok := err.(*Error); ok {
		return v, fmt.Errorf("%s:%d: %w", file, Line(src, e.At), e.Err)
	}
	return v, nil
}

type parser struct {
	src string
	pos int
	err *Error // the first fault; every reader stops at it
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &Error{p.pos, fmt.Errorf(format, args...)}
	}
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// checkUTF8 fails at the first byte that is not UTF-8.
func (p *parser) checkUTF8() {
	if utf8.ValidString(p.src) {
		return
	}
	for i := 0; ; {
		c, n := utf8.DecodeRuneInString(p.src[i:])
		if c == utf8.RuneError && n == 1 {
			p.pos = i
			p.fail("not valid UTF-8")
			return
		}
		i += n
	}
}

// want fails at what comes next.
func (p *parser) want(what string) {
	if p.pos >= len(p.src) {
		p.fail("the text ends, want %s", what)
		return
	}
	got, _ := utf8.DecodeRuneInString(p.src[p.pos:])
	p.fail("got %q, want %s", got, what)
}

// peek is the byte that comes next, 0 at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

// accept consumes c, which is not 0, if it comes next.
func (p *parser) accept(c byte) bool {
	if p.peek() == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) value(depth int) Value {
	switch {
	case p.err != nil:
		return Value{}
	case depth > maxDepth:
		p.fail("values are nested deeper than %d levels", maxDepth)
		return Value{}
	}
	v := Value{At: int32(p.pos)}
	switch p.peek() {
	case '{':
		v.Kind, v.Kids = Object, p.object(depth)
	case '[':
		v.Kind, v.Kids = Array, p.array(depth)
	case '"':
		v.Kind, v.Text = String, p.str()
		return v
	case 't':
		v.Kind = p.word("true")
	case 'f':
		v.Kind = p.word("false")
	case 'n':
		v.Kind = p.word("null")
	default:
		v.Kind = p.number()
	}
	v.Text = p.src[v.At:p.pos]
	return v
}

func (p *parser) word(w string) Kind {
	if !strings.HasPrefix(p.src[p.pos:], w) {
		p.want(w)
		return 0
	}
	p.pos += len(w)
	return Kind(w[0])
}

func (p *parser) array(depth int) (kids []Value) {
	p.pos++
	p.space()
	if p.accept(']') {
		return kids
	}
	kids = make([]Value, 0, 2) // most arrays of a tokenizer are pairs
	for p.err == nil {
		p.space()
		kids = append(kids, p.value(depth+1))
		p.space()
		if p.accept(']') {
			return kids
		}
		if !p.accept(',') {
			p.want(", or ]")
		}
	}
	return kids
}

func (p *parser) object(depth int) (kids []Value) {
	var seen keys
	p.pos++
	p.space()
	if p.accept('}') {
		return kids
	}
	for p.err == nil {
		p.space()
		at := p.pos
		key := Value{Kind: String, At: int32(at), Text: p.str()}
		if seen.add(key.Text, kids) {
			p.pos = at
			p.fail("key %q stands twice in one object", key.Text)
		}
		p.space()
		if !p.accept(':') {
			p.want(": after a key")
		}
		p.space()
		kids = append(kids, key, p.value(depth+1))
		p.space()
		if p.accept('}') {
			return kids
		}
		if !p.accept(',') {
			p.want(", or }")
		}
	}
	return kids
}

// keys is the keys of an object so far. Most objects have few, which are
// compared one by one.
type keys map[string]bool

// add reports whether a key is already among kids, an object's keys and values.
func (s *keys) add(key string, kids []Value) bool {
	if *s == nil && len(kids) < 2*8 {
		for i := 0; i < len(kids); i += 2 {
			if kids[i].Text == key {
				return true
			}
		}
		return false
	}
	if *s == nil {
		*s = keys{}
		for i := 0; i < len(kids); i += 2 {
			(*s)[kids[i].Text] = true
		}
	}
	n := len(*s)
	(*s)[key] = true
	return len(*s) == n
}

func (p *parser) str() string {
	if !p.accept('"') {
		p.want("a key in quotes")
		return ""
	}
	start := p.pos
	for i, c := range []byte(p.src[start:]) {
		switch p.pos = start + i; {
		case c == '"':
			p.pos++
			return p.src[start : start+i]
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			p.fail("control character in a string")
			return ""
		}
	}
	p.pos = len(p.src)
	p.fail("the text ends inside a string")
	return ""
}

// escaped finishes a string whose first escape stands at p.pos.
func (p *parser) escaped(start int) string {
	b := []byte(p.src[start:p.pos])
	for p.err == nil && p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '"':
			p.pos++
			return string(b)
		case c == '\\':
			b = p.escape(b)
		case c < 0x20:
			p.fail("control character in a string")
		default:
			b = append(b, c)
			p.pos++
		}
	}
	p.fail("the text ends inside a string")
	return ""
}

func (p *parser) escape(b []byte) []byte {
	if p.pos+1 >= len(p.src) {
		p.fail("the text ends inside an escape")
		return b
	}
	c := p.src[p.pos+1]
	if c == 'u' {
		return p.unicodeEscape(b)
	}
	const names, values = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for i := range len(names) {
		if names[i] == c {
			p.pos += 2
			return append(b, values[i])
		}
	}
	p.fail("unknown escape \\%c", c)
	return b
}

func (p *parser) unicodeEscape(b []byte) []byte {
	r := p.hex4(p.pos + 2)
	n := 6
	if utf16.IsSurrogate(r) {
		low := rune(-1)
		if p.pos+8 <= len(p.src) && p.src[p.pos+6:p.pos+8] == `\u` {
			low = p.hex4(p.pos + 8)
		}
		r, n = utf16.DecodeRune(r, low), 12
		if r == utf8.RuneError {
			p.fail("half of a surrogate pair")
		}
	}
	if r < 0 {
		p.fail("want four hexadecimal digits after \\u")
	}
	if p.err != nil {
		return b
	}
	p.pos += n
	return utf8.AppendRune(b, r)
}

// hex4 is the value of four hexadecimal digits at offset i, or -1.
func (p *parser) hex4(i int) rune {
	if i+4 > len(p.src) {
		return -1
	}
	for _, c := range []byte(p.src[i : i+4]) {
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
			return -1
		}
	}
	v, _ := strconv.ParseUint(p.src[i:i+4], 16, 32)
	return rune(v)
}

// number passes over a number.
func (p *parser) number() Kind {
	start := p.pos
	digits := func() int {
		from := p.pos
		for '0' <= p.peek() && p.peek() <= '9' {
			p.pos++
		}
		return p.pos - from
	}
	p.accept('-')
	lead := p.pos
	n := digits()
	ok := n == 1 || n > 1 && p.src[lead] != '0'
	if p.accept('.') {
		ok = digits() > 0 && ok
	}
	if p.accept('e') || p.accept('E') {
		if !p.accept('+') {
			p.accept('-')
		}
		ok = digits() > 0 && ok
	}
	if ok {
		return Number
	}
	bad := p.src[start:p.pos]
	p.pos = start
	if n == 0 {
		p.want("a value")
	}
	p.fail("%s is not a number of JSON", bad)
	return 0
}
