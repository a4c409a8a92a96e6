// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// A product's inner loop is a tile: m rows by v vectors of C in registers, to
// which k steps add an outer product each. A step loads v vectors of B and
// broadcasts m numbers of A.

// shape is the largest tile of a level, and the names of its instructions.
type shape struct {
	level  string // the suffix of functions
	is     string // the level's constant
	lanes  int    // floats in a vector
	rows   int    // of the tile
	vecs   int    // of the tile
	names  int    // registers
	prefix string // of a register
	zero   string // the instruction that clears one
}

// pairs is AVX-512 with another product: a float is a pair of bf16 numbers, of
// which both products are added.
var (
	avx512 = shape{"AVX512", "AVX512", 16, 8, 3, 32, "Z", "VPXORD"}
	avx2   = shape{"AVX2", "AVX2", 8, 6, 2, 16, "Y", "VXORPS"}
	neon   = shape{"NEON", "NEON", 4, 8, 3, 32, "V", ""}
	pairs  = shape{"Pairs", "pairs", 16, 8, 3, 32, "Z", "VPXORD"}
)

// multiplyAdd is acc += x·y for registers.
func (s shape) multiplyAdd(t *text, x, y, acc int) {
	if s == pairs {
		t.p("\t%s // VDPBF16PS Z%d, Z%d, Z%d", vdpbf16ps(x, y, acc), x, y, acc)
		return
	}
	t.p("\tVFMADD231PS %s, %s, %s", s.reg(x), s.reg(y), s.reg(acc))
}

// gemmFiles are the kernels of matrix products.
func gemmFiles() map[string]*text {
	files := map[string]*text{
		"gemm_avx512_amd64.s": amd64Gemm(avx512),
		"gemm_pairs_amd64.s":  amd64Gemm(pairs),
		"gemm_avx2_amd64.s":   amd64Gemm(avx2),
		"gemm_neon_arm64.s":   arm64Gemm(neon),
		"gemm_amd64.go":       gemmGo(avx2, pairs, avx512),
		"gemm_arm64.go":       gemmGo(neon),
		"gemm_other.go":       gemmGo(),
	}
	return files
}

func (s shape) tile(m, v int) string { return fmt.Sprintf("tile%s_%dx%d", s.level, m, v) }

// reg is register i as a whole.
func (s shape) reg(i int) string { return fmt.Sprintf("%s%d", s.prefix, i) }

const tileArgs = "k int, a *float32, as, ap int, b *float32, bs int, c *float32, ldc int, acc bool, next *float32"

const tilesArgs = "k int, a *float32, as, ap int, b *float32, bs, bnext int, c *float32, ldc int, acc bool, groups, panels int"

const (
	packArgs  = "dst *float32, ds int, src *float32, ss int, k int, vecs int"
	weaveArgs = "dst *float32, ds int, src *uint16, ss int, k int, vecs int"
	fewArgs   = "sums *float32, x *float32, dx int, w *float32, at *[16]int, next *float32, blocks int"

	fewWidenedArgs = "sums *float32, x *float32, dx int, w *uint16, at *[16]int, next *uint16, blocks int"
	transArgs      = "dst *float32, ds int, src *float32, at *[16]int, blocks int"
)

func amd64Gemm(s shape) *text {
	t := &text{}
	t.p(header + "#include \"textflag.h\"\n")
	for m := 1; m <= s.rows; m++ {
		for v := 1; v <= s.vecs; v++ {
			s.amd64Tile(t, m, v)
		}
	}
	for v := 1; v <= s.vecs; v++ {
		s.amd64Tiles(t, v)
	}
	if s == pairs {
		s.weave(t)
	} else {
		s.amd64Copy(t)
		s.transposition(t)
	}
	for m := 1; m <= fewest; m++ {
		s.amd64Few(t, m, false)
		if s != pairs {
			s.amd64Few(t, m, true)
		}
	}
	s.amd64Peak(t)
	return t
}

// amd64Tile: AX a, R8 its row distance, R9 its step; BX b, R10 its step; CX c,
// DI its row distance; DX steps left; R13 the next c. Rows of A are reached by
// odd multiples of R8 in SI, R11, R12.
func (s shape) amd64Tile(t *text, m, v int) {
	t.p("// func %s(%s)", s.tile(m, v), tileArgs)
	t.p("TEXT ·%s(SB), NOSPLIT, $0-80", s.tile(m, v))
	for i, r := range []string{"DX", "AX", "R8", "R9", "BX", "R10", "CX", "DI"} {
		t.p("\tMOVQ %s+%d(FP), %s", []string{"k", "a", "as", "ap", "b", "bs", "c", "ldc"}[i], 8*i, r)
	}
	t.p("\tMOVQ next+72(FP), R13\n\tTESTQ R13, R13\n\tJZ begin")
	s.amd64Ahead(t, m, v)
	s.amd64Inner(t, m, v, 64)
	t.p("\tVZEROUPPER\n\tRET\n")
}

