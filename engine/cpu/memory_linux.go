// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a large page on amd64 and, with base pages of 4 KiB, on
// arm64. Where it is another one the advice is given all the same and may have no
// effect.
const hugePage = 2 << 20

// newPages is n bytes of zeros that begin at a cache line.
//
// From the size of a large page on they are mapped, begin at a large page and ask
// for such: a fault then brings 2 MiB instead of 4 KiB, so that the first touch of
// all bytes takes a quarter of the time, and columns of large matrices need few
// entries of the TLB. The end of the bytes has small pages, so what is resident is
// what is touched. Smaller ones, and what the system does not map, are Go's.
func newPages(n int) pages {
	if n < hugePage {
		return pages{data: heap(n)}
	}
	all, err := unix.Mmap(-1, 0, n+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return pages{data: heap(n)}
	}
	skip := int(-uintptr(unsafe.Pointer(&all[0])) % hugePage)
	b := all[skip : skip+n : skip+n]
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // advice: without it the pages are small
	return pages{b, all}
}

// release gives mapped memory back. Its bytes must not be used afterwards.
func (p pages) release() {
	if p.mapped != nil {
		_ = unix.Munmap(p.mapped)
	}
}

// populate brings all pages, a piece after the other, until stopped is true. A
// system that cannot brings them when they are touched.
func (p pages) populate(stopped *atomic.Bool) {
	const piece = 8 * hugePage
	for b := p.data; len(b) > 0 && !stopped.Load(); b = b[min(piece, len(b)):] {
		if unix.Madvise(b[:min(piece, len(b))], unix.MADV_POPULATE_WRITE) != nil {
			return
		}
	}
}
