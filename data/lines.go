// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"bytes"
	"io"
	"sync"
)

// eachLine calls visit for every line that starts in [lo,hi) and is not blank,
// with its offset, its length without the newline, and how many lines started
// in the range before it. The last line may end beyond hi.
func eachLine(
	o io.ReaderAt, size, lo, hi int64, visit func(off, n int64, nth int),
) error {
	pos, start := lo, int64(0)
	if lo > 0 {
		pos, start = lo-1, -1 // the line starts after the next newline
	}
	hi = min(hi, size)
	buf := make([]byte, min(256<<10, hi-lo+4<<10))
	blank, nth := true, 0
	for pos < size && (start >= 0 || pos < hi) {
		b := buf[:min(int64(len(buf)), size-pos)]
		if n, err := o.ReadAt(b, pos); n < len(b) {
			return err
		}
		for i := 0; i < len(b); {
			j := bytes.IndexByte(b[i:], '\n')
			line := b[i:]
			if j >= 0 {
				line = line[:j]
			}
			blank = blank && isBlank(line)
			if i += len(line) + 1; j < 0 {
				break
			}
			if start >= 0 {
				if !blank {
					visit(start, pos+int64(i)-1-start, nth)
				}
				nth++
			}
			if start, blank = pos+int64(i), true; start >= hi {
				return nil
			}
		}
		pos += int64(len(b))
	}
	if start >= 0 && !blank {
		visit(start, size-start, nth)
	}
	return nil
}

// lineChunk is the spacing of the offsets whose line number is remembered.
const lineChunk = 64 << 10

// lineIndex finds line numbers in a file, reading each part of it at most twice.
type lineIndex struct {
	mu     sync.Mutex
	before []int64 // newlines before byte i·lineChunk
}

// number is the line, counted from 1, in which the byte at off stands.
func (x *lineIndex) number(o io.ReaderAt, off int64) (int64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.before == nil {
		x.before = []int64{0}
	}
	buf := make([]byte, lineChunk)
	k := int(off / lineChunk)
	for len(x.before) <= k {
		i := len(x.before) - 1
		if n, err := o.ReadAt(buf, int64(i)*lineChunk); n < len(buf) {
			return 0, err
		}
		x.before = append(x.before, x.before[i]+int64(bytes.Count(buf, []byte("\n"))))
	}
	rest := buf[:off%lineChunk]
	if n, err := o.ReadAt(rest, int64(k)*lineChunk); n < len(rest) {
		return 0, err
	}
	return x.before[k] + int64(bytes.Count(rest, []byte("\n"))) + 1, nil
}
