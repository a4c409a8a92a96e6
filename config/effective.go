// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Effective is the recipe with every value that holds, each with its origin as
// a comment. Paths are absolute. Parsed again, from any folder, it is the same
// recipe: [Diff] names nothing.
func (r *Recipe) Effective() []byte {
	w := writer{r: r}
	lines := w.fields("", "", r.fields())
	return []byte(strings.Join(lines, "\n") + "\n")
}

type writer struct{ r *Recipe }

// fields prints a mapping. Keys without a value become comments.
func (w writer) fields(key, indent string, fields []field) []string {
	var lines []string
	for i := range fields {
		f := &fields[i]
		k := join(key, f.key)
		switch to := f.to.(type) {
		case choice:
			lines = append(lines, indent+f.key+":")
			for _, kind := range to.kinds() {
				if kind.name == *to.chosen() {
					sub := w.fields(join(k, kind.name), indent+"    ", kind.fields)
					lines = append(lines, headed(indent+"  "+kind.name+":", sub)...)
				}
			}
		case list:
			lines = append(lines, w.list(k, indent, f.key, to)...)
		case group:
			sub := w.fields(k, indent+"  ", to.fields())
			if !f.omit && !empty(sub) {
				lines = append(append(lines, indent+f.key+":"), sub...)
			}
		default:
			if s, ok := f.print(); ok {
				lines = append(lines, w.line(indent+f.key+": "+s, k))
			} else if f.auto != "" && f.auto != "–" && !f.omit {
				lines = append(lines, indent+"# "+f.key+": "+f.auto)
			}
		}
	}
	return lines
}

// list prints a list of mappings with dashes, or a dict with its names.
func (w writer) list(key, indent, name string, l list) []string {
	if l.size() == 0 {
		return nil
	}
	lines := []string{indent + name + ":"}
	for i := range l.size() {
		if d, ok := l.(dict); ok {
			n := *d.name(i)
			sub := w.fields(join(key, n), indent+"    ", l.at(i).fields())
			lines = append(append(lines, indent+"  "+quote(n)+":"), sub...)
			continue
		}
		sub := w.fields(join(key, strconv.Itoa(i)), indent+"    ", l.at(i).fields())
		sub[0] = indent + "  - " + strings.TrimLeft(sub[0], " ")
		lines = append(lines, sub...)
	}
	return lines
}

// line appends the origin of a value.
func (w writer) line(s, key string) string {
	from := w.r.Origin(key)
	for k := key; from == "" && k != ""; k = k[:max(0, strings.LastIndexByte(k, '.'))] {
		from = w.r.Origin(k)
	}
	return fmt.Sprintf("%-40s  # %s", s, strings.Map(printable, from))
}

// printable keeps an origin on one line.
func printable(c rune) rune {
	if c < ' ' {
		return ' '
	}
	return c
}

// headed is a mapping under its key, {} if it has no value.
func headed(head string, lines []string) []string {
	if empty(lines) {
		return []string{head + " {}"}
	}
	return append([]string{head}, lines...)
}

func empty(lines []string) bool {
	for _, s := range lines {
		if !strings.HasPrefix(strings.TrimLeft(s, " "), "#") {
			return false
		}
	}
	return true
}

var unquoted = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./+=%@*-]*$`)

// quote prints a text so that YAML reads it as that text.
func quote(s string) string {
	switch s {
	case "null", "Null", "NULL":
		return strconv.Quote(s)
	}
	if unquoted.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