// amd64Tiles is rows of whole tiles: for each, so many panels of b. What goes on
// from tile to tile is in the frame: 0(SP) rows of tiles left, 8(SP) panels left,
// 16(SP) b, 24(SP) c.
func (s shape) amd64Tiles(t *text, v int) {
	m, wide := s.rows, v*s.lanes*4
	t.p("// func tiles%s_%d(%s)", s.level, v, tilesArgs)
	t.p("TEXT ·tiles%s_%d(SB), NOSPLIT, $32-96", s.level, v)
	t.p("\tMOVQ groups+80(FP), AX\n\tMOVQ AX, 0(SP)")
	for i, r := range []string{"R8", "R9", "R10", "DI"} {
		t.p("\tMOVQ %s+%d(FP), %s", []string{"as", "ap", "bs", "ldc"}[i], []int{16, 24, 40, 64}[i], r)
	}
	t.p("group:\n\tMOVQ panels+88(FP), AX\n\tMOVQ AX, 8(SP)\n\tMOVQ b+32(FP), AX\n\tMOVQ AX, 16(SP)")
	t.p("\tMOVQ c+56(FP), AX\n\tMOVQ AX, 24(SP)")
	// The tile after the last one of a row is the first one below it.
	t.p("panel:\n\tMOVQ 24(SP), R13\n\tADDQ $%d, R13\n\tCMPQ 8(SP), $1\n\tJNE ahead", wide)
	t.p("\tMOVQ DI, R13\n\tIMULQ $%d, R13\n\tADDQ c+56(FP), R13\nahead:", m)
	s.amd64Ahead(t, m, v)
	t.p("\tMOVQ k+0(FP), DX\n\tMOVQ a+8(FP), AX\n\tMOVQ 16(SP), BX\n\tMOVQ 24(SP), CX")
	s.amd64Inner(t, m, v, 72)
	t.p("\tMOVQ bnext+48(FP), AX\n\tADDQ AX, 16(SP)\n\tADDQ $%d, 24(SP)\n\tSUBQ $1, 8(SP)\n\tJNZ panel", wide)
	for _, x := range [][2]string{{"R8", "a+8(FP)"}, {"DI", "c+56(FP)"}} {
		t.p("\tMOVQ %s, AX\n\tIMULQ $%d, AX\n\tADDQ AX, %s", x[0], m, x[1])
	}
	t.p("\tSUBQ $1, 0(SP)\n\tJNZ group\n\tVZEROUPPER\n\tRET\n")
}

// amd64Inner is a tile with its operands in registers; acc is the argument at that
// offset.
func (s shape) amd64Inner(t *text, m, v, acc int) {
	t.p("begin:")
	odd := map[int]string{1: "R8", 3: "SI", 5: "R11", 7: "R12"}
	if m > 3 {
		t.p("\tLEAQ (R8)(R8*2), SI")
	}
	if m > 5 {
		t.p("\tLEAQ (R8)(R8*4), R11")
	}
	if m > 7 {
		t.p("\tLEAQ (SI)(R8*4), R12")
	}
	s.amd64Begin(t, m, v, acc)
	row := func(r int) string {
		if r == 0 {
			return "(AX)"
		}
		n := 1
		for r%2 == 0 {
			r, n = r/2, n*2
		}
		return fmt.Sprintf("(AX)(%s*%d)", odd[r], n)
	}
	b0, free := m*v, s.names-m*v-v
	step := func(u int) {
		t.p("\tPREFETCHT1 %s", strings.Replace(row(u%m), "AX", "R13", 1))
		for i := range v {
			t.p("\tVMOVUPS %d(BX), %s", i*s.lanes*4, s.reg(b0+i))
		}
		for r := range m {
			x := b0 + v + r%min(free, 4)
			t.p("\tVBROADCASTSS %s, %s", row(r), s.reg(x))
			for i := range v {
				s.multiplyAdd(t, b0+i, x, r*v+i)
			}
		}
		t.p("\tADDQ R9, AX\n\tADDQ R9, R13\n\tADDQ R10, BX")
	}
	t.p("\tMOVQ R8, R13\n\tIMULQ $%d, R13\n\tADDQ AX, R13", m)
	const unroll = 8
	t.p("\tSUBQ $%d, DX\n\tJLT rest\n\tPCALIGN $32\nloop:", unroll)
	for u := range unroll {
		step(u)
	}
	t.p("\tSUBQ $%d, DX\n\tJGE loop\nrest:\n\tADDQ $%d, DX\n\tJZ store\ntail:", unroll, unroll)
	step(0)
	t.p("\tSUBQ $1, DX\n\tJNZ tail\nstore:")
	for r := range m {
		for i := range v {
			t.p("\tVMOVUPS %s, %d(CX)", s.reg(r*v+i), i*s.lanes*4)
		}
		if r+1 < m {
			t.p("\tADDQ DI, CX")
		}
	}
}

