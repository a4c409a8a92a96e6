// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

func arm64Gemm(s shape) *text {
	t := &text{}
	t.p(header + "#include \"textflag.h\"\n")
	for m := 1; m <= s.rows; m++ {
		for v := 1; v <= s.vecs; v++ {
			s.arm64Tile(t, m, v)
		}
	}
	s.arm64Copy(t)
	s.arm64Transpose(t)
	s.arm64Peak(t)
	return t
}

// vectors is a list of whole registers.
func vectors(first, n int) string {
	list := ""
	for i := range n {
		if i > 0 {
			list += ", "
		}
		list += fmt.Sprintf("V%d.S4", first+i)
	}
	return "[" + list + "]"
}

func arm64Args(t *text, names []string, regs []int) {
	for i, n := range names {
		t.p("\tMOVD %s+%d(FP), R%d", n, 8*i, regs[i])
	}
}

// arm64Tile: R0 … R7 rows of A, R8 their step; R9 b, R10 its step; R11 c, R12
// its row distance; R13 steps left; R14 rows of C as they go.
func (s shape) arm64Tile(t *text, m, v int) {
	t.p("// func %s(%s)", s.tile(m, v), tileArgs)
	t.p("TEXT ·%s(SB), NOSPLIT, $0-80", s.tile(m, v))
	arm64Args(t, []string{"k", "a", "as", "ap", "b", "bs", "c", "ldc"}, []int{13, 0, 14, 8, 9, 10, 11, 12})
	for r := 1; r < m; r++ {
		t.p("\tADD R14, R%d, R%d", r-1, r)
	}
	t.p("\tMOVD next+72(FP), R14\n\tCBZ R14, begin")
	for r := range m {
		t.p("\tPRFM (R14), PLDL1KEEP")
		if r+1 < m {
			t.p("\tADD R12, R14, R14")
		}
	}
	t.p("begin:\n\tMOVBU acc+64(FP), R14\n\tCBZ R14, clear\n\tMOVD R11, R14")
	for r := range m {
		t.p("\tVLD1 (R14), %s", vectors(r*v, v))
		if r+1 < m {
			t.p("\tADD R12, R14, R14")
		}
	}
	t.p("\tB loop\nclear:")
	for i := range m * v {
		t.p("\tVEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	b0 := m * v
	t.p("loop:\n\tVLD1 (R9), %s\n\tADD R10, R9, R9", vectors(b0, v))
	for r := range m {
		x := b0 + v + r%4
		t.p("\tVLD1R.P (R%d)(R8), [V%d.S4]", r, x)
		for i := range v {
			t.p("\tVFMLA V%d.S4, V%d.S4, V%d.S4", b0+i, x, r*v+i)
		}
	}
	t.p("\tSUB $1, R13, R13\n\tCBNZ R13, loop")
	for r := range m {
		t.p("\tVST1 %s, (R11)", vectors(r*v, v))
		if r+1 < m {
			t.p("\tADD R12, R11, R11")
		}
	}
	t.p("\tRET\n")
}

// arm64Copy copies k rows of so many vectors, with distances in bytes.
func (s shape) arm64Copy(t *text) {
	t.p("// func pack%s(%s)", s.level, packArgs)
	t.p("TEXT ·pack%s(SB), NOSPLIT, $0-48", s.level)
	arm64Args(t, []string{"dst", "ds", "src", "ss", "k", "vecs"}, []int{0, 1, 2, 3, 4, 5})
	t.p("row:\n\tMOVD R0, R6\n\tMOVD R2, R7\n\tMOVD R5, R8")
	t.p("column:\n\tVLD1.P 16(R7), [V0.S4]\n\tVST1.P [V0.S4], 16(R6)\n\tSUB $1, R8, R8\n\tCBNZ R8, column")
	t.p("\tADD R1, R0, R0\n\tADD R3, R2, R2\n\tSUB $1, R4, R4\n\tCBNZ R4, row\n\tRET\n")
}

// arm64Transpose writes blocks of 4 by 4 turned.
func (s shape) arm64Transpose(t *text) {
	t.p("// func trans%s(%s)", s.level, transArgs)
	t.p("TEXT ·trans%s(SB), NOSPLIT, $0-40", s.level)
	arm64Args(t, []string{"dst", "ds", "src", "at", "blocks"}, []int{0, 1, 2, 3, 4})
	for i := range 4 {
		t.p("\tMOVD %d(R3), R%d\n\tADD R2, R%d, R%d", 8*i, 5+i, 5+i, 5+i)
	}
	t.p("loop:")
	for i := range 4 {
		t.p("\tVLD1.P 16(R%d), [V%d.S4]", 5+i, i)
	}
	for i := 0; i < 4; i += 2 { // pairs of rows
		t.p("\tVTRN1 V%d.S4, V%d.S4, V%d.S4\n\tVTRN2 V%d.S4, V%d.S4, V%d.S4", i+1, i, 4+i, i+1, i, 5+i)
	}
	for c := range 4 { // column c
		op := []string{"VTRN1", "VTRN2"}[c/2]
		t.p("\t%s V%d.D2, V%d.D2, V8.D2\n\tVST1 [V8.S4], (R0)\n\tADD R1, R0, R0", op, 6+c%2, 4+c%2)
	}
	t.p("\tSUB $1, R4, R4\n\tCBNZ R4, loop\n\tRET\n")
}

// arm64Peak is rounds of independent multiplications and additions in registers.
func (s shape) arm64Peak(t *text) {
	n := s.rows * s.vecs
	t.p("// func peak%s(rounds int)", s.level)
	t.p("TEXT ·peak%s(SB), NOSPLIT, $0-8\n\tMOVD rounds+0(FP), R0", s.level)
	for i := range n + 2 {
		t.p("\tVEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	t.p("loop:")
	for i := range n {
		t.p("\tVFMLA V%d.S4, V%d.S4, V%d.S4", n, n+1, i)
	}
	t.p("\tSUB $1, R0, R0\n\tCBNZ R0, loop\n\tRET\n")
}
