// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// amd64 is what AVX-512 and AVX2 share; r is the letter of their registers.
type amd64 struct{ r string }

var x86 = map[code]string{
	opAdd: "VADDPS", opSub: "VSUBPS", opMul: "VMULPS", opDiv: "VDIVPS",
	opMin: "VMINPS", opMax: "VMAXPS", opFMA: "VFMADD", opFNMA: "VFNMADD",
	opAnd: "VANDPS", opOr: "VORPS", opPlus: "VPADDD",
	opLarger: "VPMAXUD", opSmaller: "VPMINUD", opMinus: "VPSUBD",
}

// downs is by how much bits are moved down.
var downs = map[code]int{opHigh: 16, opDown: 8, opBucket: 18, opSign: 31}

// compares are predicates of VCMPPS that are false for NaN and quiet.
var compares = map[code]int{opEqual: 0, opAtLeast: 29, opAbove: 30}

func (s amd64) gprs() []string {
	return []string{"DI", "SI", "DX", "CX", "BX", "AX", "R8", "R9", "R10", "R11", "R12", "R13"}
}

func (s amd64) aliases() bool { return true }

func (s amd64) argument(t *text, name string, off int, reg string) {
	t.p("\tMOVQ %s+%d(FP), %s", name, off, reg)
}

func (s amd64) uniform(t *text, reg int, k *kern, u *uniform) {
	t.p("\tVBROADCASTSS %s, %s%d", k.where(u), s.r, reg)
}

func (s amd64) memory(t *text, o code, reg int, p string, off int) {
	switch o {
	case opLoad:
		t.p("\tVMOVUPS %d(%s), %s%d", off, p, s.r, reg)
	case opSpread:
		t.p("\tVBROADCASTSS %d(%s), %s%d", off, p, s.r, reg)
	case opStore:
		t.p("\tVMOVUPS %s%d, %d(%s)", s.r, reg, off, p)
	case opStoreOne:
		t.p("\tVMOVSS X%d, %d(%s)", reg, off, p)
	case opExtend:
		t.p("\tVPMOVZXWD %d(%s), %s%d", off, p, s.r, reg)
	case opWiden:
		t.p("\tVPMOVZXWD %d(%s), %s%d", off, p, s.r, reg)
		t.p("\tVPSLLD $16, %s%d, %s%d", s.r, reg, s.r, reg)
	}
}

func (s amd64) result(t *text, reg, off int) { t.p("\tVMOVSS X%d, ret+%d(FP)", reg, off) }

func (s amd64) lanewise(t *text, o code, d int, a []int) {
	r, name := s.r, x86[o]
	switch o {
	case opCopy:
		t.p("\tVMOVAPS %s%d, %s%d", r, a[0], r, d)
	case opSqrt:
		t.p("\tVSQRTPS %s%d, %s%d", r, a[0], r, d)
	case opShift:
		t.p("\tVPSLLD $23, %s%d, %s%d", r, a[0], r, d)
	case opHigh, opDown, opBucket, opSign:
		t.p("\tVPSRLD $%d, %s%d, %s%d", downs[o], r, a[0], r, d)
	case opSigns:
		t.p("\tVPSRAD $31, %s%d, %s%d", r, a[0], r, d)
	case opFMA, opFNMA:
		s.fused(t, name, d, a)
	default:
		t.p("\t%s %s%d, %s%d, %s%d", name, r, a[1], r, a[0], r, d)
	}
}

// fused chooses the form of an FMA, of which the result replaces an operand.
func (s amd64) fused(t *text, name string, d int, a []int) {
	form, x, y := "231PS", a[1], a[0]
	switch {
	case d == a[2]:
	case d == a[0]:
		form, x, y = "213PS", a[2], a[1]
	case d == a[1]:
		form, x, y = "213PS", a[2], a[0]
	default:
		t.p("\tVMOVAPS %s%d, %s%d", s.r, a[2], s.r, d)
	}
	t.p("\t%s%s %s%d, %s%d, %s%d", name, form, s.r, x, s.r, y, s.r, d)
}

func (s amd64) copy(t *text, src, dst string) { t.p("\tMOVQ %s, %s", src, dst) }

func (s amd64) add(t *text, by any, reg string) {
	if n, ok := by.(int); ok {
		by = fmt.Sprintf("$%d", n)
	}
	t.p("\tADDQ %s, %s", by, reg)
}

func (s amd64) jumpZero(t *text, reg, label string) {
	t.p("\tTESTQ %s, %s\n\tJZ %s", reg, reg, label)
}

func (s amd64) down(t *text, by int, reg, label string) {
	t.p("\tSUBQ $%d, %s\n\tJNZ %s", by, reg, label)
}

func (s amd64) end(t *text) { t.p("\tVZEROUPPER\n\tRET\n") }
