// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"syscall"
	"unsafe"
)

// largeWords is n words in large pages, as the engine has its buffers, so that the
// search for pages takes no part in how fast they are read.
func largeWords(n int) (words []uint64, free func()) {
	const access = syscall.PROT_READ | syscall.PROT_WRITE
	b, err := syscall.Mmap(-1, 0, 8*n, access, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return make([]uint64, n), func() {}
	}
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) // a wish
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), n), func() { _ = syscall.Munmap(b) }
}
