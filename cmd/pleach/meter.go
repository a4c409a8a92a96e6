// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"
)

// meter says on a terminal how far a verb is. It prints nothing where there is
// no terminal.
type meter struct {
	*screen
	began time.Time
	count int
}

func newMeter(w io.Writer) *meter { return &meter{screen: newScreen(w), began: time.Now()} }

// add counts n more ids.
func (m *meter) add(n int, what string) {
	m.count += n
	rate := float64(m.count) / max(time.Since(m.began).Seconds(), 1e-9)
	m.say("%s: %s tokens, %s tokens/s", what, amount(float64(m.count)), amount(rate))
}

// say renews the line.
func (m *meter) say(format string, args ...any) {
	if m.live() {
		m.renew(time.Now(), false, fmt.Sprintf(format, args...))
	}
}
