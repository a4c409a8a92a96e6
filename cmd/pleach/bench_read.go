// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"
)

// readBandwidth is the bytes per second that so many threads read at best from
// memory that no cache holds.
func readBandwidth(threads int) float64 {
	r := newReader(threads)
	defer r.free()
	return r.best(6)
}

// reader reads memory that no cache holds.
type reader struct {
	words []uint64 // a part for each thread
	sums  []uint64 // a cache line for each thread
	free  func()
}

func newReader(threads int) *reader {
	n := max(4*lastCache(), 64<<20) / 8
	if have := available(); have > 0 {
		n = min(n, have/4/8)
	}
	part := (n + threads - 1) / threads
	r := &reader{sums: make([]uint64, 8*threads)}
	r.words, r.free = largeWords(part * threads)
	r.each(func(_ int, own []uint64) { // else the pages would all be the system's one page of zeros
		for j := range own {
			own[j] = uint64(j)
		}
	})
	return r
}

// each calls f with the part of every thread, at the same time.
func (r *reader) each(f func(thread int, own []uint64)) {
	threads := len(r.sums) / 8
	part := len(r.words) / threads
	var all sync.WaitGroup
	for i := range threads - 1 {
		all.Go(func() { f(i+1, r.words[(i+1)*part:][:part]) })
	}
	f(0, r.words[:part])
	all.Wait()
}

// best is the bytes per second of the fastest of so many passes.
func (r *reader) best(passes int) float64 {
	best := 0.0
	for range passes {
		began := time.Now()
		r.each(func(i int, own []uint64) { r.sums[8*i] += sumWords(own) })
		best = max(best, float64(8*len(r.words))/time.Since(began).Seconds())
	}
	return best
}

// sumWords adds words in four chains, so that loads and not additions are what
// takes the time.
func sumWords(x []uint64) uint64 {
	var a, b, c, d uint64
	for ; len(x) >= 8; x = x[8:] {
		a += x[0] + x[4]
		b += x[1] + x[5]
		c += x[2] + x[6]
		d += x[3] + x[7]
	}
	for _, v := range x {
		a += v
	}
	return a + b + c + d
}
