// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Weights of int8 lie in blocks of 16 rows and four columns, row by row: a vector of
// 64 bytes has in each of its 16 numbers of 32 bits four steps of k of one row. So
// nothing is turned: byte i of each number is made a float32, or two of them a pair of
// bf16, in the order in which products want them.

const (
	few8Args    = "sums *float32, x *float32, dx int, w *int8, dw int, next *int8, blocks int"
	unpack8Args = "dst *float32, ds int, src *int8, blocks int"
)

// Registers of constants on AVX-512.
const (
	mask0, mask1   = 31, 30 // of bytes 0 and 1
	magic0, magic1 = 29, 28 // their place in a float32, with the sign bit turned
	bias0, bias1   = 27, 26 // what such a float32 has too much
)

// Registers of constants of pairs. A table has 128 bytes, in two registers.
const (
	lows0, lows1   = 31, 30 // the lower byte of each number as bf16
	highs0, highs1 = 29, 28 // the upper byte
	sign8          = 27     // the sign bit of each byte
	weave0, weave1 = 26, 25 // lower and upper bytes as pairs: of steps 0 and 1, and 2 and 3
)

// few8 is the name of amd64Few8.
func (s shape) few8(m, g int) string { return fmt.Sprintf("few8%s_%dx%d", s.level, m, g) }

// groups8 is how many groups of 16 rows of weights amd64Few8 reads side by side at most,
// so that enough sums are under way.
func (s shape) groups8(m int) int {
	if s == avx2 {
		return [...]int{1: 4, 2: 2, 3: 1, 4: 1}[m]
	}
	return [...]int{1: 4, 2: 4, 3: 2, 4: 2}[m]
}

// amd64Few8 is the product of m rows x, float32 or pairs of bf16, with g groups of 16
// rows of weights. DI sums [m,16·g]; AX x, DX its row distance; SI w, R8 the distance
// of groups; CX blocks. At R10 is what comes next, which is fetched from memory one
// line after the other, as memory likes to be read, while groups are read side by side.
func (s shape) amd64Few8(t *text, m, g int) {
	t.p("// func %s(%s)", s.few8(m, g), few8Args)
	t.p("TEXT ·%s(SB), NOSPLIT, $0-56", s.few8(m, g))
	for i, r := range []string{"DI", "AX", "DX", "SI", "R8", "R10", "CX"} {
		t.p("\tMOVQ %s+%d(FP), %s", []string{"sums", "x", "dx", "w", "dw", "next", "blocks"}[i], 8*i, r)
	}
	t.p("\tLEAQ (DX)(DX*2), R11\n\tLEAQ (R8)(R8*2), R9")
	s.constants8(t)
	halves := 16 / s.lanes // vectors of a group
	sum := func(r, v int) int { return r*g*halves + v }
	each := func(f func(at, reg int)) {
		for v := range m * g * halves {
			f(4*s.lanes*v, v)
		}
	}
	each(func(at, reg int) { t.p("\tVMOVUPS %d(DI), %s", at, s.reg(reg)) })
	t.p("\tPCALIGN $32\nloop:")
	if s == pairs { // of all groups
		for r := range m {
			t.p("\tVBROADCASTSS %s, Z%d\n\tVBROADCASTSS 4%s, Z%d", rows8[r], 8+2*r, rows8[r], 9+2*r)
		}
	}
	for v := range g * halves {
		group := []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R9*1)"}[v/halves]
		if v%halves == 0 {
			t.p("\tPREFETCHT1 %d(R10)", 64*(v/halves))
		}
		s.few8Block(t, m, 32*(v%halves), group, func(r int) int { return sum(r, v) })
	}
	t.p("\tADDQ $64, SI\n\tADDQ $%d, R10\n\tADDQ $%d, AX\n\tSUBQ $1, CX\n\tJNZ loop", 64*g, 4*s.steps8())
	each(func(at, reg int) { t.p("\tVMOVUPS %s, %d(DI)", s.reg(reg), at) })
	t.p("\tVZEROUPPER\n\tRET\n")
}

// rows8 is where the rows of x are.
var rows8 = []string{"(AX)", "(AX)(DX*1)", "(AX)(DX*2)", "(AX)(R11*1)"}

// ahead8 is how many bytes before their use packing asks for weights.
const ahead8 = 1024

// steps8 is how many numbers of 32 bits of x belong to a block.
func (s shape) steps8() int {
	if s == pairs {
		return 2
	}
	return 4
}

