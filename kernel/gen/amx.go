// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// Products on AMX: C is made in blocks of two by two tiles, T0 to T3; T4 and T5 are
// two tiles of rows of A, T6 and T7 two of columns of B. A step multiplies 32 steps
// of k. There are kernels for blocks of one row or column of tiles as well; how many
// rows and columns a tile has is what the shapes say, which are loaded at the
// beginning of a call. Tiles belong to the thread of the system and Go's scheduler
// knows nothing of them, so each call ends with their release.

// amxArgs: k counts steps; as is the distance of rows of A, ap of its steps, bnext of
// panels of B, ldc of rows of C, in bytes.
const amxArgs = "k int, a *uint16, as, ap int, b *float32, bnext int, c *float32, ldc int, acc bool, groups, panels int, shapes *tileShapes"

const turnTilesArgs = "dst *float32, src *uint16, ss int, blocks int"

// amxBlock is a block of so many rows and columns of tiles. If stream, A is read
// once, and the rows that come next are prefetched.
type amxBlock struct {
	rows, cols int
	stream     bool
}

var amxBlocks = []amxBlock{{1, 1, false}, {1, 2, false}, {2, 1, false}, {2, 2, false}, {2, 1, true}, {2, 2, true}}

func (x amxBlock) name() string {
	if x.stream {
		return fmt.Sprintf("streamAMX_%dx%d", x.rows, x.cols)
	}
	return fmt.Sprintf("tilesAMX_%dx%d", x.rows, x.cols)
}

// amxFiles are the kernels of AMX.
func amxFiles() map[string]*text {
	t := &text{}
	t.p(header + "#include \"textflag.h\"\n")
	for _, x := range amxBlocks {
		x.kernel(t)
	}
	amxPeak(t)
	turnTiles(t)
	return map[string]*text{"amx_tiles_amd64.s": t, "amx_tiles_amd64.go": amxGo()}
}

// The instructions, with what they are as comments.

func (t *text) amx(code []byte, format string, a ...any) {
	t.p("\t%s // %s", asBytes(code), fmt.Sprintf(format, a...))
}

func (t *text) configure(base string) {
	t.amx(ldtilecfg.memory(0, 0, base, ""), "LDTILECFG (%s)", base)
}

func (t *text) release() { t.amx(tilerelease.one(0), "TILERELEASE") }

func (t *text) zero(tile int) { t.amx(tilezero.one(tile), "TILEZERO T%d", tile) }

// move loads or stores a tile.
func (t *text) move(o amxOp, tile, disp int, base, index string) {
	t.amx(o.memory(tile, disp, base, index), "%s T%d, %d(%s)(%s*1)", o.name, tile, disp, base, index)
}

func (t *text) dot(c, a, b int) {
	t.amx(tdpbf16ps.three(c, a, b), "TDPBF16PS T%d, T%d, T%d", b, a, c)
}

// kernel is groups of rows by panels of columns, from zero unless acc. The groups of
// a panel come one after the other, so that it stays in the first-level cache. Of less
// than two tiles there is only one group or panel.
//
//	registers  AX, R8 the rows of A, SI their distance, R9 that of steps; BX b, R10 the
//	           distance of its rows; CX, R11 the rows of C, DI their distance; DX
//	           steps left; R12 what to prefetch
//	frame      0(SP) panels left, 8(SP) b, 16(SP) c of the panel, 24(SP) groups left,
//	           32(SP) a of the group
func (x amxBlock) kernel(t *text) {
	t.p("// func %s(%s)", x.name(), amxArgs)
	t.p("TEXT ·%s(SB), NOSPLIT, $40-96", x.name())
	t.p("\tMOVQ shapes+88(FP), AX")
	t.configure("AX")
	t.p("\tMOVQ as+16(FP), SI\n\tMOVQ ap+24(FP), R9\n\tMOVQ $128, R10\n\tMOVQ ldc+56(FP), DI")
	t.p("\tMOVQ b+32(FP), BX\n\tMOVQ c+48(FP), CX")
	if x.cols == 2 {
		t.p("\tMOVQ panels+80(FP), AX\n\tMOVQ AX, 0(SP)\n\tMOVQ BX, 8(SP)")
		if x.rows == 2 {
			t.p("\tMOVQ CX, 16(SP)")
		}
		t.p("panel:")
	}
	t.p("\tMOVQ a+8(FP), AX")
	if x.rows == 2 {
		t.p("\tMOVQ groups+72(FP), DX\n\tMOVQ DX, 24(SP)\ngroup:\n\tMOVQ AX, 32(SP)")
		t.p("\tMOVQ SI, R8\n\tSHLQ $4, R8\n\tADDQ AX, R8")
		t.p("\tMOVQ DI, R11\n\tSHLQ $4, R11\n\tADDQ CX, R11")
	}
	x.ahead(t)
	x.begin(t)
	t.p("\tMOVQ k+0(FP), DX\nstep:")
	x.step(t)
	t.p("\tADDQ $2048, BX\n\tSUBQ $1, DX\n\tJNZ step")
	x.each(func(tile, disp int, row string) { t.move(tilestored, tile, disp, row, "DI") })
	x.next(t)
	t.release()
	t.p("\tRET\n")
}

