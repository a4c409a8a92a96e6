// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommitted: what the generator writes is what is committed.
func TestCommitted(t *testing.T) {
	all := vectorFiles()
	maps.Copy(all, int8Files())
	for name, text := range all {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, text.Bytes()) {
			t.Errorf("%s differs: run go generate ./kernel", name)
		}
	}
}

// armKnown are encodings by LLVM's assembler.
var armKnown = map[string]uint32{
	"fadd v3.4s, v18.4s, v29.4s":       0x4e3dd643,
	"fsub v3.4s, v18.4s, v29.4s":       0x4ebdd643,
	"fmul v3.4s, v18.4s, v29.4s":       0x6e3dde43,
	"fdiv v3.4s, v18.4s, v29.4s":       0x6e3dfe43,
	"fmla v3.4s, v18.4s, v29.4s":       0x4e3dce43,
	"fmls v3.4s, v18.4s, v29.4s":       0x4ebdce43,
	"fcmgt v3.4s, v18.4s, v29.4s":      0x6ebde643,
	"fcmge v3.4s, v18.4s, v29.4s":      0x6e3de643,
	"bsl v3.16b, v18.16b, v29.16b":     0x6e7d1e43,
	"bic v3.16b, v18.16b, v29.16b":     0x4e7d1e43,
	"orr v3.16b, v18.16b, v29.16b":     0x4ebd1e43,
	"ext v3.16b, v18.16b, v29.16b, #8": 0x6e1d4243,
	"fmla v3.2d, v18.2d, v29.2d":       0x4e7dce43,
	"fsqrt v3.4s, v18.4s":              0x6ea1fa43,
	"shl v3.4s, v18.4s, #23":           0x4f375643,
	"rev64 v3.4s, v18.4s":              0x4ea00a43,
	"dup v3.4s, v18.s[0]":              0x4e040643,
	"fcvtl v3.2d, v18.2s":              0x0e617a43,
	"fcvtl2 v3.2d, v18.4s":             0x4e617a43,
	"and v3.16b, v18.16b, v29.16b":     0x4e3d1e43,
	"eor v3.16b, v18.16b, v29.16b":     0x6e3d1e43,
	"add v3.4s, v18.4s, v29.4s":        0x4ebd8643,
	"fcmeq v3.4s, v18.4s, v29.4s":      0x4e3de643,
	"uzp2 v3.8h, v18.8h, v29.8h":       0x4e5d5a43,
	"uzp1 v3.4s, v18.4s, v29.4s":       0x4e9d1a43,
	"uzp2 v3.4s, v18.4s, v29.4s":       0x4e9d5a43,
	"umull v3.2d, v18.2s, v29.2s":      0x2ebdc243,
	"umull2 v3.2d, v18.4s, v29.4s":     0x6ebdc243,
	"ushr v3.4s, v18.4s, #16":          0x6f300643,
	"shll v3.4s, v18.4h, #16":          0x2e613a43,
	"shll2 v3.4s, v18.8h, #16":         0x6e613a43,
	"ushll v3.4s, v18.4h, #0":          0x2f10a643,
	"ushll2 v3.4s, v18.8h, #0":         0x6f10a643,
	"fadd v3.2d, v18.2d, v29.2d":       0x4e7dd643,
	"fcvtl v3.4s, v18.4h":              0x0e217a43,
	"fcvtn v3.4h, v18.4s":              0x0e216a43,
	"fcvtn2 v3.8h, v18.4s":             0x4e216a43,
	"sub v3.4s, v18.4s, v29.4s":        0x6ebd8643,
	"umax v3.4s, v18.4s, v29.4s":       0x6ebd6643,
	"ushr v3.4s, v18.4s, #8":           0x6f380643,
	"cmtst v3.4s, v18.4s, v29.4s":      0x4ebd8e43,
	"cmlt v3.4s, v18.4s, #0":           0x4ea0aa43,
	"addv s3, v18.4s":                  0x4eb1ba43,
	"cmhi v3.4s, v18.4s, v29.4s":       0x6ebd3643,
	"cmeq v3.4s, v18.4s, v29.4s":       0x6ebd8e43,
	"ushr v3.4s, v18.4s, #18":          0x6f2e0643,
	"ushr v3.4s, v18.4s, #31":          0x6f210643,
	"umin v3.4s, v18.4s, v29.4s":       0x6ebd6e43,

	"tbl v3.16b, { v18.16b }, v29.16b": 0x4e1d0243,
}

// threeRegisters reports whether an instruction reads two.
func (o armOp) threeRegisters() bool { return strings.Count(o.name, "%d") == 3 }

func (o armOp) at(d, n, m int) (uint32, string) {
	if o.threeRegisters() {
		return o.word(d, n, m), o.source(d, n, m)
	}
	return o.word(d, n), o.source(d, n)
}

func TestArmKnown(t *testing.T) {
	for _, o := range armOps {
		word, source := o.at(3, 18, 29)
		if want := armKnown[source]; word != want {
			t.Errorf("%s: got %#08x, want %#08x", source, word, want)
		}
	}
}

// TestArmAssembler compares with an assembler, if there is one.
func TestArmAssembler(t *testing.T) {
	tool, err := exec.LookPath("llvm-mc")
	if err != nil {
		t.Skip("no llvm-mc on this machine")
	}
	var words []uint32
	var source strings.Builder
	for _, o := range armOps {
		for r := range 32 {
			w, s := o.at(r, (r+7)%32, (r*5+11)%32)
			words = append(words, w)
			fmt.Fprintln(&source, s)
		}
	}
	cmd := exec.Command(tool, "-triple=aarch64", "-show-encoding")
	cmd.Stdin = strings.NewReader(source.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for line := range strings.Lines(string(out)) {
		_, list, ok := strings.Cut(line, "encoding: [")
		if !ok {
			continue
		}
		var b [4]byte
		if _, err := fmt.Sscanf(list, "%v,%v,%v,%v]", &b[0], &b[1], &b[2], &b[3]); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got, want := words[i], binary.LittleEndian.Uint32(b[:]); got != want {
			t.Errorf("%s: got %#08x, want %#08x", line, got, want)
		}
		i++
	}
	if i != len(words) {
		t.Errorf("got %d encodings, want %d", i, len(words))
	}
}
