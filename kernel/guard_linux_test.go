// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded is memory for n numbers with a page on either side that faults when it
// is touched. The numbers end where the one begins, or begin where the other
// ends; what lies between them and the other page is before or after them.
func (b bench) guarded(n int) (x, before, after []float32) {
	page := os.Getpagesize()
	size := (4*n + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := unix.Munmap(m); err != nil {
			b.Error(err)
		}
	})
	for _, guard := range [][]byte{m[:page], m[page+size:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			b.Fatal(err)
		}
	}
	all := unsafe.Slice((*float32)(unsafe.Pointer(&m[page])), size/4)
	if b.IntN(2) == 0 {
		return all[:n:n], nil, all[n:]
	}
	return all[len(all)-n:], all[:len(all)-n], nil
}
