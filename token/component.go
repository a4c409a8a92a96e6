// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"strconv"
)

// object reads one JSON object field by field and notices what nobody asked
// for: a field that is not understood could change ids, so it is an error.
type object struct {
	path string // where it stands, for messages: "decoder.decoders[2]"
	kids []node
	used []bool
	err  *error // the first fault of the whole file
}

func newObject(n node, path string, err *error) *object {
	o := &object{path: path, err: err}
	if n.kind != '{' {
		o.fail("got %s, want an object", n.name())
		return o
	}
	o.kids, o.used = n.kids, make([]bool, len(n.kids)/2)
	return o
}

func (o *object) fail(format string, args ...any) {
	if *o.err == nil {
		*o.err = fmt.Errorf("%s: %s", o.path, fmt.Sprintf(format, args...))
	}
}

// field is the value of a key; ok is false for a missing key and for null.
func (o *object) field(key string) (v node, ok bool) {
	for i := range o.used {
		if o.kids[2*i].text == key {
			o.used[i] = true
			v = o.kids[2*i+1]
			return v, v.kind != 'n'
		}
	}
	return node{}, false
}

// want is a field of the given kind; one that is missing is reported unless
// optional.
func (o *object) want(key string, kind byte, optional bool) (v node, ok bool) {
	v, ok = o.field(key)
	switch {
	case !ok:
		if !optional {
			o.fail("%s is missing", key)
		}
	case v.kind != kind && !(kind == 't' && v.kind == 'f'):
		o.fail("%s: got %s, want %s", key, v.name(), node{kind: kind}.name())
		return node{}, false
	}
	return v, ok
}

func (o *object) str(key string) string {
	v, _ := o.want(key, '"', false)
	return v.text
}

func (o *object) optStr(key, def string) string {
	if v, ok := o.want(key, '"', true); ok {
		return v.text
	}
	return def
}

func (o *object) bool(key string) bool {
	v, _ := o.want(key, 't', false)
	return v.kind == 't'
}

func (o *object) optBool(key string, def bool) bool {
	if v, ok := o.want(key, 't', true); ok {
		return v.kind == 't'
	}
	return def
}

func (o *object) int(key string) int32 {
	v, ok := o.want(key, '0', false)
	if !ok {
		return 0
	}
	return o.number(key, v)
}

func (o *object) number(key string, v node) int32 {
	i, err := strconv.ParseInt(v.text, 10, 64)
	if v.kind != '0' || err != nil || i < 0 || i >= maxID {
		o.fail("%s: got %s, want a whole number from 0 to %d", key, v.text, maxID-1)
		return 0
	}
	return int32(i)
}

func (o *object) list(key string) []node {
	v, _ := o.want(key, '[', false)
	return v.kids
}

// oneOf is a string field with a fixed set of values.
func (o *object) oneOf(key, def string, values ...string) string {
	s := o.optStr(key, def)
	for _, v := range values {
		if s == v {
			return s
		}
	}
	o.fail("%s: got %q, want one of %q", key, s, values)
	return def
}

// refuse reports fields that are set to anything but null.
func (o *object) refuse(keys ...string) {
	for _, k := range keys {
		if v, ok := o.field(k); ok && !(v.kind == '"' && v.text == "") {
			o.fail("%s: not supported, want null", k)
		}
	}
}

// ignore marks fields that change no id and no text.
func (o *object) ignore(keys ...string) {
	for _, k := range keys {
		o.field(k)
	}
}

// done reports a field that nobody read.
func (o *object) done() {
	for i, used := range o.used {
		if !used {
			o.fail("unknown field %q", o.kids[2*i].text)
		}
	}
}

func (n node) name() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return fmt.Sprintf("the string %q", n.text)
	case '0':
		return "the number " + n.text
	case 't', 'f':
		return "true or false"
	}
	return "null"
}
