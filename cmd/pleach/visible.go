// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible is a text of somebody else's as it can be printed: what would act on a
// terminal, or hide, is shown instead. Control characters become their pictures
// (U+2400 and on) or \u and digits, as do marks that change the direction of
// writing; bytes that are not UTF-8 become \x and digits.
func visible(s string) string {
	if strings.IndexFunc(s, acts) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case !acts(r):
			b.WriteString(s[:n])
		case r < ' ':
			b.WriteRune('␀' + r)
		case r == 0x7f:
			b.WriteRune('␡')
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// acts reports whether a character does something rather than look like something.
func acts(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// inert is JSON without the control characters that JSON allows: DEL and U+0080 to
// U+009F, which some terminals obey. They only occur in strings, as \u escapes too.
func inert(json []byte) []byte {
	var b []byte
	for i, r := range string(json) {
		if !(0x7f <= r && r <= 0x9f) {
			if b != nil {
				b = utf8.AppendRune(b, r)
			}
			continue
		}
		if b == nil {
			b = append(make([]byte, 0, len(json)+64), json[:i]...)
		}
		b = fmt.Appendf(b, `\u%04x`, r)
	}
	if b == nil {
		return json
	}
	return b
}