// amd64Ahead prefetches the rows of C at R13.
func (s shape) amd64Ahead(t *text, m, v int) {
	for r := range m {
		for at := 0; at < v*s.lanes*4; at += 64 {
			t.p("\tPREFETCHT0 %d(R13)", at)
		}
		if r+1 < m {
			t.p("\tADDQ DI, R13")
		}
	}
}

// amd64Begin loads C or clears it.
func (s shape) amd64Begin(t *text, m, v, acc int) {
	t.p("\tMOVBLZX acc+%d(FP), R13\n\tTESTL R13, R13\n\tJZ clear\n\tMOVQ CX, R13", acc)
	for r := range m {
		for i := range v {
			t.p("\tVMOVUPS %d(R13), %s", i*s.lanes*4, s.reg(r*v+i))
		}
		if r+1 < m {
			t.p("\tADDQ DI, R13")
		}
	}
	t.p("\tJMP begun\nclear:")
	for i := range m * v {
		t.p("\t%s %s, %s, %s", s.zero, s.reg(i), s.reg(i), s.reg(i))
	}
	t.p("begun:")
}

// amd64Copy copies k rows of so many vectors, with distances in bytes.
func (s shape) amd64Copy(t *text) {
	t.p("// func pack%s(%s)", s.level, packArgs)
	t.p("TEXT ·pack%s(SB), NOSPLIT, $0-48", s.level)
	for i, r := range []string{"DI", "R8", "SI", "R9", "DX", "CX"} {
		t.p("\tMOVQ %s+%d(FP), %s", []string{"dst", "ds", "src", "ss", "k", "vecs"}[i], 8*i, r)
	}
	bytes := s.lanes * 4
	t.p("\tIMULQ $%d, CX", bytes)
	for v := s.vecs; v > 1; v-- {
		t.p("\tCMPQ CX, $%d\n\tJEQ loop%d", v*bytes, v)
	}
	// Any width: AX walks along a row.
	t.p("row:\n\tXORL AX, AX\ncolumn:\n\tVMOVUPS (SI)(AX*1), %s\n\tVMOVUPS %s, (DI)(AX*1)", s.reg(0), s.reg(0))
	t.p("\tADDQ $%d, AX\n\tCMPQ AX, CX\n\tJLT column\n\tADDQ R9, SI\n\tADDQ R8, DI\n\tSUBQ $1, DX\n\tJNZ row", bytes)
	t.p("\tVZEROUPPER\n\tRET")
	for v := s.vecs; v > 1; v-- {
		t.p("loop%d:", v)
		for at := 0; at < v*bytes; at += 64 {
			t.p("\tPREFETCHT0 %d(SI)(R9*8)", at)
		}
		for i := range v {
			t.p("\tVMOVUPS %d(SI), %s", i*bytes, s.reg(i))
		}
		for i := range v {
			t.p("\tVMOVUPS %s, %d(DI)", s.reg(i), i*bytes)
		}
		t.p("\tADDQ R9, SI\n\tADDQ R8, DI\n\tSUBQ $1, DX\n\tJNZ loop%d\n\tVZEROUPPER\n\tRET", v)
	}
	t.p("")
}

