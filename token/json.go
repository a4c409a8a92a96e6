// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a JSON file. Sequences inside sequences are
// the deepest thing a tokenizer has: under ten levels.
const maxDepth = 64

// node is one JSON value. Strings without escapes share the memory of the file.
type node struct {
	kind byte   // one of { [ " 0 t f n, the first byte of such a value
	text string // a string's contents, or a number as written
	kids []node // an array's elements, or an object's keys and values in turn
}

// parseJSON reads one JSON document, more strictly than encoding/json: the
// text is UTF-8, escapes hold no lone surrogate, and an object has no key
// twice, because with two values of one key two readers can disagree about
// what the file says. Errors name the byte offset.
//
// Differs: of two values of one key the reference takes the last.
func parseJSON(src string) (node, error) {
	p := jsonParser{src: src}
	p.space()
	v := p.value(0)
	p.space()
	if p.err == nil && p.pos < len(src) {
		p.fail("text after the end of the document")
	}
	return v, p.err
}

type jsonParser struct {
	src string
	pos int
	err error // the first fault; every reader stops at it
}

func (p *jsonParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("byte %d: %s", p.pos, fmt.Sprintf(format, args...))
	}
}

func (p *jsonParser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// accept consumes c if it comes next.
func (p *jsonParser) accept(c byte) bool {
	if p.pos < len(p.src) && p.src[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *jsonParser) value(depth int) node {
	switch {
	case p.err != nil:
		return node{}
	case p.pos >= len(p.src):
		p.fail("the file ends inside a value")
		return node{}
	case depth > maxDepth:
		p.fail("values are nested deeper than %d levels", maxDepth)
		return node{}
	}
	switch c := p.src[p.pos]; c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		return node{kind: '"', text: p.str()}
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	default:
		return p.number()
	}
}

func (p *jsonParser) word(w string) node {
	if len(p.src)-p.pos < len(w) || p.src[p.pos:p.pos+len(w)] != w {
		p.fail("want %s", w)
		return node{}
	}
	p.pos += len(w)
	return node{kind: w[0]}
}

func (p *jsonParser) array(depth int) node {
	v := node{kind: '['}
	p.pos++
	p.space()
	if p.accept(']') {
		return v
	}
	for p.err == nil {
		p.space()
		v.kids = append(v.kids, p.value(depth+1))
		p.space()
		if p.accept(']') {
			return v
		}
		if !p.accept(',') {
			p.fail("want , or ] in an array")
		}
	}
	return v
}

func (p *jsonParser) object(depth int) node {
	v := node{kind: '{'}
	seen := map[string]bool{}
	p.pos++
	p.space()
	if p.accept('}') {
		return v
	}
	for p.err == nil {
		p.space()
		at := p.pos
		key := p.str()
		if seen[key] {
			p.pos = at
			p.fail("key %q stands twice in one object", key)
		}
		seen[key] = true
		p.space()
		if !p.accept(':') {
			p.fail("want : after a key")
		}
		p.space()
		v.kids = append(v.kids, node{kind: '"', text: key}, p.value(depth+1))
		p.space()
		if p.accept('}') {
			return v
		}
		if !p.accept(',') {
			p.fail("want , or } in an object")
		}
	}
	return v
}

func (p *jsonParser) str() string {
	if !p.accept('"') {
		p.fail("want a string")
		return ""
	}
	start := p.pos
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '"':
			s := p.src[start:p.pos]
			if !utf8.ValidString(s) {
				p.fail("string is not UTF-8")
			}
			p.pos++
			return s
		case c == '\\':
			return p.escaped(start)
		case c < 0x20:
			p.fail("control character in a string")
			return ""
		}
		p.pos++
	}
	p.fail("the file ends inside a string")
	return ""
}

// escaped finishes a string whose first escape stands at p.pos.
func (p *jsonParser) escaped(start int) string {
	b := []byte(p.src[start:p.pos])
	for p.err == nil && p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '"':
			if !utf8.Valid(b) {
				p.fail("string is not UTF-8")
			}
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
	p.fail("the file ends inside a string")
	return ""
}

func (p *jsonParser) escape(b []byte) []byte {
	if p.pos+1 >= len(p.src) {
		p.fail("the file ends inside an escape")
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

func (p *jsonParser) unicodeEscape(b []byte) []byte {
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
func (p *jsonParser) hex4(i int) rune {
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

// number reads a JSON number and keeps it as it is written: no id passes
// through a float.
func (p *jsonParser) number() node {
	start := p.pos
	digits := func() int {
		n := 0
		for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' {
			p.pos++
			n++
		}
		return n
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
	if !ok {
		p.pos = start
		p.fail("want a value")
		return node{}
	}
	return node{kind: '0', text: p.src[start:p.pos]}
}
