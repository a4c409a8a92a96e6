// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose keys are taken one by one; what remains at the
// end was not understood. Errors are collected, so that a user sees all of them.
type object struct {
	path   string // of the object, with a dot at the end, empty at the top
	fields map[string]json.RawMessage
	errs   *[]error
}

// parseObject reads an object strictly: encoding/json keeps the last of equal
// keys and repairs invalid UTF-8, both without a word.
func parseObject(text []byte) (object, error) {
	o := object{errs: new([]error)}
	if !utf8.Valid(text) {
		return o, errors.New("model: config.json: not valid UTF-8")
	}
	if err := json.Unmarshal(text, &o.fields); err != nil || o.fields == nil {
		var bad *json.SyntaxError
		if errors.As(err, &bad) {
			line := 1 + bytes.Count(text[:min(int(bad.Offset), len(text))], []byte{'\n'})
			return o, fmt.Errorf("model: config.json:%d: not valid JSON: %w", line, err)
		}
		return o, errors.New("model: config.json: want a JSON object {…}")
	}
	for _, key := range repeated(text) {
		o.fail(key, "occurs twice")
	}
	return o, nil
}

// repeated lists the paths of keys that an object in a valid JSON text has
// already had, ten at most.
func repeated(text []byte) []string {
	type level struct {
		seen map[string]bool // nil in a list
		key  string          // whose value comes next, empty where a key does
		open bool            // a key has been read and not its value
	}
	var out []string
	var in []level
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil || len(out) == 10 {
			return out
		}
		top := len(in) - 1
		if key, ok := t.(string); ok && top >= 0 && in[top].seen != nil && !in[top].open {
			if in[top].seen[key] {
				path := ""
				for _, l := range in[:top] {
					path += l.key + "."
				}
				out = append(out, path+key)
			}
			in[top].seen[key], in[top].key, in[top].open = true, key, true
			continue
		}
		switch t {
		case json.Delim('{'):
			in = append(in, level{seen: map[string]bool{}})
			continue
		case json.Delim('['):
			in = append(in, level{key: "[]"})
			continue
		case json.Delim('}'), json.Delim(']'):
			in = in[:top]
		}
		if top = len(in) - 1; top >= 0 {
			in[top].open = false
		}
	}
}

// fail notes an error at a key.
func (o object) fail(key, format string, args ...any) {
	err := fmt.Errorf("model: config.json: key %q: "+format, append([]any{o.path + key}, args...)...)
	*o.errs = append(*o.errs, err)
}

// want notes that a value is not what is understood.
func (o object) want(key string, got json.RawMessage, format string, args ...any) {
	o.fail(key, "got %s, want %s", show(got), fmt.Sprintf(format, args...))
}

// show is a value on one line of bounded length.
func show(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return "?"
	}
	if r := []rune(b.String()); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return b.String()
}

// take removes a key and returns its value, nil if it is absent or null, which
// means the same to transformers.
func (o object) take(key string) json.RawMessage {
	value := o.fields[key]
	delete(o.fields, key)
	if string(value) == "null" {
		return nil
	}
	return value
}

// has reports whether a key is there and not null.
func (o object) has(key string) bool {
	value, ok := o.fields[key]
	return ok && string(value) != "null"
}

// rest is the keys that were not taken, sorted.
func (o object) rest() []string {
	var keys []string
	for key := range o.fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// integer takes a whole number of 1 to limit, written as such. absent is its
// default, 0 if it must be there. It is 0 after an error.
func (o object) integer(key string, limit, absent int) int {
	value := o.take(key)
	if value == nil {
		if absent == 0 {
			o.fail(key, "missing, want an integer")
		}
		return absent
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 1 || n > int64(limit) {
		o.want(key, value, "an integer from 1 to %d", limit)
		return 0
	}
	return int(n)
}

// real takes a number that ok accepts, and says what it wants otherwise. absent
// is its default, NaN if it must be there. It is 0 after an error.
func (o object) real(key string, absent float64, wanted string, ok func(float64) bool) float64 {
	value := o.take(key)
	if value == nil {
		if absent != absent {
			o.fail(key, "missing, want %s", wanted)
			return 0
		}
		return absent
	}
	x, err := strconv.ParseFloat(string(value), 64)
	if err != nil || value[0] == '"' || !ok(x) {
		o.want(key, value, "%s", wanted)
		return 0
	}
	return x
}

// flag takes true or false; absent means false.
func (o object) flag(key string) bool {
	value := o.take(key)
	if value != nil && string(value) != "true" && string(value) != "false" {
		o.want(key, value, "true or false")
	}
	return string(value) == "true"
}

// word takes a string, and says what it wants if it is none of those given. It
// is the first of them if the key is absent, and empty after an error.
func (o object) word(key string, among ...string) string {
	value := o.take(key)
	if value == nil {
		return among[0]
	}
	var s string
	if json.Unmarshal(value, &s) != nil || !slices.Contains(among, s) {
		o.want(key, value, "%s", choice(among))
		return ""
	}
	return s
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
	value := o.take(key)
	if value == nil {
		return
	}
	var list []string
	bad := json.Unmarshal(value, &list) != nil
	for _, s := range list {
		bad = bad || !slices.Contains(among, s)
	}
	if bad {
		o.want(key, value, "a list of %s", choice(among))
	}
}

// object takes an object. It has nil fields if it is absent, empty, or an error
// was noted.
func (o object) object(key string) object {
	in := object{path: o.path + key + ".", errs: o.errs}
	value := o.take(key)
	if value != nil && json.Unmarshal(value, &in.fields) != nil {
		o.want(key, value, "an object {…} or null")
	}
	if len(in.fields) == 0 {
		in.fields = nil
	}
	return in
}

// empty reports whether a value asks for nothing.
func empty(value json.RawMessage) bool {
	switch show(value) {
	case "null", "false", `""`, "[]", "{}":
		return true
	}
	x, err := strconv.ParseFloat(string(value), 64)
	return err == nil && x == 0
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
