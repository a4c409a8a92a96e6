// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package strictjson reads the JSON of files that somebody else wrote: a
// tokenizer, a config, the header of a safetensors file. It refuses what other
// readers repair without a word, so that two of them cannot disagree about what
// a file says: text that is not UTF-8, half of a surrogate pair, a key that
// stands twice in one object, NaN. A number is kept as it is written. Every
// value knows its byte offset, and so does every error.
//
//	v, err := strictjson.ParseFile("config.json", text)
//	for key, field := range v.Fields() {
//		n, ok := field.Int64()
//		…
//	}
//
// It changes single values of a text ([Edits]); it writes no JSON of its own and
// fills no structs. The lines of documents are read by package data, which needs
// one field of each and no tree.
package strictjson

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Kind is what a value is: the first byte of such a value, 0 for a number. The
// zero Kind is that of no value.
type Kind byte

// The kinds. A boolean is one of two.
const (
	Object Kind = '{'
	Array  Kind = '['
	String Kind = '"'
	Number Kind = '0'
	True   Kind = 't'
	False  Kind = 'f'
	Null   Kind = 'n'
)

func (k Kind) String() string {
	switch k {
	case Object:
		return "an object"
	case Array:
		return "an array"
	case String:
		return "a string"
	case Number:
		return "a number"
	case True, False:
		return "true or false"
	}
	return "null"
}

// Value is a JSON value. Text shares the memory of the file, but for strings
// with escapes.
type Value struct {
	Kind Kind
	At   int32   // byte offset of its beginning
	Text string  // the contents of a string, anything else as written
	Kids []Value // an array's elements, or an object's keys and values in turn
}

// String says what a value is, for messages: `the number 7`.
func (v Value) String() string {
	switch v.Kind {
	case String:
		return fmt.Sprintf("the string %q", v.Text)
	case Number:
		return "the number " + v.Text
	case True, False:
		return v.Text
	}
	return v.Kind.String()
}

// Fields is the keys and values of an object in the order of the file.
func (v Value) Fields() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind != Object {
			return
		}
		for i := 0; i < len(v.Kids); i += 2 {
			if !yield(v.Kids[i].Text, v.Kids[i+1]) {
				return
			}
		}
	}
}

// Lookup is the value of a key of an object.
func (v Value) Lookup(key string) (field Value, ok bool) {
	for k, field := range v.Fields() {
		if k == key {
			return field, true
		}
	}
	return Value{}, false
}

// Int64 is a whole number, written as such: neither 1.0 nor 1e3.
func (v Value) Int64() (n int64, ok bool) {
	n, err := strconv.ParseInt(v.Text, 10, 64)
	return n, err == nil && v.Kind == Number
}

// Float is the float64 nearest to a number, which must be finite.
func (v Value) Float() (x float64, ok bool) {
	x, err := strconv.ParseFloat(v.Text, 64)
	return x, err == nil && v.Kind == Number
}

// Raw is a value as it is written in src, the text that was parsed.
func (v Value) Raw(src string) string {
	if v.Kind != String {
		return v.Text
	}
	p := parser{src: src, pos: int(v.At)}
	p.str()
	return src[v.At:p.pos]
}

// Errorf is an error about a value, an [*Error] with its place.
func (v Value) Errorf(format string, args ...any) error {
	return &Error{int(v.At), fmt.Errorf(format, args...)}
}

// Error is an error at a byte of a text.
type Error struct {
	At  int
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %v", e.At, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Line is the number of the line, from 1, of a byte of a text.
func Line(src string, at int) int { return 1 + strings.Count(src[:at], "\n") }