// begin loads C or clears it. The first tiles are clear since they were configured.
func (x amxBlock) begin(t *text) {
	t.p("\tMOVBLZX acc+64(FP), R13\n\tTESTL R13, R13")
	once := x.rows*x.cols == 1
	if once {
		t.p("\tJZ begun")
	} else {
		t.p("\tJZ clear")
	}
	x.each(func(tile, disp int, row string) { t.move(tileloadd, tile, disp, row, "DI") })
	if !once {
		t.p("\tJMP begun\nclear:")
		x.each(func(tile, _ int, _ string) { t.zero(tile) })
	}
	t.p("begun:")
}

// next goes on to the next group, and after the last one to the next panel.
func (x amxBlock) next(t *text) {
	b := "b+32(FP)"
	if x.cols == 2 {
		b = "8(SP)"
	}
	if x.rows == 2 {
		t.p("\tMOVQ %s, BX", b)
		t.p("\tMOVQ SI, R13\n\tSHLQ $5, R13\n\tMOVQ 32(SP), AX\n\tADDQ R13, AX")
		t.p("\tMOVQ DI, R13\n\tSHLQ $5, R13\n\tADDQ R13, CX")
		t.p("\tSUBQ $1, 24(SP)\n\tJNZ group")
	}
	if x.cols == 1 {
		return
	}
	if x.rows == 2 { // BX is b of the panel already
		t.p("\tMOVQ 16(SP), CX")
	} else { // and CX is its c
		t.p("\tMOVQ 8(SP), BX")
	}
	t.p("\tADDQ bnext+40(FP), BX\n\tMOVQ BX, 8(SP)")
	t.p("\tADDQ $128, CX")
	if x.rows == 2 {
		t.p("\tMOVQ CX, 16(SP)")
	}
	t.p("\tSUBQ $1, 0(SP)\n\tJNZ panel")
}

// each is the tiles of C with their addresses.
func (x amxBlock) each(f func(tile, disp int, row string)) {
	for r := range x.rows {
		for c := range x.cols {
			f(2*r+c, 64*c, []string{"CX", "R11"}[r])
		}
	}
}

// ahead finds what will be wanted after this block: the next rows of A if it is
// streamed, else C of the next one.
func (x amxBlock) ahead(t *text) {
	switch {
	case x.stream:
		t.p("\tMOVQ SI, R12\n\tSHLQ $5, R12\n\tADDQ AX, R12")
	case x.rows == 2:
		t.p("\tMOVQ DI, R12\n\tSHLQ $5, R12\n\tADDQ CX, R12")
		if x.cols == 2 {
			t.p("\tCMPQ 24(SP), $1\n\tJNE ahead\n\tMOVQ 16(SP), R12\n\tADDQ $128, R12\nahead:")
		}
	case x.cols == 2:
		t.p("\tLEAQ 128(CX), R12")
	}
}

// step is 32 steps of k. B has the first-level cache to itself, since A is loaded
// past it.
func (x amxBlock) step(t *text) {
	t.move(tileloadd, 6, 0, "BX", "R10")
	t.move(tileloaddt1, 4, 0, "AX", "SI")
	t.dot(0, 4, 6)
	if x.cols == 2 {
		t.move(tileloadd, 7, 64, "BX", "R10")
		t.dot(1, 4, 7)
	}
	t.p("\tADDQ R9, AX")
	x.prefetch(t)
	if x.rows == 2 {
		t.move(tileloaddt1, 5, 0, "R8", "SI")
		t.dot(2, 5, 6)
		t.p("\tADDQ R9, R8")
		if x.cols == 2 {
			t.dot(3, 5, 7)
		}
	}
}

