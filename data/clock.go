// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"sync"
	"time"
)

// A Work is one of the things that a lane does to make a row.
type Work uint8

// The works. Reading is from disk or store, with decompressing, with what a table
// does to have its columns, and with finding where documents begin.
const (
	Packing Work = iota // and whatever is none of the others
	Reading
	Parsing
	Encoding
	works
)

// String is the name for people.
func (w Work) String() string {
	return [...]string{"packing", "reading and decompressing", "parsing", "tokenizing"}[w]
}

// Times is the time that the lanes of a loader have spent on each work: of all
// threads together, while they held a processor's place.
type Times struct {
	mu    sync.Mutex
	spent [works]time.Duration
}

// Spent is the time spent on a work up to now.
func (t *Times) Spent(w Work) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spent[w]
}

// clock measures what one lane does. A nil clock measures nothing.
type clock struct {
	sum   *Times
	doing Work
	since time.Time
	spent [works]time.Duration
}

func newClock(sum *Times) *clock {
	if sum == nil {
		return nil
	}
	return &clock{sum: sum}
}

// start begins a row.
func (c *clock) start() {
	if c != nil {
		c.doing, c.since = Packing, time.Now()
	}
}

// enter says that another work begins, and which one this interrupts.
func (c *clock) enter(w Work) (before Work) {
	if c == nil {
		return w
	}
	now := time.Now()
	c.spent[c.doing] += now.Sub(c.since)
	before, c.doing, c.since = c.doing, w, now
	return before
}

// stop ends a row.
func (c *clock) stop() {
	if c == nil {
		return
	}
	c.enter(Packing)
	c.sum.mu.Lock()
	defer c.sum.mu.Unlock()
	for w, d := range c.spent {
		c.sum.spent[w] += d
	}
	c.spent = [works]time.Duration{}
}
