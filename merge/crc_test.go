// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

func TestJoined(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 5000)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	want := crc32.Checksum(text, castagnoli)
	for range 100 {
		i := r.IntN(len(text) + 1)
		a, b := crc32.Checksum(text[:i], castagnoli), crc32.Checksum(text[i:], castagnoli)
		if got := joined(a, b, int64(len(text)-i)); got != want {
			t.Fatalf("cut at %d: got %08x, want %08x", i, got, want)
		}
	}
}