// weave makes pairs of two rows of bf16 numbers, for k pairs of rows and so many
// vectors of pairs: dst[p,i] = (src[2p,i], src[2p+1,i]).
func (s shape) weave(t *text) {
	t.p("// func weave%s(%s)", s.level, weaveArgs)
	t.p("TEXT ·weave%s(SB), NOSPLIT, $0-48", s.level)
	for i, r := range []string{"DI", "R8", "SI", "R9", "DX", "CX"} {
		t.p("\tMOVQ %s+%d(FP), %s", []string{"dst", "ds", "src", "ss", "k", "vecs"}[i], 8*i, r)
	}
	t.p("row:\n\tMOVQ SI, AX\n\tMOVQ DI, BX\n\tMOVQ CX, R10")
	t.p("column:\n\tVPMOVZXWD (AX), Z0\n\tVPMOVZXWD (AX)(R9*1), Z1\n\tPREFETCHT0 (AX)(R9*8)")
	t.p("\tVPSLLD $16, Z1, Z1\n\tVPORD Z0, Z1, Z0\n\tVMOVUPS Z0, (BX)")
	t.p("\tADDQ $32, AX\n\tADDQ $64, BX\n\tSUBQ $1, R10\n\tJNZ column")
	t.p("\tLEAQ (SI)(R9*2), SI\n\tADDQ R8, DI\n\tSUBQ $1, DX\n\tJNZ row\n\tVZEROUPPER\n\tRET\n")
}

// transposition: DI dst, DX its row distance, SI src, R8 the offsets of its rows,
// CX blocks.
func (s shape) transposition(t *text) {
	t.p("// func trans%s(%s)", s.level, transArgs)
	t.p("TEXT ·trans%s(SB), NOSPLIT, $0-40", s.level)
	for i, r := range []string{"DI", "DX", "SI", "R8", "CX"} {
		t.p("\tMOVQ %s+%d(FP), %s", []string{"dst", "ds", "src", "at", "blocks"}[i], 8*i, r)
	}
	t.p("loop:")
	s.turn(t, false, func(_, x int) { t.p("\tVMOVUPS %s, (DI)\n\tADDQ DX, DI", s.reg(x)) })
	t.p("\tADDQ $%d, SI\n\tSUBQ $1, CX\n\tJNZ loop\n\tVZEROUPPER\n\tRET\n", 4*s.lanes)
}

// turn loads a square block, of bf16 numbers if they are to be widened, and turns
// it: f gets each column in a register, and may use those between that one and the
// next fourteen or six.
func (s shape) turn(t *text, widen bool, f func(col, x int)) {
	for i := range s.lanes {
		t.p("\tMOVQ %d(R8), R9", i*8)
		if widen {
			t.p("\tVPMOVZXWD (SI)(R9*1), %s\n\tVPSLLD $16, %s, %s", s.reg(i), s.reg(i), s.reg(i))
		} else {
			t.p("\tVMOVUPS (SI)(R9*1), %s", s.reg(i))
		}
	}
	if s.lanes == 16 {
		turn16(t, f)
	} else {
		turn8(t, f)
	}
}

// turn16: rounds of shuffles by pairs, quads, and twice by 128-bit lanes.
func turn16(t *text, f func(col, x int)) {
	for i := 0; i < 16; i += 2 {
		t.p("\tVUNPCKLPS Z%d, Z%d, Z%d\n\tVUNPCKHPS Z%d, Z%d, Z%d", i+1, i, 16+i, i+1, i, 17+i)
	}
	for q := 0; q < 16; q += 4 {
		for h, op := range []string{"VUNPCKLPD", "VUNPCKHPD"} {
			t.p("\t%s Z%d, Z%d, Z%d\n\t%s Z%d, Z%d, Z%d", op, 18+q, 16+q, q+h, op, 19+q, 17+q, q+2+h)
		}
	}
	// Z(4g+c) has column 4l+c of rows 4g … 4g+3 in lane l.
	for c := range 4 {
		for half := range 2 { // rows of the upper or lower eight
			lo, hi := 8*half+c, 8*half+4+c
			t.p("\tVSHUFF32X4 $0x88, Z%d, Z%d, Z%d", hi, lo, 16+c+4*half) // lanes 0, 2
			t.p("\tVSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", hi, lo, 24+c+4*half) // lanes 1, 3
		}
	}
	for col := range 16 {
		lane, c := col/4, col%4
		from, imm := 16+c, 0x88
		if lane%2 == 1 {
			from += 8
		}
		if lane >= 2 {
			imm = 0xdd
		}
		t.p("\tVSHUFF32X4 $%#x, Z%d, Z%d, Z%d", imm, from+4, from, col%2)
		f(col, col%2)
	}
}

