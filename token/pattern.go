// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// pattern is a regular expression for which there is no scanner. The engine
// backtracks, so time and memory of one match are bounded.
type pattern struct {
	re *regexp2.Regexp
}

const (
	matchTimeout = 10 * time.Second
	matchStack   = 1 << 24
)

func compile(expr string) (*pattern, error) {
	expr, err := translate(expr)
	if err != nil {
		return nil, err
	}
	re, err := regexp2.Compile(expr, regexp2.OptionMaxBacktrackingStackSize(matchStack))
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = matchTimeout
	return &pattern{re}, nil
}

// split leaves the matches, empty ones too, and what lies between them in
// l.spans. After an error the rest of the text is one piece.
func (p *pattern) split(l *level, s []byte) error {
	l.runes, l.begin = l.runes[:0], l.begin[:0]
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		l.runes = append(l.runes, r)
		l.begin = append(l.begin, int32(i))
		i += n
	}
	l.begin = append(l.begin, int32(len(s)))
	done, last := 0, -1
	err := p.re.FindRunesMatches(l.runes, 0, func(v regexp2.MatchView) bool {
		at, n, _ := v.GroupRange(0)
		start, end := int(l.begin[at]), int(l.begin[at+n])
		if start == end && start == last {
			return true // Oniguruma takes no empty match right behind another one
		}
		if done < start {
			l.spans = append(l.spans, span{done, start, false})
		}
		l.spans = append(l.spans, span{start, end, true})
		done, last = end, end
		return true
	})
	if done < len(s) {
		l.spans = append(l.spans, span{done, len(s), false})
	}
	if err != nil {
		return fmt.Errorf("token: splitting by %q: %w", p.re.String(), err)
	}
	return nil
}

// translate writes a pattern of the reference's engine, Oniguruma, for the one
// used here. It lets through what means the same to both, rewrites line ends,
// possessive repeats and categories, and refuses the rest:
//
//   - ^ and $ are borders of lines;
//   - x?+ does not give back what it took: (?>x?);
//   - a category has the members of the reference's Unicode version.
func translate(expr string) (string, error) {
	t := translator{in: expr}
	for t.pos < len(t.in) && t.err == nil {
		t.item()
	}
	return string(t.out), t.err
}

type translator struct {
	in    string
	pos   int
	out   []byte
	atom  int   // where the last thing that can be repeated begins in out
	stack []int // the same for the groups that are open
	err   error
}

func (t *translator) refuse(what string) {
	if t.err == nil {
		t.err = fmt.Errorf("%s at byte %d of the pattern: not supported", what, t.pos)
	}
}

// rest reports whether s comes next.
func (t *translator) rest(s string) bool { return strings.HasPrefix(t.in[t.pos:], s) }

func (t *translator) emit(s string, skip int) {
	t.out = append(t.out, s...)
	t.pos += skip
}

func (t *translator) item() {
	c := t.in[t.pos]
	if c != '*' && c != '+' && c != '?' && c != '{' && c != ')' {
		t.atom = len(t.out)
	}
	switch c {
	case '\\':
		t.escape(false)
	case '[':
		t.class()
	case '(':
		t.group()
	case ')':
		if n := len(t.stack); n > 0 {
			t.atom = t.stack[n-1]
			t.stack = t.stack[:n-1]
		}
		t.emit(")", 1)
	case '^':
		t.emit(`(?:\A|(?<=\n)(?!\z))`, 1)
	case '$':
		t.emit(`(?=\n|\z)`, 1)
	case '*', '+', '?':
		t.repeat(c)
	case '{':
		end := strings.IndexByte(t.in[t.pos:], '}') + 1
		if end == 0 || strings.HasPrefix(t.in[t.pos+end:], "+") {
			t.refuse("{")
			return
		}
		t.emit(t.in[t.pos:t.pos+end], end)
	default:
		_, n := utf8.DecodeRuneInString(t.in[t.pos:])
		t.emit(t.in[t.pos:t.pos+n], n)
	}
}

// repeat copies a repeat, and the ? of a lazy one.
func (t *translator) repeat(c byte) {
	switch {
	case t.rest(string(c) + "+"):
		t.out = slices.Insert(t.out, t.atom, []byte("(?>")...)
		t.emit(string(c)+")", 2)
	case t.rest(string(c) + "?"):
		t.emit(string(c)+"?", 2)
	default:
		t.emit(string(c), 1)
	}
}

func (t *translator) group() {
	t.stack = append(t.stack, len(t.out))
	if !t.rest("(?") {
		t.emit("(", 1)
		return
	}
	for _, open := range []string{"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"} {
		if t.rest(open) {
			t.emit(open, len(open))
			return
		}
	}
	t.refuse("this kind of group")
}

// class copies a class of characters.
func (t *translator) class() {
	t.emit("[", 1)
	if t.rest("^") {
		t.emit("^", 1)
	}
	for first := true; t.err == nil; first = false {
		switch {
		case t.pos >= len(t.in) || first && t.rest("]"):
			t.refuse("a class that is empty or has no end")
		case t.rest("]"):
			t.emit("]", 1)
			return
		case t.rest("[") || t.rest("&&"):
			t.refuse("a class inside a class")
		case t.rest("\\"):
			t.escape(true)
		default:
			t.out = append(t.out, t.in[t.pos])
			t.pos++
		}
	}
}

// escape copies what begins with a backslash.
func (t *translator) escape(inside bool) {
	if t.pos+1 == len(t.in) {
		t.refuse("a backslash at the end")
		return
	}
	c := t.in[t.pos+1]
	switch {
	case c == 'd':
		t.category("Nd", false, inside, 2)
	case c == 'D':
		t.category("Nd", true, inside, 2)
	case c == 'p' || c == 'P':
		end := strings.IndexByte(t.in[t.pos:], '}') + 1
		if !strings.HasPrefix(t.in[t.pos+2:], "{") || end == 0 {
			t.refuse(`\p without a category`)
			return
		}
		name, not := strings.CutPrefix(t.in[t.pos+3:t.pos+end-1], "^")
		t.category(name, not != (c == 'P'), inside, end)
	case strings.IndexByte("rntfvsSx", c) >= 0, c < utf8.RuneSelf && !isAlphanumeric(c):
		t.emit(t.in[t.pos:t.pos+2], 2)
	case c == 'u':
		t.emit(`\u`, 2)
	default:
		t.refuse(fmt.Sprintf("\\%c", c))
	}
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// category writes a general category with the members that the engine's older
// tables lack.
func (t *translator) category(name string, not, inside bool, skip int) {
	for _, m := range laterMembers {
		if m.category != name {
			continue
		}
		var later strings.Builder
		for i := 0; i < len(m.pairs); i += 2 {
			fmt.Fprintf(&later, `\x{%x}-\x{%x}`, m.pairs[i], m.pairs[i+1])
		}
		switch {
		case inside && !not:
			t.emit(`\p{`+name+"}"+later.String(), skip)
		case inside && later.Len() > 0:
			t.refuse("a category that is negated inside a class")
		case inside:
			t.emit(`\P{`+name+"}", skip)
		case not:
			t.emit(`[^\p{`+name+"}"+later.String()+"]", skip)
		default:
			t.emit(`[\p{`+name+"}"+later.String()+"]", skip)
		}
		return
	}
	t.refuse(fmt.Sprintf("category %q", name))
}
