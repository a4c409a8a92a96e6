// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"pleach/program"
)

// pages is memory that begins at a cache line and is all zeros at first: mapped,
// or Go's.
type pages struct {
	data   []byte
	mapped []byte // the whole mapping, nil if the memory is Go's
}

// toucher has the system bring new memory while the engine is not at work yet:
// while weights are read or made, by one thread mostly. Otherwise the first run
// waits for all of it, and where a system has to clear gigabytes, or to ask the
// one below it for them, that takes as long as the run. It changes no byte.
type toucher struct {
	one     sync.Mutex // at a time
	stopped atomic.Bool
	running sync.WaitGroup
}

// start begins to bring the memory of p.
func (t *toucher) start(p pages) {
	if p.mapped != nil {
		t.running.Go(func() {
			t.one.Lock()
			defer t.one.Unlock()
			p.populate(&t.stopped)
		})
	}
}

// end stops, and returns when nothing is running.
func (t *toucher) end() {
	t.stopped.Store(true)
	t.running.Wait()
}

// heap is n bytes of zeros that begin at a cache line, in Go's memory.
func heap(n int) []byte {
	if n == 0 {
		return nil
	}
	b := make([]byte, n+program.Align-1)
	skip := -uintptr(unsafe.Pointer(&b[0])) % program.Align
	return b[skip : int(skip)+n : int(skip)+n]
}

// allocate is n bytes of zeros that begin at a cache line and last until the
// engine is closed.
func (e *Engine) allocate(n int) []byte {
	p := newPages(n)
	e.pages = append(e.pages, p)
	e.touch.start(p)
	return p.data
}

// allocateAll is a buffer for each size, all in one piece of memory: small ones
// share large pages.
func (e *Engine) allocateAll(sizes []int) [][]byte {
	total, bs := 0, make([][]byte, len(sizes))
	for _, n := range sizes {
		total += aligned(n)
	}
	rest := e.allocate(total)
	for i, n := range sizes {
		bs[i], rest = rest[:n:n], rest[aligned(n):]
	}
	return bs
}

func aligned(n int) int { return (n + program.Align - 1) &^ (program.Align - 1) }

// release gives all memory back. Nothing of the engine may be used afterwards.
func (e *Engine) release() {
	e.touch.end()
	for _, p := range append(slices.Clip(e.pages), e.rooms...) {
		p.release()
	}
	e.pages, e.rooms = nil, nil
}

// Mapped is how many bytes of the engine's memory are not in Go's heap, where the
// garbage collector would count them.
func (e *Engine) Mapped() int {
	n := 0
	for _, p := range append(slices.Clip(e.pages), e.rooms...) {
		if p.mapped != nil {
			n += len(p.data)
		}
	}
	return n
}
