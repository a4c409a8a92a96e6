// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
)

// parse reads a line of JSONL.
func (s *source) parse(r ref, line []byte, c *scratch) (Document, reason, error) {
	v, err := s.values(line)
	if err != nil {
		off := 0
		if e := (*syntaxError)(nil); errors.As(err, &e) {
			off = e.off
		}
		return Document{}, none, s.bad(r, int64(off), "%w", err)
	}
	if string(v.mask) == "null" {
		v.mask = nil
	}
	d := Document{ID: s.id(r, v.id)}
	if v.text == nil {
		return d, none, s.bad(r, 0, "no field %q: the line has %s", s.Field, strings.Join(v.keys, ", "))
	}
	if v.several {
		return s.lines(r, d, v, c)
	}
	switch v.text[0] {
	case '"':
		if v.mask != nil {
			return d, none, s.bad(r, 0, "field %q masks field %q, which is text: want a list of ids",
				s.Mask, s.Field)
		}
		t, ok := unquote(c.text[:0], v.text)
		if !ok {
			return d, notUTF8, nil
		}
		if d.Text = t; len(t) > 0 && &t[0] != &v.text[1] {
			c.text = t
		}
		return d, textOrEmpty(t), nil
	case '[':
		return s.ids(r, d, v, c)
	case 'n':
		return d, empty, nil
	}
	return d, none, s.bad(r, 0, "field %q: got %.20s, want a text or a list of ids", s.Field, v.text)
}

// values are the fields of a line that matter.
type values struct {
	text, id, mask []byte // nil: absent
	several        bool   // text is the first of several
	rest           [][]byte
	keys           []string
}

func (s *source) values(line []byte) (values, error) {
	var v values
	if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("[")) {
		text, err := parseValue(line)
		v.text = text
		return v, err
	}
	var twice string
	err := parseObject(line, func(key string, raw []byte) {
		for _, want := range []struct {
			name string
			dst  *[]byte
		}{{s.Field, &v.text}, {s.ID, &v.id}, {s.Mask, &v.mask}} {
			if want.name == key && key != "" {
				if *want.dst != nil {
					twice = key
				}
				*want.dst = raw
			}
		}
		if len(v.keys) < 16 {
			v.keys = append(v.keys, key)
		}
	})
	if err == nil && twice != "" {
		err = errors.New("field " + strconv.Quote(twice) + " twice")
	}
	if err == nil {
		s.nested(line, &v)
	}
	return v, err
}

// nested finds fields by paths with dots that are no keys of the line.
func (s *source) nested(line []byte, v *values) {
	if v.text == nil && strings.Contains(s.Field, ".") {
		none := false
		if all := walkPath(nil, line, s.Field, &none); len(all) > 0 {
			v.text, v.rest, v.several = all[0], all[1:], len(all) > 1
		} else if none {
			v.text = []byte("null")
		}
	}
	for _, f := range []struct {
		path string
		to   *[]byte
	}{{s.ID, &v.id}, {s.Mask, &v.mask}} {
		if *f.to == nil && strings.Contains(f.path, ".") {
			if all := walkPath(nil, line, f.path, new(bool)); len(all) == 1 {
				*f.to = all[0]
			}
		}
	}
}

// walkPath appends the values at a path of a value that is known to be JSON. Lists
// on the way have no name of their own: each of their values is walked into; none
// is set where one is empty.
func walkPath(all [][]byte, raw []byte, path string, none *bool) [][]byte {
	switch raw = bytes.TrimLeft(raw, " \t\r\n"); {
	case path == "":
		return append(all, raw)
	case raw[0] == '[':
		p := parser{b: raw}
		*none = true
		p.elements(0, func(raw []byte) {
			*none = false
			all = walkPath(all, raw, path, none)
		})
	case raw[0] == '{':
		name, rest, _ := strings.Cut(path, ".")
		parseObject(raw, func(key string, raw []byte) {
			if key == name {
				all = walkPath(all, raw, rest, none)
			}
		})
	}
	return all
}

// lines reads a document that is several texts: a line each.
func (s *source) lines(r ref, d Document, v values, c *scratch) (Document, reason, error) {
	text, some := c.text[:0], false
	for i, raw := range append([][]byte{v.text}, v.rest...) {
		if raw[0] == 'n' {
			continue
		}
		if raw[0] != '"' {
			return d, none, s.bad(r, 0, "field %q: value %d is %.20s, want a text", s.Field, i, raw)
		}
		t, ok := unquote(nil, raw)
		if !ok {
			return d, notUTF8, nil
		}
		if some {
			text = append(text, '\n')
		}
		text, some = append(text, t...), true
	}
	c.text, d.Text = text, text
	return d, textOrEmpty(text), nil
}

// ids reads a document that came as ids.
func (s *source) ids(r ref, d Document, v values, c *scratch) (Document, reason, error) {
	limit := s.limit()
	ids, i, raw := parseInts(c.ids[:0], v.text, limit)
	if c.ids = ids; i >= 0 {
		return d, none, s.bad(r, 0, "field %q: id %d is %.24s, want a whole number from 0 to %d",
			s.Field, i, raw, limit-1)
	}
	d.IDs = ids
	if v.mask != nil {
		if v.mask[0] != '[' {
			return d, none, s.bad(r, 0, "field %q: got %.20s, want a list of 0 and 1", s.Mask, v.mask)
		}
		m, i, raw := parseInts(c.mask[:0], v.mask, 2)
		if c.mask = m; i >= 0 {
			return d, none, s.bad(r, 0, "field %q: entry %d is %.20s, want 0 or 1", s.Mask, i, raw)
		}
		if d.Mask = m; len(m) != len(ids) {
			return d, none, s.asMany(r, d)
		}
	}
	if len(ids) == 0 {
		return d, empty, nil
	}
	return d, none, nil
}

// id is the name of a document: the id field if there is one, else its place.
func (s *source) id(r ref, raw []byte) string {
	if len(raw) > 0 && raw[0] == '"' {
		if name, ok := unquote(nil, raw); ok && len(name) > 0 {
			return string(name)
		}
	} else if len(raw) > 0 && raw[0] != 'n' {
		return string(raw)
	}
	return s.where(r)
}

// limit is one more than the largest id that a document may have.
func (s *source) limit() int64 {
	if s.vocabulary > 0 {
		return int64(s.vocabulary)
	}
	return math.MaxInt32 + 1
}

// asMany refuses a mask that has not an entry for each id.
func (s *source) asMany(r ref, d Document) error {
	if len(d.Mask) == len(d.IDs) {
		return nil
	}
	return s.bad(r, 0, "field %q has %d entries, field %q %d: want as many",
		s.Mask, len(d.Mask), s.Field, len(d.IDs))
}
