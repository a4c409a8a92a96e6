// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"pleach/internal/fault"
)

// Error is one thing that a user can put right in a recipe or on the command
// line.
type Error struct {
	File string
	Line int    // from 1; 0 if the value stands in no file
	Arg  string // the argument of the command line that it stands in, if any
	Key  string // dotted path
	Msg  string // what was found and what is wanted
	Hint string // what to do, if that can be guessed

	excerpt string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("config: ")
	switch {
	case e.Arg != "":
		arg := e.Arg
		if r := []rune(arg); len(r) > 100 {
			arg = string(r[:100]) + "…"
		}
		fmt.Fprintf(&b, "argument %q: ", arg)
	case e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	case e.File != "":
		b.WriteString(e.File + ": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String() + e.excerpt
}

// Unwrap makes an Error match [fault.Config].
func (e *Error) Unwrap() error { return fault.Config }

// shown is how many errors are printed. More of them have one cause.
const shown = 100

// Errors is everything that is wrong with a recipe: by line, arguments last.
type Errors []*Error

func (es Errors) Error() string {
	var s []string
	for _, e := range es[:min(len(es), shown)] {
		s = append(s, e.Error())
	}
	if n := len(es) - shown; n > 0 {
		s = append(s, fmt.Sprintf("config: and %d more", n))
	}
	return strings.Join(s, "\n")
}

// Unwrap gives the single errors.
func (es Errors) Unwrap() []error {
	s := make([]error, len(es))
	for i, e := range es {
		s[i] = e
	}
	return s
}

// joined sorts the errors and makes one of kind [fault.Config] of them.
func joined(es []*Error) error {
	if len(es) == 0 {
		return nil
	}
	slices.SortStableFunc(es, func(a, b *Error) int {
		if (a.Arg != "") != (b.Arg != "") {
			if a.Arg == "" {
				return -1
			}
			return 1
		}
		return a.Line - b.Line
	})
	return fault.As(fault.Config, Errors(es))
}

// excerpt shows a line of the file with a mark under a column (from 1).
func excerpt(lines []string, line, col int) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	text := lines[line-1]
	if len(text) > 200 { // a line that fills the screen helps nobody
		return ""
	}
	col = min(max(col, 1), len([]rune(text))+1)
	var pad strings.Builder
	for _, c := range []rune(text)[:col-1] {
		if c != '\t' {
			c = ' '
		}
		pad.WriteRune(c)
	}
	return fmt.Sprintf("\n%6d | %s\n       | %s^", line, text, pad.String())
}

// didYouMean names the word that got was probably meant to be, or lists what
// there is.
func didYouMean(got string, words []string) string {
	best := fault.Nearest(got, words)
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(words) == 0:
		return ""
	}
	return "known here: " + strings.Join(words, ", ")
}

// elsewhere is [didYouMean] for a key that is not known in a mapping. A key that
// is spelt right and stands in the wrong place is told its own.
func (d *reader) elsewhere(got string, known []string) string {
	if len(d.errs) >= shown {
		return "" // it will not be read
	}
	hint := didYouMean(got, known)
	if strings.HasPrefix(hint, "did") {
		return hint
	}
	var at []string
	for _, k := range Keys() {
		if last(k.Key) == got {
			at = append(at, k.Key)
		}
	}
	if len(at) == 0 {
		return hint
	}
	return "there is " + strings.Join(at, " and ")
}
