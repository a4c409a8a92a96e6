// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAMXCommitted: what the generator writes is what is committed.
func TestAMXCommitted(t *testing.T) {
	for name, text := range amxFiles() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, text.Bytes()) {
			t.Errorf("%s differs: run go generate ./kernel", name)
		}
	}
}

// TestAMXKnown: what GNU as makes of some instructions.
func TestAMXKnown(t *testing.T) {
	for want, got := range map[string][]byte{
		"c4e2784900":           ldtilecfg.memory(0, 0, "AX", ""),
		"c4c278494540":         ldtilecfg.memory(0, 64, "R13", ""),
		"c4c278490424":         ldtilecfg.memory(0, 0, "R12", ""),
		"c4e27849c0":           tilerelease.one(0),
		"c4e27b49d8":           tilezero.one(3),
		"c4a27b4b7c1340":       tileloadd.memory(7, 64, "BX", "R10"),
		"c4e2794b2430":         tileloaddt1.memory(4, 0, "AX", "SI"),
		"c4827a4b8c3580feffff": tilestored.memory(1, -384, "R13", "R14"),
		"c4e24a5cc4":           tdpbf16ps.three(0, 4, 6),
		"c4e2425cdd":           tdpbf16ps.three(3, 5, 7),
	} {
		if hex.EncodeToString(got) != want {
			t.Errorf("got %x, want %s", got, want)
		}
	}
}

// TestDirectives: bytes as directives of Go's assembler.
func TestDirectives(t *testing.T) {
	for want, code := range map[string][]byte{
		"LONG $0x04030201; BYTE $0x05":               {1, 2, 3, 4, 5},
		"LONG $0x04030201; WORD $0x0605":             {1, 2, 3, 4, 5, 6},
		"LONG $0x04030201; WORD $0x0605; BYTE $0x07": {1, 2, 3, 4, 5, 6, 7},
	} {
		if got := asBytes(code); got != want {
			t.Errorf("%v: got %q, want %q", code, got, want)
		}
	}
}

// TestAMXAssembler compares the encodings of all tiles, registers and lengths of
// displacements with those of GNU as, where it is installed.
func TestAMXAssembler(t *testing.T) {
	source, want := amxSource()
	assembles(t, "AMX", source, want)
}

// amxSource is instructions for GNU as, and what they should become.
func amxSource() (string, []byte) {
	var source strings.Builder
	want := tilerelease.one(0)
	source.WriteString("tilerelease\n")
	add := func(code []byte, format string, a ...any) {
		fmt.Fprintf(&source, format+"\n", a...)
		want = append(want, code...)
	}
	for c := range 8 {
		add(tilezero.one(c), "tilezero %%tmm%d", c)
		for a := range 8 {
			for b := range 8 {
				if a != b && b != c && a != c {
					add(tdpbf16ps.three(c, a, b), "tdpbf16ps %%tmm%d, %%tmm%d, %%tmm%d", b, a, c)
				}
			}
		}
	}
	for i, base := range gprs {
		for _, disp := range []int{0, 1, 127, 128, -128, -129, 64, 2048, 1 << 20} {
			b, at := gnu(base), fmt.Sprint(disp)
			if disp == 0 {
				at = "" // GNU as would encode it
			}
			add(ldtilecfg.memory(0, disp, base, ""), "ldtilecfg %s(%%%s)", at, b)
			for j, index := range gprs {
				if index == "SP" {
					continue
				}
				tile := (i + 3*j + disp&7) % 8
				x := gnu(index)
				add(tileloadd.memory(tile, disp, base, index), "tileloadd %s(%%%s,%%%s,1), %%tmm%d", at, b, x, tile)
				add(tileloaddt1.memory(tile, disp, base, index), "tileloaddt1 %s(%%%s,%%%s,1), %%tmm%d", at, b, x, tile)
				add(tilestored.memory(tile, disp, base, index), "tilestored %%tmm%d, %s(%%%s,%%%s,1)", tile, at, b, x)
			}
		}
	}
	return source.String(), want
}

// gnu is GNU's name of a register.
func gnu(r string) string {
	if strings.HasPrefix(r, "R") {
		return strings.ToLower(r)
	}
	return "r" + strings.ToLower(r)
}
