// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestValues(t *testing.T) {
	const src = ` {"n": 9007199254740993, "x": [1e-5, null, {"y": "\u00e9\ud83d\ude00\"\n"}],
		"b": [true, false], "f": 1.50, "é": {}, "": "a b"}`
	v, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for key, field := range v.Fields() {
		got = append(got, fmt.Sprintf("%s=%v@%d:%s", key, field, field.At, field.Raw(src)))
		if !strings.HasPrefix(src[field.At:], field.Raw(src)) {
			t.Errorf("%s: %q is not at %d", key, field.Raw(src), field.At)
		}
	}
	want := []string{
		`n=the number 9007199254740993@7:9007199254740993`,
		`x=an array@30:[1e-5, null, {"y": "\u00e9\ud83d\ude00\"\n"}]`,
		`b=an array@84:[true, false]`, `f=the number 1.50@104:1.50`, `é=an object@116:{}`,
		`=the string "a b"@124:"a b"`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	n, _ := v.Lookup("n")
	if i, ok := n.Int64(); i != 9007199254740993 || !ok {
		t.Errorf("n: got %d, %v", i, ok)
	}
	f, _ := v.Lookup("f")
	x, ok := f.Float()
	if _, whole := f.Int64(); x != 1.5 || !ok || whole {
		t.Errorf("f: got %v, %v, whole %v", x, ok, whole)
	}
	text, _ := v.Lookup("")
	if _, ok := text.Float(); ok {
		t.Error("a string is a number")
	}
	if _, ok := v.Lookup("a b"); ok {
		t.Error("a value was taken for a key")
	}
	list, _ := v.Lookup("x")
	y, _ := list.Kids[2].Lookup("y")
	if y.Text != "é😀\"\n" || y.Raw(src) != `"\u00e9\ud83d\ude00\"\n"` {
		t.Errorf("y: got %q, written %s", y.Text, y.Raw(src))
	}
	for range list.Fields() {
		t.Error("an array has fields")
	}
}

func TestRefused(t *testing.T) {
	var many strings.Builder
	for i := range 20 {
		fmt.Fprintf(&many, "%q:0,\n", fmt.Sprint(i))
	}
	for src, want := range map[string]string{
		"":                              "c:1: the text ends, want a value",
		" \n":                           "c:2: the text ends, want a value",
		"{} x":                          "c:1: text after the end of the document",
		"{}\n{}":                        "c:2: text after the end of the document",
		"{\n\"a\": NaN}":                "c:2: got 'N', want a value",
		"-":                             "c:1: got '-', want a value",
		"-Infinity":                     "c:1: got '-', want a value",
		"[1.]":                          "c:1: 1. is not a number of JSON",
		"{\"a\":010}":                   "c:1: 010 is not a number of JSON",
		"{\"a\":1,}":                    "c:1: got '}', want a key in quotes",
		"{\"a\" 1}":                     "c:1: got '1', want : after a key",
		"{\"a\":1":                      "c:1: the text ends, want , or }",
		"[1\n2]":                        "c:2: got '2', want , or ]",
		"nul":                           "c:1: got 'n', want null",
		"{\"a\":\"":                     "c:1: the text ends inside a string",
		"\"a\n\"":                       "c:1: control character in a string",
		"\"\\n\t\"":                     "c:1: control character in a string",
		`"\x"`:                          `c:1: unknown escape \x`,
		`"\`:                            "c:1: the text ends inside an escape",
		`"\u12g4"`:                      `c:1: want four hexadecimal digits after \u`,
		`{"a":"\ud800"}`:                "c:1: half of a surrogate pair",
		`"\ud800\u0041"`:                "c:1: half of a surrogate pair",
		"{\"a\":\"\xff\"}":              "c:1: not valid UTF-8",
		"[\"\\n\",\n\"\\n\ufffd\xff\"]": "c:2: not valid UTF-8",
		"\xff":                          "c:1: not valid UTF-8",
		"{\"a\":[{\"b\":1,\n\"b\":2}]}": "c:2: key \"b\" stands twice in one object",
		`{"a":1,"\u0061":2}`:            "c:1: key \"a\" stands twice in one object",
		"{" + many.String() + `"7":0}`:  "c:21: key \"7\" stands twice in one object",
		strings.Repeat("[", 20_000):     "c:1: values are nested deeper than 64 levels",
	} {
		if _, err := ParseFile("c", src); err == nil || err.Error() != want {
			t.Errorf("%.40q: got %v, want %s", src, err, want)
		}
	}
	for src, want := range map[string]int{
		`{"a":1, "a":2}`: 8, "[\"\\n\ufffd\xff\"]": 7, `"ab\ud800"`: 3, "[1 2]": 3, `["`: 2, "{} x": 3,
		`{"a":01}`: 5, "[1, 0x]": 5,
	} {
		var at *Error
		if _, err := Parse(src); !errors.As(err, &at) || at.At != want {
			t.Errorf("%q: got %v, want an error at byte %d", src, err, want)
		}
	}
}

// FuzzParse compares with encoding/json: what is accepted means the same there,
// and what is refused is refused there too, or for one of four reasons.
func FuzzParse(f *testing.F) {
	for _, src := range []string{
		`{"a":[1,-0.5e+3,"\u00e9\ud83d\ude00\/\b",true,false,null,{}],"b":""}`, ` [ ] `, "010", "1e", `"\ud800"`,
		`{"a":1,"a":2}`, "\"\xff\"", "[[1],[[2,{}]]", strings.Repeat("[", 70) + strings.Repeat("]", 70),
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		v, err := Parse(src)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) || at.At < 0 || at.At > len(src) {
				t.Errorf("no place in the text: %v", err)
			}
			known := !utf8.ValidString(src)
			for _, why := range []string{"twice", "nested", "surrogate"} {
				known = known || strings.Contains(err.Error(), why)
			}
			if json.Valid([]byte(src)) && !known {
				t.Errorf("refused: %v", err)
			}
			return
		}
		d := json.NewDecoder(strings.NewReader(src))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatalf("accepted, but: %v", err)
		}
		if got := plain(v); !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, want %#v", got, want)
		}
		if got := strings.Trim(src, " \t\r\n"); v.Raw(src) != got {
			t.Errorf("as written: got %q, want %q", v.Raw(src), got)
		}
	})
}

// plain is a value in the types of encoding/json.
func plain(v Value) any {
	switch v.Kind {
	case Object:
		m := map[string]any{}
		for key, field := range v.Fields() {
			m[key] = plain(field)
		}
		return m
	case Array:
		list := []any{}
		for _, k := range v.Kids {
			list = append(list, plain(k))
		}
		return list
	case String:
		return v.Text
	case Number:
		return json.Number(v.Text)
	case True, False:
		return v.Kind == True
	}
	return nil
}