// few8Block adds the products of a vector of weights to m sums.
func (s shape) few8Block(t *text, m, at int, group string, sum func(r int) int) {
	s.convert8(t, fmt.Sprintf("%d%s", at, group), func(i, w int) {
		for r := range m {
			x := fmt.Sprintf("%d%s", 4*i, rows8[r])
			switch s {
			case pairs:
				s.multiplyAdd(t, 8+2*r+i, w, sum(r))
			case avx512:
				t.p("\tVFMADD231PS.BCST %s, %s, %s", x, s.reg(w), s.reg(sum(r)))
			default:
				t.p("\tVBROADCASTSS %s, Y15", x)
				s.multiplyAdd(t, 15, w, sum(r))
			}
		}
	})
}

// free8 is the first of three registers that are neither sums nor constants. Pairs
// have x in registers 8 … 15.
func (s shape) free8() int {
	if s == avx2 {
		return 12
	}
	return 16
}

// constants8 loads the constants of convert8.
func (s shape) constants8(t *text) {
	switch s {
	case avx512:
		for i, r := range []int{mask0, mask1, magic0, magic1, bias0, bias1} {
			t.p("\tVPBROADCASTD number8<>+%d(SB), Z%d", 4*i, r)
		}
	case pairs:
		for i, r := range []int{lows0, lows1, highs0, highs1, weave0, weave1} {
			t.p("\tVMOVDQU64 bytes8<>+%d(SB), Z%d", 64*i, r)
		}
		t.p("\tVPBROADCASTD number8<>+24(SB), Z%d", sign8)
	}
}

// data8 is those constants. A number of 8 bits in the lowest bits of a float32 of 2²³,
// or eight bits higher in one of 2¹⁵, is added to it; with its sign bit turned it is
// larger by 128.
func data8(t *text) {
	numbers := []uint32{0xff, 0xff00, 0x4b000080, 0x47008000, 0x4b000080, 0x47008000, 0x80808080}
	for i, b := range numbers {
		t.p("DATA number8<>+%d(SB)/4, $%#08x", 4*i, b)
	}
	t.p("GLOBL number8<>(SB), RODATA|NOPTR, $%d\n", 4*len(numbers))
	var all []byte
	for _, shift := range []int{16, 24} {
		for n := range 128 {
			all = append(all, byte(math.Float32bits(float32(n))>>shift))
		}
	}
	for first := 0; first < 4; first += 2 {
		for r := range 16 {
			at := byte(4*r + first)
			all = append(all, at, 64+at, at+1, 64+at+1)
		}
	}
	for i := 0; i < len(all); i += 8 {
		t.p("DATA bytes8<>+%d(SB)/8, $%#016x", i, binary.LittleEndian.Uint64(all[i:]))
	}
	t.p("GLOBL bytes8<>(SB), RODATA|NOPTR, $%d\n", len(all))
}

// convert8 loads a vector of weights and calls f with each register of numbers that it
// makes of it, in the order of k.
func (s shape) convert8(t *text, from string, f func(i, w int)) {
	x, a, b := s.free8(), s.free8()+1, s.free8()+2
	t.p("\tVMOVDQU%s %s, %s", map[bool]string{true: "", false: "64"}[s == avx2], from, s.reg(x))
	for i := range 4 {
		switch {
		case s == avx2:
			s.shifted8(t, x, i, a)
			f(i, a)
		case s == avx512:
			s.magic8(t, x, i, a)
			f(i, a)
		case i == 0:
			s.looked8(t, x, a, b)
			f(0, x)
			f(1, b)
		}
	}
}

// looked8 makes pairs of bf16 of each number in register x: those of bytes 0 and 1 stay
// there, those of bytes 2 and 3 go to b. The bytes of a bf16 are looked up for the
// number without its sign, which joins the upper one.
func (s shape) looked8(t *text, x, a, b int) {
	t.p("\tVPABSB Z%d, Z%d\n\tVMOVDQA64 Z%d, Z%d", x, a, a, b)
	t.p("\tVPERMI2B Z%d, Z%d, Z%d\n\tVPERMI2B Z%d, Z%d, Z%d", lows1, lows0, b, highs1, highs0, a)
	t.p("\tVPTERNLOGD $0xf8, Z%d, Z%d, Z%d", sign8, x, a) // a or (x and sign)
	t.p("\tVMOVDQA64 Z%d, Z%d\n\tVPERMI2B Z%d, Z%d, Z%d", weave0, x, a, b, x)
	t.p("\tVPERMT2B Z%d, Z%d, Z%d", a, weave1, b)
}

// shifted8 makes float32 of byte i of each number in register x, by moving it up, and
// down with its sign.
func (s shape) shifted8(t *text, x, i, to int) {
	if i < 3 {
		t.p("\tVPSLLD $%d, %s, %s", 24-8*i, s.reg(x), s.reg(to))
		x = to
	}
	t.p("\tVPSRAD $24, %s, %s\n\tVCVTDQ2PS %s, %s", s.reg(x), s.reg(to), s.reg(to), s.reg(to))
}

