// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkResume is the time from a state to the first row of each of 8 lanes, in
// files of PLEACH_RESUME_BYTES bytes.
func BenchmarkResume(b *testing.B) {
	size, err := strconv.Atoi(os.Getenv("PLEACH_RESUME_BYTES"))
	if err != nil {
		size = 16 << 20
	}
	part := lettered(1, 4000, 4000) // 8 MB
	text := jsonl(part)
	copies := max(1, size/len(text))
	long := strings.Repeat(text, copies)
	var all []string
	for range copies {
		all = append(all, part...)
	}
	dir := write(b, map[string]string{
		"a.jsonl": long, "a.jsonl.gz": gzipped(b, long), "a.jsonl.zst": zstandard(b, long), "a.arrow": arrowFile(b, all, 1000),
	})
	for _, name := range []string{"a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.arrow"} {
		b.Run(name, func(b *testing.B) {
			p := specOf([]Source{{Paths: []string{filepath.Join(dir, name)}, Access: Access{Cache: b.TempDir()}}})
			p.Sequence, p.Lanes = 2048, 8
			l := open(b, p)
			next(b, l, 80)
			s := throughJSON(b, l.State())
			for b.Loop() {
				l, err := Open(p, byteEncoder{})
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Restore(s); err != nil {
					b.Fatal(err)
				}
				next(b, l, 8)
				l.Close()
			}
		})
	}
}
