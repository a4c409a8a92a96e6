// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// armOp is an Advanced SIMD instruction that Go's assembler lacks or spells
// otherwise: its bits but for the registers, and its name for a reader.
type armOp struct {
	bits uint32
	name string // with %d for the registers d, n and m
}

// Arm, "Arm Architecture Reference Manual for A-profile", DDI 0487, C7.2.
var (
	fadd   = armOp{0x4e20d400, "fadd v%d.4s, v%d.4s, v%d.4s"}
	fsub   = armOp{0x4ea0d400, "fsub v%d.4s, v%d.4s, v%d.4s"}
	fmul   = armOp{0x6e20dc00, "fmul v%d.4s, v%d.4s, v%d.4s"}
	fdiv   = armOp{0x6e20fc00, "fdiv v%d.4s, v%d.4s, v%d.4s"}
	fmla   = armOp{0x4e20cc00, "fmla v%d.4s, v%d.4s, v%d.4s"}
	fmls   = armOp{0x4ea0cc00, "fmls v%d.4s, v%d.4s, v%d.4s"}
	fcmgt  = armOp{0x6ea0e400, "fcmgt v%d.4s, v%d.4s, v%d.4s"}
	fcmge  = armOp{0x6e20e400, "fcmge v%d.4s, v%d.4s, v%d.4s"}
	bsl    = armOp{0x6e601c00, "bsl v%d.16b, v%d.16b, v%d.16b"}
	bic    = armOp{0x4e601c00, "bic v%d.16b, v%d.16b, v%d.16b"}
	orr    = armOp{0x4ea01c00, "orr v%d.16b, v%d.16b, v%d.16b"}
	ext8   = armOp{0x6e004000, "ext v%d.16b, v%d.16b, v%d.16b, #8"}
	fmla64 = armOp{0x4e60cc00, "fmla v%d.2d, v%d.2d, v%d.2d"}
	fsqrt  = armOp{0x6ea1f800, "fsqrt v%d.4s, v%d.4s"}
	shl23  = armOp{0x4f375400, "shl v%d.4s, v%d.4s, #23"}
	rev64  = armOp{0x4ea00800, "rev64 v%d.4s, v%d.4s"}
	dup0   = armOp{0x4e040400, "dup v%d.4s, v%d.s[0]"}
	fcvtl  = armOp{0x0e617800, "fcvtl v%d.2d, v%d.2s"}
	fcvtl2 = armOp{0x4e617800, "fcvtl2 v%d.2d, v%d.4s"}

	and     = armOp{0x4e201c00, "and v%d.16b, v%d.16b, v%d.16b"}
	eor     = armOp{0x6e201c00, "eor v%d.16b, v%d.16b, v%d.16b"}
	add32   = armOp{0x4ea08400, "add v%d.4s, v%d.4s, v%d.4s"}
	fcmeq   = armOp{0x4e20e400, "fcmeq v%d.4s, v%d.4s, v%d.4s"}
	uzp2h   = armOp{0x4e405800, "uzp2 v%d.8h, v%d.8h, v%d.8h"}
	uzp1s   = armOp{0x4e801800, "uzp1 v%d.4s, v%d.4s, v%d.4s"}
	uzp2s   = armOp{0x4e805800, "uzp2 v%d.4s, v%d.4s, v%d.4s"}
	umull   = armOp{0x2ea0c000, "umull v%d.2d, v%d.2s, v%d.2s"}
	umull2  = armOp{0x6ea0c000, "umull2 v%d.2d, v%d.4s, v%d.4s"}
	ushr16  = armOp{0x6f300400, "ushr v%d.4s, v%d.4s, #16"}
	shll16  = armOp{0x2e613800, "shll v%d.4s, v%d.4h, #16"}
	shll162 = armOp{0x6e613800, "shll2 v%d.4s, v%d.8h, #16"}
	uxtl    = armOp{0x2f10a400, "ushll v%d.4s, v%d.4h, #0"}
	uxtl2   = armOp{0x6f10a400, "ushll2 v%d.4s, v%d.8h, #0"}

	fadd64  = armOp{0x4e60d400, "fadd v%d.2d, v%d.2d, v%d.2d"}
	fromF16 = armOp{0x0e217800, "fcvtl v%d.4s, v%d.4h"}
	toF16   = armOp{0x0e216800, "fcvtn v%d.4h, v%d.4s"}
	toF162  = armOp{0x4e216800, "fcvtn2 v%d.8h, v%d.4s"}
	sub32   = armOp{0x6ea08400, "sub v%d.4s, v%d.4s, v%d.4s"}
	umax    = armOp{0x6ea06400, "umax v%d.4s, v%d.4s, v%d.4s"}
	ushr8   = armOp{0x6f380400, "ushr v%d.4s, v%d.4s, #8"}
	ushr18  = armOp{0x6f2e0400, "ushr v%d.4s, v%d.4s, #18"}
	ushr31  = armOp{0x6f210400, "ushr v%d.4s, v%d.4s, #31"}
	umin    = armOp{0x6ea06c00, "umin v%d.4s, v%d.4s, v%d.4s"}
	cmtst   = armOp{0x4ea08c00, "cmtst v%d.4s, v%d.4s, v%d.4s"}
	cmlt0   = armOp{0x4ea0a800, "cmlt v%d.4s, v%d.4s, #0"}
	cmhi    = armOp{0x6ea03400, "cmhi v%d.4s, v%d.4s, v%d.4s"}
	cmeq    = armOp{0x6ea08c00, "cmeq v%d.4s, v%d.4s, v%d.4s"}
	tbl     = armOp{0x4e000000, "tbl v%d.16b, { v%d.16b }, v%d.16b"}
	addv    = armOp{0x4eb1b800, "addv s%d, v%d.4s"}
)

// armOps are all of them.
var armOps = []armOp{
	fadd, fsub, fmul, fdiv, fmla, fmls, fcmgt, fcmge, bsl, bic, orr, ext8, fmla64,
	fsqrt, shl23, rev64, dup0, fcvtl, fcvtl2,
	and, eor, add32, fcmeq, uzp2h, uzp1s, uzp2s, umull, umull2,
	ushr16, shll16, shll162, uxtl, uxtl2,
	fadd64, fromF16, toF16, toF162, sub32, umax, ushr8, cmtst, cmlt0, addv, cmhi, cmeq, tbl,
	ushr18, ushr31, umin,
}

// word is the instruction on registers d, n and perhaps m.
func (o armOp) word(d, n int, m ...int) uint32 {
	w := o.bits | uint32(d) | uint32(n)<<5
	for _, m := range m {
		w |= uint32(m) << 16
	}
	return w
}

// source is the instruction as Arm writes it.
func (o armOp) source(d, n int, m ...int) string {
	regs := []any{d, n}
	for _, m := range m {
		regs = append(regs, m)
	}
	return fmt.Sprintf(o.name, regs...)
}

// arm writes an instruction.
func (t *text) arm(o armOp, d, n int, m ...int) {
	t.p("\tWORD $%#08x // %s", o.word(d, n, m...), o.source(d, n, m...))
}
