// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

func TestEditList(t *testing.T) {
	for _, c := range []struct {
		name, src string
		keep      string // a bit per index
		add       []string
		want      string
	}{
		{"empty", `[]`, "", []string{"1", "2"}, `[1, 2]`},
		{"empty, indented", "{\n}", "", []string{`"a": 1`}, "{\"a\": 1\n}"},
		{"all stay", "[1,\n 2]", "11", nil, "[1,\n 2]"},
		{"the first goes", "[\n  1,\n  2\n]", "01", nil, "[\n  2\n]"},
		{"the last goes", "[\n  1,\n  2\n]", "10", nil, "[\n  1\n]"},
		{"the middle goes", "[1, 2,\t3]", "101", nil, "[1,\t3]"},
		{"all go", "[\n  1,\n  2\n]", "00", nil, "[\n  \n]"},
		{"all go, one comes", "[\n  1,\n  2\n]", "00", []string{"3"}, "[\n  3\n]"},
		{"the first ones go", "[1, 2, 3, 4]", "0010", []string{"5"}, "[3, 5]"},
		{"an object", "{\n\t\"a\": [1],\n\t\"b\": \"\\u0041\"\n}", "01", []string{`"c": {}`}, "{\n\t\"b\": \"\\u0041\",\n\t\"c\": {}\n}"},
		{"one element", "[\n  1\n]", "1", []string{"2"}, "[\n  1,\n  2\n]"},
	} {
		v, err := Parse(c.src)
		if err != nil {
			t.Fatal(err)
		}
		e := Edit(c.src)
		e.List(v, func(i int) bool { return c.keep[i] == '1' }, c.add...)
		if got := e.Text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if _, err := Parse(e.Text()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestEditNested(t *testing.T) {
	const src = `{ "a": {"x": 1.50, "y": [1, 2, 3]}, "b": "\u00e9" , "c": null}`
	root, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := root.Lookup("a")
	y, _ := a.Lookup("y")
	b, _ := root.Lookup("b")
	e := Edit(src)
	e.List(root, nil, `"d": 4`)
	e.List(y, func(i int) bool { return i != 1 })
	e.Replace(b, `"z"`)
	want := `{ "a": {"x": 1.50, "y": [1, 3]}, "b": "z" , "c": null, "d": 4}`
	if got := e.Text(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzEdit takes elements out of any list and compares with the same done to the
// values that encoding/json reads.
func FuzzEdit(f *testing.F) {
	f.Add(`[1, "a\"]", {"b": []} ,null]`, uint64(5))
	f.Add("[\n]", uint64(0))
	f.Fuzz(func(t *testing.T, src string, bits uint64) {
		v, err := Parse(src)
		if err != nil || v.Kind != Array || len(v.Kids) > 64 {
			return
		}
		var was, want, got []any
		if json.Unmarshal([]byte(src), &was) != nil {
			return
		}
		for i, x := range was {
			if bits>>i&1 == 1 {
				want = append(want, x)
			}
		}
		want = append(want, "new")
		e := Edit(src)
		e.List(v, func(i int) bool { return bits>>i&1 == 1 }, `"new"`)
		if err := json.Unmarshal([]byte(e.Text()), &got); err != nil {
			t.Fatalf("%q became %q: %v", src, e.Text(), err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %v, want %v", src, got, want)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("a\"\\\n\t\x00\x7f é 😀 \u2028")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(Quote(s))
		if err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(s) && v.Text != s {
			t.Fatalf("got %q, want %q", v.Text, s)
		}
	})
}
