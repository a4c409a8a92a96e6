// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// screen is where a verb shows how far it is: on a terminal one line that renews
// itself below the others, elsewhere a line now and then.
type screen struct {
	w     io.Writer
	width func() int // of the terminal; nil where there is none
	shown bool       // a live line is there
	last  time.Time
}

// How long a line of progress stands before the next one.
const (
	quiet  = 10 * time.Second // in a file
	lively = 200 * time.Millisecond
)

// newScreen shows on w, which is live if it is a terminal.
func newScreen(w io.Writer) *screen {
	s := &screen{w: w}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.width = func() int {
			n, _, err := term.GetSize(int(f.Fd()))
			if err != nil || n < 1 {
				return 80
			}
			return n
		}
	}
	return s
}

func (s *screen) live() bool { return s.width != nil }

// say prints a line above the live one.
func (s *screen) say(format string, args ...any) {
	s.erase()
	fmt.Fprintf(s.w, format+"\n", args...)
}

// renew shows a line of progress if the last one has stood long enough, or if it
// must be shown.
func (s *screen) renew(at time.Time, must bool, line string) {
	wait := quiet
	if s.live() {
		wait = lively
	}
	if at.Sub(s.last) < wait && !must {
		return
	}
	s.last = at
	if !s.live() {
		fmt.Fprintln(s.w, line)
		return
	}
	s.erase()
	fmt.Fprint(s.w, line[:min(len(line), s.width()-1)]) // a line that wraps could not be erased
	s.shown = true
}

// erase removes the live line.
func (s *screen) erase() {
	if s.shown {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.shown = false
	}
}
