// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// Go's assembler knows no instruction of AMX, so they are bytes. All are of the
// VEX map 0F38 with W and L zero: Intel, Software Developer's Manual, volume 2,
// LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TDPBF16PS, and section 2.3 for the
// prefix.

// amxOp is the prefix (none, 66, F3 or F2, from 0 to 3) and the opcode.
type amxOp struct {
	name   string
	prefix int
	code   byte
}

var (
	ldtilecfg   = amxOp{"LDTILECFG", 0, 0x49}
	tilerelease = amxOp{"TILERELEASE", 0, 0x49}
	tilezero    = amxOp{"TILEZERO", 3, 0x49}
	tileloadd   = amxOp{"TILELOADD", 3, 0x4b}
	tileloaddt1 = amxOp{"TILELOADDT1", 1, 0x4b} // without displacing what the first-level cache holds
	tilestored  = amxOp{"TILESTORED", 2, 0x4b}
	tdpbf16ps   = amxOp{"TDPBF16PS", 2, 0x5c}
)

// gprs are the general registers by number.
var gprs = []string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

// vex begins an instruction. r, x and b are the registers of the ModRM byte's
// middle, of the index, and of the base or the ModRM byte's end; v is one more.
func (o amxOp) vex(r, x, b, v int) []byte {
	high := func(n, at int) byte { return byte(^n>>3&1) << at }
	return []byte{0xc4, high(r, 7) | high(x, 6) | high(b, 5) | 2, byte(^v&15)<<3 | byte(o.prefix), o.code}
}

// memory is an instruction on tile r and memory at disp(base)(index*1), where the
// index is the distance of rows; without one it is "".
func (o amxOp) memory(r, disp int, base, index string) []byte {
	b, x := slices.Index(gprs, base), max(0, slices.Index(gprs, index))
	code := o.vex(r, x, b, 0)
	mod, size := 2, 4
	switch {
	case disp == 0 && b&7 != 5:
		mod, size = 0, 0
	case -128 <= disp && disp < 128:
		mod, size = 1, 1
	}
	switch modrm := byte(mod<<6 | r&7<<3); {
	case index != "":
		code = append(code, modrm|4, byte(x&7<<3|b&7))
	case b&7 == 4: // only a SIB byte can name it
		code = append(code, modrm|4, 0x24)
	default:
		code = append(code, modrm|byte(b&7))
	}
	for i := range size {
		code = append(code, byte(disp>>(8*i)))
	}
	return code
}

// one is an instruction on tile r, or on none.
func (o amxOp) one(r int) []byte { return append(o.vex(r, 0, 0, 0), 0xc0|byte(r&7)<<3) }

// three is c += a·b for tiles.
func (o amxOp) three(c, a, b int) []byte { return append(o.vex(c, 0, a, b), 0xc0|byte(c<<3|a)) }

// asBytes are directives of Go's assembler.
func asBytes(code []byte) string {
	var parts []string
	for len(code) > 0 {
		name, n := "BYTE", 1
		switch {
		case len(code) >= 4:
			name, n = "LONG", 4
		case len(code) >= 2:
			name, n = "WORD", 2
		}
		v := 0
		for i := range n {
			v |= int(code[i]) << (8 * i)
		}
		parts = append(parts, fmt.Sprintf("%s $0x%0*x", name, 2*n, v))
		code = code[n:]
	}
	return strings.Join(parts, "; ")
}
