// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"sync"
)

// arena hands out parts of one piece of memory, so that what a merge needs is bounded
// by it and not by when garbage is collected.
type arena struct {
	mu   sync.Mutex
	free sync.Cond
	buf  []byte
	used []span // in order
}

// span is bytes lo to hi.
type span struct{ lo, hi int }

// align is what parts begin at a multiple of: a line of a cache.
const align = 64

func newArena(n int) *arena {
	a := &arena{buf: make([]byte, n)}
	a.free.L = &a.mu
	return a
}

// take waits for n bytes in a row. Whoever asks for more than the arena has would
// wait for ever.
func (a *arena) take(n int) []byte {
	n = (n + align - 1) / align * align
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		lo := 0
		for i := 0; i <= len(a.used); i++ {
			end := len(a.buf)
			if i < len(a.used) {
				end = a.used[i].lo
			}
			if end-lo >= n {
				a.used = slices.Insert(a.used, i, span{lo, lo + n})
				return a.buf[lo : lo+n : lo+n]
			}
			if i < len(a.used) {
				lo = a.used[i].hi
			}
		}
		a.free.Wait()
	}
}

// give returns what take gave.
func (a *arena) give(b []byte) {
	if cap(b) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, s := range a.used {
		if &a.buf[s.lo] == &b[:1][0] {
			a.used = slices.Delete(a.used, i, i+1)
			break
		}
	}
	a.free.Broadcast()
}

// budget bounds a sum.
type budget struct {
	mu   sync.Mutex
	free sync.Cond
	left int64
}

func newBudget(n int64) *budget {
	b := &budget{left: n}
	b.free.L = &b.mu
	return b
}

// take waits for n of the budget, which has to be at least that large.
func (b *budget) take(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.left < n {
		b.free.Wait()
	}
	b.left -= n
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
	b.free.Broadcast()
}
