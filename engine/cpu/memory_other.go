// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cpu

// newPages is n bytes of zeros that begin at a cache line: Go's.
func newPages(n int) pages { return pages{data: heap(n)} }

// release does nothing: the memory is Go's.
func (p pages) release() {}
