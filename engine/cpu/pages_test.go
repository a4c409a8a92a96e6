// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"bytes"
	"runtime"
	"testing"
	"unsafe"

	"pleach/program"
)

// TestPages wants memory of any size to be zeros, to begin at a cache line, to
// hold what is written up to its end, and to be mapped from a size on where the
// system maps.
func TestPages(t *testing.T) {
	const huge = 2 << 20
	for _, n := range []int{0, 1, 63, 64, 4096, huge - 1, huge, huge + 1, 3*huge - 5, 9 * huge} {
		p := newPages(n)
		if len(p.data) != n || cap(p.data) != n {
			t.Fatalf("%d bytes: got %d of %d", n, len(p.data), cap(p.data))
		}
		if n == 0 {
			p.release()
			continue
		}
		if at := uintptr(unsafe.Pointer(&p.data[0])); at%program.Align != 0 || p.mapped != nil && at%huge != 0 {
			t.Errorf("%d bytes at %#x, mapped %v", n, at, p.mapped != nil)
		}
		if got := bytes.Count(p.data, []byte{0}); got != n {
			t.Errorf("%d of %d bytes are zero", got, n)
		}
		if want := runtime.GOOS == "linux" && n >= huge; (p.mapped != nil) != want {
			t.Errorf("%d bytes: mapped %v, want %v", n, p.mapped != nil, want)
		}
		for i := range p.data {
			p.data[i] = byte(i * 7)
		}
		if p.data[n-1] != byte((n-1)*7) {
			t.Errorf("%d bytes: the last is %d", n, p.data[n-1])
		}
		p.release()
	}
}

// TestAllocateAll wants buffers in one piece that do not touch.
func TestAllocateAll(t *testing.T) {
	e := New(Options{Threads: 1})
	defer e.Close()
	sizes := []int{5, 0, 64, 100, 3 << 20}
	bs := e.allocateAll(sizes)
	for i, b := range bs {
		if len(b) != sizes[i] || cap(b) != sizes[i] {
			t.Errorf("buffer %d: %d of %d bytes, want %d", i, len(b), cap(b), sizes[i])
		}
		if len(b) > 0 && uintptr(unsafe.Pointer(&b[0]))%program.Align != 0 {
			t.Errorf("buffer %d does not begin at a cache line", i)
		}
		for j := range b {
			b[j]++
		}
	}
	for i, b := range bs {
		if bytes.Count(b, []byte{1}) != len(b) {
			t.Errorf("buffer %d is shared", i)
		}
	}
	if n := e.Mapped(); runtime.GOOS == "linux" && n != 3<<20+64+64+128 {
		t.Errorf("mapped %d bytes", n)
	}
}

// BenchmarkFirstTouch is the time to touch new memory, a byte in 4 KiB.
func BenchmarkFirstTouch(b *testing.B) {
	const n = 256 << 20
	touch := func(x []byte) {
		for i := 0; i < len(x); i += 4096 {
			x[i] = 1
		}
	}
	b.Run("pages", func(b *testing.B) {
		b.SetBytes(n)
		for b.Loop() {
			p := newPages(n)
			touch(p.data)
			p.release()
		}
	})
	b.Run("heap", func(b *testing.B) {
		b.SetBytes(n)
		for b.Loop() {
			touch(heap(n))
			b.StopTimer()
			runtime.GC()
			b.StartTimer()
		}
	})
}
