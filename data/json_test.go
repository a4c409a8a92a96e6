// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLine compares the parser with encoding/json: they agree on what is JSON,
// on keys, and on texts, but where encoding/json would replace what is no text.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"text":"a\u00e9\ud83d\ude00\n\/\"","n":-1.5e+3,"l":[1,[],{"x":null}],"t":true}`,
		`{"text":"\ud83d"}`, `{"text":"\ude00\ud83d"}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`,
		`{"a" :1 , "b":2 }`, `{"a":1,}`, `{,}`, `{"a":nul}`, `{"a":"\x"}`, `{"a":"\u12"}`, "{\"a\":\"\x01\"}",
		"{\"a\":\"\xff\"}", `{"\u0061":1,"a":2}`, `[1,2,3]`, ` `, `{"a":[1,2`, `{"a":"`, `{"a":"\`,
		strings.Repeat(`{"a":`, 100), strings.Repeat("[", 100), `{"a":0,"b":-0,"c":0.0}`, `{}{}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		keys, texts := map[string]bool{}, map[string]string{}
		err := parseObject(line, func(key string, raw []byte) {
			keys[key] = true
			delete(texts, key)
			if raw[0] == '"' {
				if s, ok := unquote(nil, raw); ok {
					texts[key] = string(s)
				}
			}
			if raw[0] == '[' {
				compareInts(t, raw)
			}
		})
		// encoding/json takes null for an object, and nests deeper.
		deep := bytes.Count(line, []byte("[")) + bytes.Count(line, []byte("{"))
		isObject := bytes.HasPrefix(bytes.TrimLeft(line, " \t\r\n"), []byte("{"))
		if want := json.Valid(line) && isObject; want != (err == nil) && deep < maxDepth {
			t.Fatalf("%q: got %v, encoding/json says valid %v", line, err, want)
		}
		if err != nil || !utf8.Valid(line) {
			return
		}
		var theirs map[string]any
		if err := json.Unmarshal(line, &theirs); err != nil {
			return // a number out of range
		}
		for key, v := range theirs {
			if !keys[key] && !strings.ContainsRune(key, utf8.RuneError) {
				t.Fatalf("%q: no key %q", line, key)
			}
			s, ok := v.(string)
			if got, has := texts[key]; ok && has && got != s {
				t.Fatalf("%q: key %q: got %q, want %q", line, key, got, s)
			} else if ok && !has && keys[key] && !strings.ContainsRune(s, utf8.RuneError) {
				t.Fatalf("%q: key %q: refused a text", line, key)
			}
		}
	})
}

func compareInts(t *testing.T, raw []byte) {
	t.Helper()
	var want []uint8
	got, bad, entry := parseInts[uint8](nil, raw, 100)
	var all []json.Number
	if err := json.Unmarshal(raw, &all); err != nil || bytes.ContainsAny(raw, "\"n") {
		if bad < 0 && len(got) > 0 {
			t.Fatalf("%q: got %v, encoding/json says %v", raw, got, err)
		}
		return
	}
	for i, n := range all {
		s := n.String()
		v, err := n.Int64()
		if err != nil || v < 0 || v >= 100 || s[0] == '-' {
			if bad != i || string(entry) != s {
				t.Fatalf("%q: got entry %d bad: %q, want %d: %q", raw, bad, entry, i, s)
			}
			return
		}
		want = append(want, uint8(v))
	}
	if bad >= 0 || !bytes.Equal(got, want) {
		t.Fatalf("%q: got %v and entry %d bad, want %v", raw, got, bad, want)
	}
}

// FuzzEachLine compares the search for lines with strings.SplitAfter, over any
// cut of a file into ranges.
func FuzzEachLine(f *testing.F) {
	f.Add("a\nb\n\n  \nccc", 2, 5)
	f.Add("\n", 0, 1)
	f.Add("one line", 3, 4)
	f.Add("a\r\n \r\nb", 1, 1)
	f.Fuzz(func(t *testing.T, text string, a, b int) {
		size := len(text)
		if a < 0 || b < a || b > size {
			return
		}
		var got []string
		count := 0
		for _, r := range [][2]int{{0, a}, {a, b}, {b, size}} {
			if r[0] == r[1] {
				continue // no range is empty
			}
			first := 1 + strings.Count(text[:max(0, r[0]-1)], "\n")
			if r[0] > 0 {
				first++
			}
			err := eachLine(strings.NewReader(text), int64(size), int64(r[0]), int64(r[1]),
				func(off, n int64, nth int) {
					if off < int64(r[0]) || off >= int64(r[1]) {
						t.Fatalf("range %v: got a line at %d", r, off)
					}
					if want := 1 + strings.Count(text[:off], "\n"); first+nth != want {
						t.Fatalf("range %v: line %d at %d, want %d", r, first+nth, off, want)
					}
					x := lineIndex{}
					if num, err := x.number(strings.NewReader(text), off); err != nil || int(num) != first+nth {
						t.Fatalf("line number at %d: got %d, %v, want %d", off, num, err, first+nth)
					}
					got = append(got, text[off:off+n])
					count++
				})
			if err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		for line := range strings.SplitAfterSeq(text, "\n") {
			if line = strings.TrimSuffix(line, "\n"); strings.Trim(line, " \t\r") != "" {
				want = append(want, line)
			}
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("%q cut at %d and %d: got %q, want %q", text, a, b, got, want)
		}
	})
}
