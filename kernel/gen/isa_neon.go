// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// isaNEON has 7 vectors; V28 to V31 are scratch.
type isaNEON struct{}

func (isaNEON) level() string   { return "NEON" }
func (isaNEON) parts() int      { return 4 }
func (isaNEON) vectors() int    { return 7 }
func (isaNEON) hoists() bool    { return false }
func (isaNEON) exponents() bool { return false }
func (isaNEON) aliases() bool   { return false }
func (isaNEON) scratch() [2]int { return [2]int{31, 30} }

func (isaNEON) gprs() []string {
	r := make([]string, 16)
	for i := range r {
		r[i] = fmt.Sprintf("R%d", i)
	}
	return r
}

func (isaNEON) argument(t *text, name string, off int, reg string) {
	t.p("\tMOVD %s+%d(FP), %s", name, off, reg)
}

func (isaNEON) uniform(t *text, reg int, k *kern, u *uniform) {
	t.p("\tFMOVS %s, F%d", k.where(u), reg)
	t.arm(dup0, reg, reg)
}

func (isaNEON) memory(t *text, o code, reg int, p string, off int) {
	switch o {
	case opLoad:
		t.p("\tFMOVQ %d(%s), F%d", off, p, reg)
	case opSpread:
		t.p("\tFMOVS %d(%s), F%d", off, p, reg)
		t.arm(dup0, reg, reg)
	case opStore:
		t.p("\tFMOVQ F%d, %d(%s)", reg, off, p)
	case opStoreOne:
		t.p("\tFMOVS F%d, %d(%s)", reg, off, p)
	}
}

func (isaNEON) loadWords(t *text, o code, d []int, p string, off int) {
	ops := [2]armOp{shll16, shll162}
	if o == opExtend {
		ops = [2]armOp{uxtl, uxtl2}
	}
	for i := 0; i < 4; i += 2 {
		t.p("\tFMOVQ %d(%s), F%d", off+8*i, p, d[i+1])
		t.arm(ops[0], d[i], d[i+1])
		t.arm(ops[1], d[i+1], d[i+1])
	}
}

func (isaNEON) storeHalves(t *text, a []int, p string, off int) {
	for i := 0; i < 4; i += 2 {
		t.arm(uzp2h, 31, a[i], a[i+1])
		t.p("\tFMOVQ F31, %d(%s)", off+8*i, p)
	}
}

func (isaNEON) loadF16(t *text, d []int, p string, off int) {
	for i, r := range d {
		t.p("\tFMOVD %d(%s), F%d", off+8*i, p, r)
		t.arm(fromF16, r, r)
	}
}

func (isaNEON) storeF16(t *text, a []int, p string, off int) {
	for i := 0; i < 4; i += 2 {
		t.arm(toF16, 31, a[i])
		t.arm(toF162, 31, a[i+1])
		t.p("\tFMOVQ F31, %d(%s)", off+8*i, p)
	}
}

func (isaNEON) mask(k *kern, d []int, p string, off int) {
	t, at := &k.asm, k.gpr[k.local("at")]
	t.p("\tMOVHU %d(%s), %s\n\tFMOVS %s, F31", off, p, at, at)
	t.arm(dup0, 31, 31)
	for i, r := range d {
		t.p("\tMOVD $%s, %s\n\tFMOVQ (%s), F30", k.eachBit(4*i, 4), at, at)
		t.arm(cmtst, r, 31, 30)
	}
}

func (isaNEON) negative(k *kern, a []int, p string, off int) {
	t, at := &k.asm, k.gpr[k.local("at")]
	for i, r := range a {
		t.p("\tMOVD $%s, %s\n\tFMOVQ (%s), F30", k.eachBit(4*i, 4), at, at)
		t.arm(cmlt0, 29, r)
		t.arm(and, 29, 29, 30)
		if i == 0 {
			t.arm(orr, 31, 29, 29)
		} else {
			t.arm(orr, 31, 31, 29)
		}
	}
	t.arm(addv, 31, 31)
	t.p("\tFMOVS F31, %s\n\tMOVH %s, %d(%s)", at, at, off, p)
}

func (isaNEON) result(t *text, reg, off int) { t.p("\tFMOVS F%d, ret+%d(FP)", reg, off) }