// magic8 makes float32 of byte i of each number in register x, of which the upper
// bytes come down after the lower ones: (x and mask) xor magic, less the bias.
func (s shape) magic8(t *text, x, i, to int) {
	if i == 2 {
		t.p("\tVPSRLD $16, Z%d, Z%d", x, x)
	}
	mask, magic, bias := mask0, magic0, bias0
	if i%2 == 1 {
		mask, magic, bias = mask1, magic1, bias1
	}
	t.p("\tVMOVDQA64 Z%d, Z%d\n\tVPTERNLOGD $0x6c, Z%d, Z%d, Z%d", x, to, mask, magic, to)
	t.p("\tVSUBPS Z%d, Z%d, Z%d", bias, to, to)
}

// amd64Unpack8 makes 16 columns of panels, steps ds bytes apart, of the blocks of a
// group of rows.
func (s shape) amd64Unpack8(t *text) {
	t.p("// func unpack8%s(%s)", s.level, unpack8Args)
	t.p("TEXT ·unpack8%s(SB), NOSPLIT, $0-32", s.level)
	t.p("\tMOVQ dst+0(FP), DI\n\tMOVQ ds+8(FP), R8\n\tMOVQ src+16(FP), SI\n\tMOVQ blocks+24(FP), CX")
	s.constants8(t)
	t.p("\tLEAQ (R8)(R8*2), R9\nloop:\n\tPREFETCHT0 %d(SI)", ahead8)
	for h := range 16 / s.lanes {
		s.convert8(t, fmt.Sprintf("%d(SI)", 32*h), func(i, w int) {
			t.p("\tVMOVUPS %s, %d%s", s.reg(w), 32*h, []string{"(DI)", "(DI)(R8*1)", "(DI)(R8*2)", "(DI)(R9*1)"}[i])
		})
	}
	t.p("\tADDQ $64, SI\n\tLEAQ (DI)(R8*%d), DI\n\tSUBQ $1, CX\n\tJNZ loop\n\tVZEROUPPER\n\tRET\n", s.steps8())
}

// variants8 are the sizes of amd64Few8.
func (s shape) variants8() (all [][2]int) {
	for m := 1; m <= fewest; m++ {
		for g := 1; g <= s.groups8(m); g++ {
			all = append(all, [2]int{m, g})
		}
	}
	return all
}

// int8Files are the kernels of weights of int8.
func int8Files() map[string]*text {
	t := &text{}
	t.p(header + "#include \"textflag.h\"\n")
	data8(t)
	all := []shape{avx2, pairs, avx512}
	for _, s := range all {
		for _, v := range s.variants8() {
			s.amd64Few8(t, v[0], v[1])
		}
		s.amd64Unpack8(t)
	}
	return map[string]*text{"int8_amd64.s": t, "int8_amd64.go": int8Go(all...), "int8_other.go": int8Go()}
}

// int8Go declares the kernels and what chooses between them.
func int8Go(levels ...shape) *text {
	t := &text{}
	t.p(header)
	if len(levels) == 0 {
		t.p("//go:build !amd64\n")
	}
	t.p("package kernel\n")
	for _, s := range levels {
		for _, v := range s.variants8() {
			t.p("//go:noescape\nfunc %s(%s)\n", s.few8(v[0], v[1]), few8Args)
		}
		t.p("//go:noescape\nfunc unpack8%s(%s)\n", s.level, unpack8Args)
	}
	t.p("// groups8 is how many groups of 16 rows of weights of int8 few8 takes at most.")
	t.p("func groups8(l Level, m int) int {")
	for _, s := range levels {
		t.p("if l == %s {\nreturn [...]int{1: %d, 2: %d, 3: %d, 4: %d}[m]\n}", s.is,
			s.groups8(1), s.groups8(2), s.groups8(3), s.groups8(4))
	}
	t.p("return 1\n}\n")
	t.p("// few8 adds products of m rows x, dx bytes apart, with g groups of rows of weights of")
	t.p("// int8, dw bytes apart, to sums [m,16·g]. What begins at next will be\n// read soon. NEON has none.")
	t.p("func few8(l Level, m, g int, %s) {", few8Args)
	choose(t, levels, func(s shape) {
		t.p("switch {")
		for _, v := range s.variants8() {
			t.p("case m == %d && g == %d:\n%s(sums, x, dx, w, dw, next, blocks)", v[0], v[1], s.few8(v[0], v[1]))
		}
		t.p("}")
	})
	t.p("// unpack8 makes 16 columns of panels, with steps ds bytes apart, of the blocks of a")
	t.p("// group of rows of weights of int8.\nfunc unpack8(l Level, %s) {", unpack8Args)
	choose(t, levels, func(s shape) { t.p("unpack8%s(dst, ds, src, blocks)", s.level) })
	return formatted(t)
}
