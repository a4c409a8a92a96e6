// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A line is parsed by hand because encoding/json would hide what matters here:
// it replaces bad UTF-8, takes the last of two equal keys, and matches keys
// without regard to case. FuzzLine compares the two.

// A syntaxError says where in a line JSON ends to be JSON.
type syntaxError struct {
	off int
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

// maxDepth bounds recursion: no document needs more.
const maxDepth = 512

// parseObject checks that line is one JSON object and calls visit with each of
// its keys and the bytes of its value, which alias line.
func parseObject(line []byte, visit func(key string, raw []byte)) (err error) {
	p := parser{b: line}
	p.space()
	if p.i == len(line) || line[p.i] != '{' {
		return p.want("an object")
	}
	if err := p.object(0, visit); err != nil {
		return err
	}
	return p.end()
}

// parseValue checks that line is one JSON value and returns it without the
// space around it.
func parseValue(line []byte) ([]byte, error) {
	p := parser{b: line}
	p.space()
	i := p.i
	if err := p.value(0); err != nil {
		return nil, err
	}
	v := line[i:p.i]
	return v, p.end()
}

func isBlank(b []byte) bool {
	p := parser{b: b}
	p.space()
	return p.i == len(b)
}

// A parser walks over one line; i is how far it has come.
type parser struct {
	b []byte
	i int
}

func (p *parser) space() {
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ' ', '\t', '\r', '\n':
			p.i++
		default:
			return
		}
	}
}

// at reports whether the next byte is c, and steps over it if so.
func (p *parser) at(c byte) bool {
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *parser) want(what string) error {
	got := "the end of the line"
	if p.i < len(p.b) {
		r, n := utf8.DecodeRune(p.b[p.i:])
		if got = strconv.QuoteRune(r); r == utf8.RuneError && n == 1 {
			got = fmt.Sprintf("byte %#02x", p.b[p.i])
		}
	}
	return &syntaxError{p.i, "not JSON: got " + got + ", want " + what}
}

func (p *parser) end() error {
	if p.space(); p.i < len(p.b) {
		return p.want("the end of the line")
	}
	return nil
}

func (p *parser) value(depth int) error {
	if depth > maxDepth {
		return &syntaxError{p.i, fmt.Sprintf("nested deeper than %d", maxDepth)}
	}
	if p.i == len(p.b) {
		return p.want("a value")
	}
	switch c := p.b[p.i]; {
	case c == '"':
		return p.str()
	case c == '{':
		return p.object(depth, nil)
	case c == '[':
		return p.array(depth)
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(p.b[p.i:], []byte(word)) {
			p.i += len(word)
			return nil
		}
	}
	return p.want("a value")
}

func (p *parser) object(depth int, visit func(key string, raw []byte)) error {
	p.i++
	if p.space(); p.at('}') {
		return nil
	}
	for {
		p.space()
		k := p.i
		if p.i == len(p.b) || p.b[p.i] != '"' {
			return p.want("a key in quotes")
		}
		if err := p.str(); err != nil {
			return err
		}
		key := p.b[k:p.i]
		if p.space(); !p.at(':') {
			return p.want("a colon")
		}
		p.space()
		v := p.i
		if err := p.value(depth + 1); err != nil {
			return err
		}
		if visit != nil {
			name, _ := unquote(nil, key)
			visit(string(name), p.b[v:p.i])
		}
		if p.space(); p.at('}') {
			return nil
		}
		if !p.at(',') {
			return p.want("a comma or }")
		}
	}
}

func (p *parser) array(depth int) error { return p.elements(depth, nil) }

// elements calls visit, if there is one, with each value of a list.
func (p *parser) elements(depth int, visit func(raw []byte)) error {
	p.i++
	if p.space(); p.at(']') {
		return nil
	}
	for {
		p.space()
		v := p.i
		if err := p.value(depth + 1); err != nil {
			return err
		}
		if visit != nil {
			visit(p.b[v:p.i])
		}
		if p.space(); p.at(']') {
			return nil
		}
		if !p.at(',') {
			return p.want("a comma or ]")
		}
	}
}

// plain marks bytes of a string that need no thought.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

func (p *parser) str() error {
	p.i++
	for {
		for p.i < len(p.b) && plain[p.b[p.i]] {
			p.i++
		}
		if p.at('"') {
			return nil
		}
		if !p.at('\\') {
			return p.want("more of a string")
		}
		if p.i == len(p.b) || bytes.IndexByte([]byte(`"\/bfnrtu`), p.b[p.i]) < 0 {
			return p.want("an escape")
		}
		p.i++
		if p.b[p.i-1] != 'u' {
			continue
		}
		for range 4 {
			if p.i == len(p.b) || nibble(p.b[p.i]) < 0 {
				return p.want("a hexadecimal digit")
			}
			p.i++
		}
	}
}

func (p *parser) digits() bool {
	i := p.i
	for p.i < len(p.b) && '0' <= p.b[p.i] && p.b[p.i] <= '9' {
		p.i++
	}
	return p.i > i
}

func (p *parser) number() error {
	p.at('-')
	if !p.at('0') && !p.digits() {
		return p.want("a digit")
	}
	if p.at('.') && !p.digits() {
		return p.want("a digit")
	}
	if p.at('e') || p.at('E') {
		if !p.at('+') {
			p.at('-')
		}
		if !p.digits() {
			return p.want("a digit")
		}
	}
	return nil
}

func nibble(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}

func hex4(b []byte) rune { return nibble(b[0])<<12 | nibble(b[1])<<8 | nibble(b[2])<<4 | nibble(b[3]) }

// escaped maps the letter after a backslash to what it stands for.
var escaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unquote appends to dst what a string stands for that [parser.str] has passed.
// It reports false if that is no text: bad UTF-8, or half of a surrogate pair.
// Without escapes the result aliases raw.
func unquote(dst, raw []byte) ([]byte, bool) {
	raw = raw[1 : len(raw)-1]
	if !utf8.Valid(raw) {
		return nil, false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, true
	}
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), true
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i+1:]
		if raw[0] != 'u' {
			dst = append(dst, escaped[raw[0]])
			raw = raw[1:]
			continue
		}
		r := hex4(raw[1:])
		raw = raw[5:]
		if utf16.IsSurrogate(r) {
			if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
				return nil, false
			}
			if r = utf16.DecodeRune(r, hex4(raw[2:])); r == utf8.RuneError {
				return nil, false
			}
			raw = raw[6:]
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// parseInts appends the whole numbers of a list that [parser.array] has passed.
// bad is the index of the first entry that is none or is outside [0,limit), and
// raw that entry; bad is −1 if there is none.
func parseInts[E int32 | uint8](dst []E, list []byte, limit int64) (ints []E, bad int, raw []byte) {
	p := parser{b: list, i: 1}
	if p.space(); p.at(']') {
		return dst, -1, nil
	}
	for n := 0; ; n++ {
		p.space()
		i := p.i
		v := int64(0)
		for p.i < len(list) && '0' <= list[p.i] && list[p.i] <= '9' && v < limit {
			v = v*10 + int64(list[p.i]-'0')
			p.i++
		}
		digits := p.i > i
		if p.space(); !digits || v >= limit || list[p.i] != ',' && list[p.i] != ']' {
			p.i = i
			p.value(0) // it is valid: the array has been passed
			return dst, n, list[i:p.i]
		}
		dst = append(dst, E(v))
		if list[p.i] == ']' {
			return dst, -1, nil
		}
		p.i++
	}
}
