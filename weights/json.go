// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"pleach/blob"
	"pleach/internal/fault"
)

// jsonLimit is the largest JSON file that is read: a tokenizer.json with a
// vocabulary of 256 k entries takes some 30 MB.
const jsonLimit = 256 << 20

// JSON reads a JSON file that holds an object, strictly: a key that occurs
// twice, bytes after the object, invalid UTF-8 and the NaN and Infinity that
// Python writes are errors of kind fault.Data with file and line. Numbers are
// json.Number, so that each caller decides what they may be and none is rounded.
func JSON(path string) (map[string]any, error) {
	return ReadJSON(blob.Local(filepath.Dir(path)), filepath.Base(path))
}

// ReadJSON is [JSON] for a file in a store.
func ReadJSON(s blob.Store, name string) (map[string]any, error) {
	b, err := blob.ReadFile(s, name, jsonLimit)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	return ParseJSON(s.Path(name), b)
}

// ParseJSON is [JSON] for bytes; file is only for messages.
func ParseJSON(file string, b []byte) (map[string]any, error) {
	w, err := walk(b)
	if err == nil {
		var v any
		if v, err = w.value(); err == nil {
			if m, ok := v.(map[string]any); ok {
				return m, nil
			}
			err = errors.New("want an object {…}")
		}
	}
	var at *atOffset
	if errors.As(err, &at) {
		line := 1 + bytes.Count(b[:min(at.off, int64(len(b)))], []byte{'\n'})
		return nil, fault.Dataf("weights: %s:%d: %w", file, line, at.err)
	}
	return nil, fault.Dataf("weights: %s: %w", file, err)
}

// atOffset is an error at a byte of a JSON text.
type atOffset struct {
	off int64
	err error
}

func (e *atOffset) Error() string { return fmt.Sprintf("at byte %d: %v", e.off, e.err) }
func (e *atOffset) Unwrap() error { return e.err }

// walker goes through a JSON text whose syntax has been checked. It exists
// because encoding/json keeps the last of equal keys, ignores the case of field
// names, and repairs invalid UTF-8, all without a word.
type walker struct{ d *json.Decoder }

func walk(b []byte) (*walker, error) {
	if i := invalidUTF8(b); i >= 0 {
		return nil, &atOffset{int64(i), errors.New("not valid UTF-8")}
	}
	if !json.Valid(b) {
		var r json.RawMessage
		err := json.Unmarshal(b, &r)
		var se *json.SyntaxError
		if errors.As(err, &se) {
			return nil, &atOffset{se.Offset, fmt.Errorf("not valid JSON: %w", err)}
		}
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return &walker{d}, nil
}

func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func (w *walker) fail(format string, args ...any) error {
	return &atOffset{w.d.InputOffset(), fmt.Errorf(format, args...)}
}

// object calls f at each value of an object, which f must consume.
func (w *walker) object(f func(key string) error) error {
	t, err := w.d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return w.fail("got %v, want an object {…}", describe(t))
	}
	return w.members(f)
}

func (w *walker) members(f func(key string) error) error {
	seen := map[string]bool{}
	for w.d.More() {
		t, err := w.d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if seen[key] {
			return w.fail("key %q occurs twice", key)
		}
		seen[key] = true
		if err := f(key); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}

// value reads any value.
func (w *walker) value() (any, error) {
	t, err := w.d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		m := map[string]any{}
		err := w.members(func(key string) (err error) {
			m[key], err = w.value()
			return err
		})
		return m, err
	case json.Delim('['):
		a := []any{}
		for w.d.More() {
			v, err := w.value()
			if err != nil {
				return nil, err
			}
			a = append(a, v)
		}
		_, err := w.d.Token()
		return a, err
	}
	return t, nil
}

// text reads a string.
func (w *walker) text() (string, error) {
	t, err := w.d.Token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", w.fail("got %v, want a string", describe(t))
	}
	return s, nil
}

// integers reads a list of at most limit integers.
func (w *walker) integers(limit int) ([]int64, error) {
	t, err := w.d.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('[') {
		return nil, w.fail("got %v, want a list of integers", describe(t))
	}
	a := []int64{}
	for w.d.More() {
		t, err := w.d.Token()
		if err != nil {
			return nil, err
		}
		n, ok := t.(json.Number)
		if !ok {
			return nil, w.fail("got %v, want an integer", describe(t))
		}
		i, err := n.Int64()
		if err != nil {
			return nil, w.fail("got %s, want an integer below 2^63", n)
		}
		if len(a) == limit {
			return nil, w.fail("more than %d integers", limit)
		}
		a = append(a, i)
	}
	_, err = w.d.Token()
	return a, err
}

func describe(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", t)
	}
	return fmt.Sprint(t)
}
