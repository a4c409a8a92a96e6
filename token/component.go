// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"

	"pleach/internal/strictjson"
)

// object reads one JSON object field by field and notices what nobody asked
// for: a field that is not understood could change ids, so it is an error.
type object struct {
	path string // where it stands, for messages: "decoder.decoders[2]"
	kids []strictjson.Value
	used []bool
	err  *error // the first fault of the whole file
}

func newObject(n strictjson.Value, path string, err *error) *object {
	o := &object{path: path, err: err}
	if n.Kind != strictjson.Object {
		o.fail("got %s, want an object", n)
		return o
	}
	o.kids, o.used = n.Kids, make([]bool, len(n.Kids)/2)
	return o
}

func (o *object) fail(format string, args ...any) {
	if *o.err == nil {
		*o.err = fmt.Errorf("%s: %s", o.path, fmt.Sprintf(format, args...))
	}
}

// field is the value of a key; ok is false for a missing key and for null.
func (o *object) field(key string) (v strictjson.Value, ok bool) {
	for i := range o.used {
		if o.kids[2*i].Text == key {
			o.used[i] = true
			v = o.kids[2*i+1]
			return v, v.Kind != strictjson.Null
		}
	}
	return strictjson.Value{}, false
}

// want is a field of the given kind; one that is missing is reported unless
// optional.
func (o *object) want(key string, kind strictjson.Kind, optional bool) (v strictjson.Value, ok bool) {
	v, ok = o.field(key)
	switch {
	case !ok:
		if !optional {
			o.fail("%s is missing", key)
		}
	case v.Kind != kind && !(kind == strictjson.True && v.Kind == strictjson.False):
		o.fail("%s: got %s, want %s", key, v, kind)
		return strictjson.Value{}, false
	}
	return v, ok
}

func (o *object) str(key string) string {
	v, _ := o.want(key, strictjson.String, false)
	return v.Text
}

func (o *object) optStr(key, def string) string {
	if v, ok := o.want(key, strictjson.String, true); ok {
		return v.Text
	}
	return def
}

func (o *object) bool(key string) bool {
	v, _ := o.want(key, strictjson.True, false)
	return v.Kind == strictjson.True
}

func (o *object) optBool(key string, def bool) bool {
	if v, ok := o.want(key, strictjson.True, true); ok {
		return v.Kind == strictjson.True
	}
	return def
}

func (o *object) int(key string) int32 {
	v, ok := o.want(key, strictjson.Number, false)
	if !ok {
		return 0
	}
	return o.number(key, v)
}

func (o *object) number(key string, v strictjson.Value) int32 {
	id, ok := idOf(v)
	if !ok {
		o.fail("%s: got %s, want a whole number from 0 to %d", key, v.Text, maxID-1)
	}
	return id
}

func idOf(v strictjson.Value) (id int32, ok bool) {
	i, ok := v.Int64()
	if !ok || i < 0 || i >= maxID {
		return 0, false
	}
	return int32(i), true
}

func (o *object) list(key string) []strictjson.Value {
	v, _ := o.want(key, strictjson.Array, false)
	return v.Kids
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
		if v, ok := o.field(k); ok && !(v.Kind == strictjson.String && v.Text == "") {
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
			o.fail("unknown field %q", o.kids[2*i].Text)
		}
	}
}
