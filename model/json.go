// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pleach/internal/strictjson"
)

// object is a JSON object whose keys are taken one by one; what remains at the
// end was not understood. Errors are collected, so that a user sees all of them.
type object struct {
	path   string // of the object, with a dot at the end, empty at the top
	src    string // the whole text
	fields map[string]strictjson.Value
	errs   *[]error
}

func parseObject(src string) (object, error) {
	o := object{src: src, errs: new([]error)}
	v, err := strictjson.ParseFile("config.json", src)
	if err != nil {
		return o, fmt.Errorf("model: %w", err)
	}
	if v.Kind != strictjson.Object {
		return o, fmt.Errorf("model: config.json: got %v, want an object", v)
	}
	o.fields = maps.Collect(v.Fields())
	return o, nil
}

// fail notes an error at a key.
func (o object) fail(key, format string, args ...any) {
	err := fmt.Errorf("model: config.json: key %q: "+format, append([]any{o.path + key}, args...)...)
	*o.errs = append(*o.errs, err)
}

// want notes that a value is not what is understood.
func (o object) want(key string, got strictjson.Value, format string, args ...any) {
	o.fail(key, "got %s, want %s", o.show(got), fmt.Sprintf(format, args...))
}

// show is a value on one line of bounded length.
func (o object) show(value strictjson.Value) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(value.Raw(o.src))) != nil {
		return "?"
	}
	if r := []rune(b.String()); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return b.String()
}

// take removes a key and returns its value; ok is false if it is absent or null,
// which means the same to transformers.
func (o object) take(key string) (value strictjson.Value, ok bool) {
	ok = o.has(key)
	value = o.fields[key]
	delete(o.fields, key)
	return value, ok
}

// has reports whether a key is there and not null.
func (o object) has(key string) bool {
	value, ok := o.fields[key]
	return ok && value.Kind != strictjson.Null
}

// rest is the keys that were not taken, sorted.
func (o object) rest() []string { return slices.Sorted(maps.Keys(o.fields)) }

// integer takes a whole number of 1 to limit, written as such. absent is its
// default, 0 if it must be there. It is 0 after an error.
func (o object) integer(key string, limit, absent int) int {
	value, ok := o.take(key)
	if !ok {
		if absent == 0 {
			o.fail(key, "missing, want an integer")
		}
		return absent
	}
	n, ok := value.Int64()
	if !ok || n < 1 || n > int64(limit) {
		o.want(key, value, "an integer from 1 to %d", limit)
		return 0
	}
	return int(n)
}

// real takes a number that good accepts, and says what it wants otherwise.
// absent is its default, NaN if it must be there. It is 0 after an error.
func (o object) real(key string, absent float64, wanted string, good func(float64) bool) float64 {
	value, ok := o.take(key)
	if !ok {
		if absent != absent {
			o.fail(key, "missing, want %s", wanted)
			return 0
		}
		return absent
	}
	x, ok := value.Float()
	if !ok || !good(x) {
		o.want(key, value, "%s", wanted)
		return 0
	}
	return x
}

// flag takes true or false; absent means false.
func (o object) flag(key string) bool {
	value, ok := o.take(key)
	if ok && value.Kind != strictjson.True && value.Kind != strictjson.False {
		o.want(key, value, "true or false")
	}
	return value.Kind == strictjson.True
}

// word takes a string, and says what it wants if it is none of those given. It
// is the first of them if the key is absent, and empty after an error.
func (o object) word(key string, among ...string) string {
	value, ok := o.take(key)
	if !ok {
		return among[0]
	}
	if !isWord(value, among) {
		o.want(key, value, "%s", choice(among))
		return ""
	}
	return value.Text
}

func isWord(value strictjson.Value, among []string) bool {
	return value.Kind == strictjson.String && slices.Contains(among, value.Text)
}

func choice(among []string) string {
	var quoted []string
	for _, s := range among {
		quoted = append(quoted, strconv.Quote(s))
	}
	return strings.Join(quoted, " or ")
}

// words takes a list of strings that are all among those given; absent means
// that they are.
func (o object) words(key string, among ...string) {
	value, ok := o.take(key)
	bad := func(v strictjson.Value) bool { return !isWord(v, among) }
	if ok && (value.Kind != strictjson.Array || slices.ContainsFunc(value.Kids, bad)) {
		o.want(key, value, "a list of %s", choice(among))
	}
}

// object takes an object. It has nil fields if it is absent, empty, or an error
// was noted.
func (o object) object(key string) object {
	in := object{path: o.path + key + ".", src: o.src, errs: o.errs}
	value, ok := o.take(key)
	if ok && value.Kind != strictjson.Object {
		o.want(key, value, "an object {…} or null")
	}
	if value.Kind == strictjson.Object && len(value.Kids) > 0 {
		in.fields = maps.Collect(value.Fields())
	}
	return in
}

// empty reports whether a value asks for nothing.
func empty(value strictjson.Value) bool {
	switch value.Kind {
	case strictjson.Null, strictjson.False:
		return true
	case strictjson.String:
		return value.Text == ""
	case strictjson.Array, strictjson.Object:
		return len(value.Kids) == 0
	}
	x, ok := value.Float()
	return ok && x == 0
}

// encode writes an object with its keys in alphabetical order.
func encode(fields map[string]any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(fields); err != nil {
		panic("model: config.json: " + err.Error()) // values are ours, or were read as valid JSON
	}
	return b.Bytes()
}
