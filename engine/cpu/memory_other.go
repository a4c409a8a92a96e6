// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cpu

import "sync/atomic"

// newPages is n bytes of zeros that begin at a cache line: Go's.
func newPages(n int) pages { return pages{data: heap(n)} }

// release does nothing: the memory is Go's.
func (p pages) release() {}

// populate does nothing: Go's memory comes when it is touched.
func (p pages) populate(*atomic.Bool) {}
