// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package yaml11

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// canon writes a value as testdata/golden.py does.
func canon(v *Value) string {
	switch v.Kind {
	case Bool:
		return fmt.Sprint(v.Bool)
	case Int:
		return "i:" + v.Int.String()
	case Float:
		if math.IsNaN(v.Float) {
			return "f:nan"
		}
		return fmt.Sprintf("f:%016x", math.Float64bits(v.Float))
	case String:
		return "s:" + v.Text
	case Date:
		return "d:" + v.Time.Format("2006-01-02")
	case Time:
		return "t:" + v.Time.UTC().Format("2006-01-02T15:04:05.000000")
	case Seq:
		var parts []string
		for _, x := range v.Items {
			parts = append(parts, canon(x))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Map:
		var parts []string
		for _, p := range v.Pairs {
			parts = append(parts, canon(p.Key)+": "+canon(p.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "null"
}

// differs are the texts that PyYAML reads and Parse does not, or the other way
// round, with the reason.
var differs = map[string]string{
	"- 2020-01-01\t01:02:03\n":  "the parser takes a tab for white space inside a scalar",
	"- !!int '--1'\n":           "PyYAML takes off one sign, and Python the other",
	"a: &x 1\nb: &x 2\nc: *x\n": "YAML allows an anchor to be given again",
}

func goldens(t testing.TB) [][2]*string {
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var list [][2]*string
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 400 {
		t.Fatalf("got %d goldens, want at least 400", len(list))
	}
	return list
}

func TestGolden(t *testing.T) {
	for _, g := range goldens(t) {
		text, want := *g[0], "an error"
		if g[1] != nil {
			want = *g[1]
		}
		got := "an error"
		doc, err := Parse([]byte(text))
		if err == nil {
			got = canon(doc.Root)
		}
		if reason := differs[text]; reason != "" {
			if got == want {
				t.Errorf("%q: got %s as PyYAML, but the list of differences has it: %s", text, got, reason)
			}
			continue
		}
		if got != want {
			t.Errorf("%q: got %s (%v), want %s", text, got, err, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	doc, err := Parse([]byte("a: 1\nb:\n  - x\n  - {k: v}\nc: &m {p: 1}\nd: *m\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := doc.Root.Lookup("b")
	k, _ := b.Items[1].Lookup("k")
	c, _ := doc.Root.Lookup("c")
	d, _ := doc.Root.Lookup("d")
	for _, tt := range []struct {
		v            *Value
		line, column int
	}{{doc.Root, 1, 1}, {b, 3, 3}, {b.Items[0], 3, 5}, {k, 4, 9}, {c, 5, 4}} {
		if tt.v.Line != tt.line || tt.v.Column != tt.column {
			t.Errorf("%v: got line %d column %d, want %d, %d", tt.v, tt.v.Line, tt.v.Column, tt.line, tt.column)
		}
	}
	if c != d {
		t.Error("an alias got a copy, want the value itself")
	}
	if _, ok := doc.Root.Lookup("e"); ok {
		t.Error("found a key that is not there")
	}
}

func TestWarnings(t *testing.T) {
	doc, err := Parse([]byte("a: 1\nb: {x: 1, x: 2}\na: 3\nm: &m {k: 1}\nn: {<<: *m, k: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range doc.Warnings {
		got = append(got, w.Error())
	}
	want := "line 2: the key x stands twice in this mapping; the last one counts|" +
		"line 3: the key a stands twice in this mapping; the last one counts"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrors(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x]\n"
	for i := range 60 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i)
	}
	merges := "a: &a {"
	for i := range 500 {
		merges += fmt.Sprintf("k%d: 1, ", i)
	}
	merges += "z: 1}\ns: &s [" + strings.Repeat("*a, ", 999) + "*a]\nb: {<<: *s, <<: *s, <<: *s}\n"
	for _, tt := range []struct{ text, want string }{
		{"a: !!int x\nb: !foo y\nc: =\n", "line 1: got \"x\", want a whole number of at most 4300 digits\n" +
			"line 2: got the tag !foo, want none, or one of !!null, !!bool, !!int, !!float, !!str, !!timestamp, " +
			"!!seq, !!map\nline 3: got =, which has a meaning of its own in YAML 1.1; write it in quotes"},
		{"a: 2020-02-30\n", "line 1: got \"2020-02-30\", which no calendar or clock shows; " +
			"write it in quotes if it is a string"},
		{"a: 1\nb: \xff\n", "line 2: this line is not UTF-8"},
		{"a: &x [*x]\n", "line 1: the value &x contains itself"},
		{strings.Repeat("[", 500) + strings.Repeat("]", 500), "got lists and mappings 201 deep, want at most 200"},
		{bomb, "got more than 1048576 values, aliases counted each time"},
		{merges, "got more than 1048576 values from merge keys"},
		{"a: " + strings.Repeat("1", 5000), "want a whole number of at most 4300 digits"},
		{"[a]: 1\n", "line 1: got a list as a key, want a single value"},
		{"a: [1\n", "not YAML: "},
		{strings.Repeat(" ", maxText+1), "got 8388609 bytes, want at most 8388608"},
	} {
		_, err := Parse([]byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

// FuzzParse: no text makes it panic, and what it reads it reads the same again.
func FuzzParse(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add([]byte(*g[0]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := Parse(text)
		b, again := Parse(text)
		if (err == nil) != (again == nil) {
			t.Fatalf("got %v, then %v", err, again)
		}
		if err == nil && a.Root.size < 10_000 && canon(a.Root) != canon(b.Root) {
			t.Fatalf("got %s, then %s", canon(a.Root), canon(b.Root))
		}
	})
}
