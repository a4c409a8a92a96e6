// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHeld: lanes have a document each in hand, copies where there are too few;
// a line is too short to count.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]int{"a.txt": 1000, "b.txt": 300, "c.txt": 20} {
		text := strings.Repeat("a line\n", n/7+1)[:n]
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		format       string
		lanes, ranks int
		want         int64
	}{
		{"text", 1, 1, 1000}, {"text", 2, 1, 1300}, {"text", 4, 1, 2320}, {"text", 4, 2, 1300}, {"lines", 4, 1, 0},
	} {
		l, err := Open(Spec{
			Sequence: 8, Lanes: c.lanes, Ranks: c.ranks, Vocabulary: 256, EOS: 1,
			Sources: []Source{{Paths: []string{dir}, Format: c.format}},
		}, bytewise{})
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Held(); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
		l.Close()
	}
}

// bytewise encodes a byte as its value.
type bytewise struct{}

func (bytewise) Encode(dst []int32, text []byte) []int32 {
	for _, c := range text {
		dst = append(dst, int32(c))
	}
	return dst
}