// prefetch takes as many lines as a step of A has, one after the other as memory
// likes to be read, or two rows of C.
func (x amxBlock) prefetch(t *text) {
	if x.stream {
		for at := 0; at < 2048; at += 64 {
			t.p("\tPREFETCHT1 %d(R12)", at)
		}
		t.p("\tADDQ $2048, R12")
		return
	}
	for range 2 * min(1, x.rows*x.cols-1) {
		t.p("\tPREFETCHT0 (R12)\n\tPREFETCHT0 64(R12)\n\tADDQ DI, R12")
	}
}

// amxPeak is rounds of four independent products.
func amxPeak(t *text) {
	t.p("// func peakAMX(rounds int, shapes *tileShapes)")
	t.p("TEXT ·peakAMX(SB), NOSPLIT, $0-16\n\tMOVQ rounds+0(FP), DX\n\tMOVQ shapes+8(FP), AX")
	t.configure("AX")
	t.p("loop:")
	for i := range 4 {
		t.dot(i, 4+i/2, 6+i%2)
	}
	t.p("\tSUBQ $1, DX\n\tJNZ loop")
	t.release()
	t.p("\tRET\n")
}

// turnTiles turns 32 rows of bf16 numbers into tiles of A, 16 of their columns into
// 16 rows of 64 bytes, for so many blocks. It is AVX-512. AX src, R8 its row distance,
// R9 that of 32 rows, DI dst, CX blocks.
func turnTiles(t *text) {
	t.p("// func turnTiles(%s)", turnTilesArgs)
	t.p("TEXT ·turnTiles(SB), NOSPLIT, $0-32")
	for i, r := range []string{"DI", "AX", "R8", "CX"} {
		t.p("\tMOVQ %s+%d(FP), %s", []string{"dst", "src", "ss", "blocks"}[i], 8*i, r)
	}
	t.p("\tMOVQ R8, R9\n\tSHLQ $5, R9\nblock:\n\tMOVQ AX, BX")
	for p := range 16 {
		t.p("\tVPMOVZXWD (BX), Z%d\n\tVPMOVZXWD (BX)(R8*1), Z%d", p, 16+p)
		t.p("\tPREFETCHT0 (BX)(R9*1)\n\tLEAQ (BX)(R8*2), BX")
		t.p("\tVPSLLD $16, Z%d, Z%d\n\tVPORD Z%d, Z%d, Z%d", 16+p, 16+p, p, 16+p, p)
	}
	turn16(t, func(col, x int) { t.p("\tVMOVUPS Z%d, %d(DI)", x, 64*col) })
	t.p("\tADDQ $32, AX\n\tADDQ $1024, DI\n\tSUBQ $1, CX\n\tJNZ block\n\tVZEROUPPER\n\tRET\n")
}

// amxGo declares the kernels and chooses between them.
func amxGo() *text {
	t := &text{}
	t.p(header + "package kernel\n")
	for _, x := range amxBlocks {
		t.p("//go:noescape\nfunc %s(%s)\n", x.name(), amxArgs)
	}
	t.p("//go:noescape\nfunc peakAMX(rounds int, shapes *tileShapes)\n")
	t.p("// turnTiles turns 32 rows of bf16 numbers, ss bytes apart, into tiles of 16 columns.\n//\n//go:noescape")
	t.p("func turnTiles(%s)\n", turnTilesArgs)
	t.p("// tileGrid is a grid on AMX, with blocks of rows by cols tiles.")
	t.p("func tileGrid(rows, cols int, stream bool, %s) {", amxArgs)
	t.p("switch {")
	for _, x := range amxBlocks {
		cond := fmt.Sprintf("rows == %d && cols == %d", x.rows, x.cols)
		if x.stream {
			cond += " && stream"
		} else if x.rows == 2 {
			cond += " && !stream"
		}
		t.p("case %s:\n%s(k, a, as, ap, b, bnext, c, ldc, acc, groups, panels, shapes)", cond, x.name())
	}
	t.p("}\n}")
	return formatted(t)
}
