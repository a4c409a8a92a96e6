// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Edits is changes to a text: whatever they do not touch stays as it is written,
// unknown keys, their order, the spelling of numbers and the indentation. A value
// is changed once, and no other value inside it.
type Edits struct {
	src  string
	list []edit
}

// edit puts a text in the place of src[lo:hi].
type edit struct {
	lo, hi int
	text   string
}

// Edit begins changes to the text that was parsed.
func Edit(src string) *Edits { return &Edits{src: src} }

// Replace puts a text in the place of a value.
func (e *Edits) Replace(v Value, text string) {
	e.list = append(e.list, edit{int(v.At), e.end(v), text})
}

// List takes elements of an array, or keys of an object with their values, out and
// adds others behind the last. keep is asked for each index and may be nil, for all.
// What is added is written as the elements are to stand there, `"key": value` in an
// object.
func (e *Edits) List(v Value, keep func(i int) bool, add ...string) {
	step := 1
	if v.Kind == Object {
		step = 2
	}
	n := len(v.Kids) / step
	if n == 0 {
		at := int(v.At) + 1
		e.list = append(e.list, edit{at, at, strings.Join(add, ", ")})
		return
	}
	from := func(i int) int { return int(v.Kids[i*step].At) }
	to := func(i int) int { return e.end(v.Kids[i*step+step-1]) }

	first := 0 // that stays
	for keep != nil && first < n && !keep(first) {
		first++
	}
	switch {
	case first == n:
		e.list = append(e.list, edit{from(0), to(n - 1), ""})
	case first > 0:
		e.list = append(e.list, edit{from(0), from(first), ""})
	}
	for i := first + 1; i < n; i++ {
		if keep != nil && !keep(i) {
			e.list = append(e.list, edit{to(i - 1), to(i), ""})
		}
	}
	if len(add) == 0 {
		return
	}
	between := "," + e.src[int(v.At)+1:from(0)]
	if n > 1 {
		between = e.src[to(0):from(1)]
	}
	text := strings.Join(add, between)
	if first < n {
		text = between + text
	}
	e.list = append(e.list, edit{to(n - 1), to(n - 1), text})
}

// Text is the text with the changes.
func (e *Edits) Text() string {
	list := slices.Clone(e.list)
	slices.SortStableFunc(list, func(a, b edit) int { return a.lo - b.lo })
	var b strings.Builder
	at := 0
	for _, c := range list {
		b.WriteString(e.src[at:c.lo])
		b.WriteString(c.text)
		at = c.hi
	}
	b.WriteString(e.src[at:])
	return b.String()
}

func (e *Edits) end(v Value) int { return int(v.At) + len(v.Raw(e.src)) }

// Quote writes a JSON string. Characters stay as they are but for quotes,
// backslashes and control characters; bytes that are not UTF-8 become U+FFFD.
func Quote(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, "\\u%04x", r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}