var neonOps = map[code]armOp{
	opAdd: fadd, opSub: fsub, opMul: fmul, opDiv: fdiv, opFMA: fmla, opFNMA: fmls,
	opAnd: and, opOr: orr, opPlus: add32,
	opAbove: fcmgt, opAtLeast: fcmge, opEqual: fcmeq, opLarger: umax, opSmaller: umin, opMinus: sub32,
}

func (s isaNEON) lanewise(t *text, o code, d int, a []int) {
	switch o {
	case opCopy:
		t.arm(orr, d, a[0], a[0])
	case opSqrt:
		t.arm(fsqrt, d, a[0])
	case opShift:
		t.arm(shl23, d, a[0])
	case opHigh:
		t.arm(ushr16, d, a[0])
	case opDown:
		t.arm(ushr8, d, a[0])
	case opBucket:
		t.arm(ushr18, d, a[0])
	case opSigns:
		t.arm(cmlt0, d, a[0])
	case opSign:
		t.arm(ushr31, d, a[0])
	case opSelect:
		t.arm(orr, 29, a[2], a[2])
		t.arm(bsl, 29, a[0], a[1])
		t.arm(orr, d, 29, 29)
	case opWithin:
		t.arm(fcmge, 29, a[2], a[1])
		t.arm(and, d, a[0], 29)
	case opIfNaN:
		t.arm(fcmeq, 29, a[2], a[2])
		t.arm(bsl, 29, a[1], a[0])
		t.arm(orr, d, 29, 29)
	case opMin:
		pick(t, d, a[1], a[0], a[0], a[1])
	case opMax:
		pick(t, d, a[0], a[1], a[0], a[1])
	case opFMA, opFNMA:
		if d != a[2] {
			t.arm(orr, d, a[2], a[2])
		}
		t.arm(neonOps[o], d, a[0], a[1])
	case opKeep:
		t.arm(fmul, 29, a[0], a[1])
		t.arm(fcmge, 28, a[3], a[2])
		t.arm(bic, d, 29, 28)
	default:
		t.arm(neonOps[o], d, a[0], a[1])
	}
}

// pick is d = a where x > y, else b. Arm's own minimum and maximum differ
// from those of amd64 for NaN and for zeros.
func pick(t *text, d, x, y, a, b int) {
	t.arm(fcmgt, 29, x, y)
	t.arm(bsl, 29, a, b)
	t.arm(orr, d, 29, 29)
}

func (s isaNEON) across(t *text, o code, d []int, a [][]int) {
	x := a[0]
	if o == opSquares || o == opProducts || o == opAdd64 {
		s.across64(t, o, a)
		return
	}
	fold := func(d, x, y int) { s.lanewise(t, map[code]code{opSum: opAdd, opHighest: opMax}[o], d, []int{x, y}) }
	fold(31, x[0], x[2])
	fold(30, x[1], x[3])
	fold(31, 31, 30)
	t.arm(ext8, 30, 31, 31)
	fold(31, 31, 30)
	t.arm(rev64, 30, 31)
	fold(d[0], 31, 30)
}

// across64 adds to 16 float64: two lanes of a vector to each register.
func (s isaNEON) across64(t *text, o code, a [][]int) {
	n := len(a)
	for i, sum := range slices.Concat(a[n-2], a[n-1]) {
		wide := []armOp{fcvtl, fcvtl2}[i%2]
		t.arm(wide, 31, a[0][i/2])
		switch o {
		case opSquares:
			t.arm(fmla64, sum, 31, 31)
		case opProducts:
			t.arm(wide, 30, a[1][i/2])
			t.arm(fmla64, sum, 31, 30)
		case opAdd64:
			t.arm(fadd64, sum, sum, 31)
		}
	}
}

func (isaNEON) copy(t *text, src, dst string) { t.p("\tMOVD %s, %s", src, dst) }

func (isaNEON) add(t *text, by any, reg string) {
	if n, ok := by.(int); ok {
		by = fmt.Sprintf("$%d", n)
	}
	t.p("\tADD %s, %s, %s", by, reg, reg)
}

func (isaNEON) jumpZero(t *text, reg, label string) { t.p("\tCBZ %s, %s", reg, label) }

func (isaNEON) down(t *text, by int, reg, label string) {
	t.p("\tSUB $%d, %s, %s\n\tCBNZ %s, %s", by, reg, reg, reg, label)
}

func (isaNEON) end(t *text) { t.p("\tRET\n") }