// turn8: the same for eight.
func turn8(t *text, f func(col, x int)) {
	for i := 0; i < 8; i += 2 {
		t.p("\tVUNPCKLPS Y%d, Y%d, Y%d\n\tVUNPCKHPS Y%d, Y%d, Y%d", i+1, i, 8+i, i+1, i, 9+i)
	}
	for q := 0; q < 8; q += 4 {
		for h, op := range []string{"VUNPCKLPD", "VUNPCKHPD"} {
			t.p("\t%s Y%d, Y%d, Y%d\n\t%s Y%d, Y%d, Y%d", op, 10+q, 8+q, q+h, op, 11+q, 9+q, q+2+h)
		}
	}
	for col := range 8 {
		imm := 0x20 + 0x11*(col/4)
		t.p("\tVPERM2F128 $%#x, Y%d, Y%d, Y%d", imm, 4+col%4, col%4, 8+col%2)
		f(col, 8+col%2)
	}
}

// fewest is the most rows of A that amd64Few takes.
const fewest = 4

// amd64Few is a product of few rows with a matrix that is read once, straight from
// memory: blocks of it are turned in registers, after they were widened if they are
// of bf16. The rows that come next are prefetched one after the other, as memory
// likes to be read, not side by side as they will be used. SI w, R8 the offsets of
// its rows, R10 what to prefetch; AX x, DX its row distance; CX blocks; DI sums, a
// vector for each row of x.
func (s shape) amd64Few(t *text, m int, widen bool) {
	name, bytes := s.few(m, widen), 4*s.lanes // of a row of a block
	if widen {
		bytes /= 2
	}
	args := fewArgs
	if widen {
		args = fewWidenedArgs
	}
	t.p("// func %s(%s)", name, args)
	t.p("TEXT ·%s(SB), NOSPLIT, $0-56", name)
	for i, r := range []string{"DI", "AX", "DX", "SI", "R8", "R10", "CX"} {
		t.p("\tMOVQ %s+%d(FP), %s", []string{"sums", "x", "dx", "w", "at", "next", "blocks"}[i], 8*i, r)
	}
	if m > 3 {
		t.p("\tLEAQ (DX)(DX*2), R11")
	}
	row := []string{"(AX)", "(AX)(DX*1)", "(AX)(DX*2)", "(AX)(R11*1)"}
	sum := func(r int) int { return 2 + r + 8*(16/s.lanes-1) } // beside the columns
	t.p("loop:")
	for at := 0; at < bytes*s.lanes; at += 64 {
		t.p("\tPREFETCHT1 %d(R10)", at)
	}
	t.p("\tADDQ $%d, R10", bytes*s.lanes)
	s.turn(t, widen, func(col, x int) {
		for r := range m {
			if col == 0 {
				t.p("\tVMOVUPS %d(DI), %s", 4*s.lanes*r, s.reg(sum(r)))
			}
			if s == avx512 {
				t.p("\tVFMADD231PS.BCST %d%s, %s, %s", 4*col, row[r], s.reg(x), s.reg(sum(r)))
			} else {
				t.p("\tVBROADCASTSS %d%s, %s", 4*col, row[r], s.reg(15))
				s.multiplyAdd(t, 15, x, sum(r))
			}
		}
	})
	for r := range m {
		t.p("\tVMOVUPS %s, %d(DI)", s.reg(sum(r)), 4*s.lanes*r)
	}
	t.p("\tADDQ $%d, SI\n\tADDQ $%d, AX\n\tSUBQ $1, CX\n\tJNZ loop\n\tVZEROUPPER\n\tRET\n", bytes, 4*s.lanes)
}

// few is the name of amd64Few.
func (s shape) few(m int, widen bool) string {
	if widen {
		return fmt.Sprintf("fewWidened%s_%d", s.level, m)
	}
	return fmt.Sprintf("few%s_%d", s.level, m)
}

// amd64Peak is rounds of independent multiplications and additions in registers.
func (s shape) amd64Peak(t *text) {
	n := s.rows * s.vecs
	t.p("// func peak%s(rounds int)", s.level)
	t.p("TEXT ·peak%s(SB), NOSPLIT, $0-8\n\tMOVQ rounds+0(FP), DX", s.level)
	for i := range n + 2 {
		t.p("\t%s %s, %s, %s", s.zero, s.reg(i), s.reg(i), s.reg(i))
	}
	t.p("\tPCALIGN $32\nloop:")
	for i := range n {
		s.multiplyAdd(t, n, n+1, i)
	}
	t.p("\tSUBQ $1, DX\n\tJNZ loop\n\tVZEROUPPER\n\tRET\n")
}
