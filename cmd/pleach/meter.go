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

// meter is one line on a terminal that says how far a verb is. It prints nothing
// where there is no terminal.
type meter struct {
	w           io.Writer
	live, shown bool
	began, last time.Time
	count       int
}

func newMeter(w io.Writer) *meter {
	f, ok := w.(*os.File)
	return &meter{w: w, live: ok && term.IsTerminal(int(f.Fd())), began: time.Now()}
}

// add counts n more ids.
func (m *meter) add(n int, what string) {
	m.count += n
	rate := float64(m.count) / max(time.Since(m.began).Seconds(), 1e-9)
	m.say("%s: %s tokens, %s tokens/s", what, amount(float64(m.count)), amount(rate))
}

// say renews the line, ten times a second at most.
func (m *meter) say(format string, args ...any) {
	if !m.live || time.Since(m.last) < 100*time.Millisecond {
		return
	}
	m.last, m.shown = time.Now(), true
	fmt.Fprintf(m.w, "\r\x1b[K"+format, args...)
}

func (m *meter) erase() {
	if m.shown {
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}
