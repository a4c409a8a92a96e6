// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEvexKnown: what GNU as makes of VDPBF16PS.
func TestEvexKnown(t *testing.T) {
	for want, r := range map[string][3]int{
		"62f26e4852d9": {1, 2, 3}, "62222e4852e1": {17, 10, 28}, "6202064052ff": {31, 31, 31}, "62523e4052f8": {8, 24, 15},
	} {
		if got := hex.EncodeToString(directive(t, vdpbf16ps(r[0], r[1], r[2]))); got != want {
			t.Errorf("%v: got %s, want %s", r, got, want)
		}
	}
}

// directive is the bytes of directives of Go's assembler.
func directive(t *testing.T, s string) []byte {
	t.Helper()
	var b []byte
	for _, part := range strings.Split(s, "; ") {
		var long, word uint32
		if n, _ := fmt.Sscanf(part, "LONG $0x%x", &long); n == 1 {
			b = append(b, byte(long), byte(long>>8), byte(long>>16), byte(long>>24))
		} else if n, _ := fmt.Sscanf(part, "WORD $0x%x", &word); n == 1 {
			b = append(b, byte(word), byte(word>>8))
		} else {
			t.Fatalf("got %q", part)
		}
	}
	return b
}

// TestEvexAssembler compares the encoding of all registers with that of GNU as,
// where it is installed.
func TestEvexAssembler(t *testing.T) {
	var src strings.Builder
	var want []byte
	for i := range 32 {
		for j := range 32 {
			for k := range 32 {
				fmt.Fprintf(&src, "vdpbf16ps %%zmm%d, %%zmm%d, %%zmm%d\n", i, j, k)
				want = append(want, directive(t, vdpbf16ps(i, j, k))...)
			}
		}
	}
	assembles(t, "VDPBF16PS", src.String(), want)
}

// assembles wants GNU as, where it is installed and knows the instructions, to make
// these bytes of a source.
func assembles(t *testing.T, what, source string, want []byte) {
	t.Helper()
	as, err := exec.LookPath("as")
	if err != nil {
		t.Skip("no GNU as")
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "x.s"), filepath.Join(dir, "x.o")
	if err := os.WriteFile(in, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command(as, "-o", out, in).CombinedOutput(); err != nil {
		t.Skipf("as knows no %s: %v: %.200s", what, err, msg)
	}
	object, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(object, want) {
		t.Errorf("GNU as encodes %s otherwise", what)
	}
}
