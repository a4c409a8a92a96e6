// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// gemmGo declares the kernels of an architecture's levels, and what chooses
// between them. Calls are direct: through a value, all pointers would escape.
func gemmGo(levels ...shape) *text {
	t := &text{}
	t.p(header)
	if len(levels) == 0 {
		t.p("//go:build !amd64 && !arm64\n")
	}
	t.p("package kernel\n")
	for _, s := range levels {
		s.declare(t)
	}
	t.p("// tile adds k outer products to m rows and v vectors of C, from zero unless acc.")
	t.p("// as and ap are the distances of rows and steps of A, bs of steps of B, ldc of")
	t.p("// rows of C, in bytes. The tile at next will be the next one.")
	t.p("func tile(l Level, m, v, %s) {", tileArgs)
	choose(t, levels, func(s shape) {
		t.p("switch (m-1)*%d+v-1 {", s.vecs)
		for i := range s.rows * s.vecs {
			t.p("case %d:\n%s(k, a, as, ap, b, bs, c, ldc, acc, next)", i, s.tile(i/s.vecs+1, i%s.vecs+1))
		}
		t.p("}")
	})
	t.p("// tiles is groups rows of whole tiles of v vectors, panels of them in each; bnext is")
	t.p("// the distance of panels in bytes. NEON has none.\nfunc tiles(l Level, v int, %s) {", tilesArgs)
	chooseOf(t, levels, "v", func(s shape) int { return s.vecs }, "tiles%s_%d(k, a, as, ap, b, bs, bnext, c, ldc, acc, groups, panels)")
	t.p("// packRows copies k rows of so many vectors; ds and ss are distances of rows in")
	t.p("// bytes.\nfunc packRows(l Level, %s) {", packArgs)
	moves := slices.DeleteFunc(slices.Clone(levels), func(s shape) bool { return s == pairs }) // of any 32 bits
	choose(t, moves, func(s shape) { t.p("pack%s(dst, ds, src, ss, k, vecs)", s.level) })
	t.p("// transposeBlocks turns blocks of a vector's length in rows and columns: rows of")
	t.p("// src are at the offsets at, in bytes, and continue from block to block; so do")
	t.p("// rows of dst, ds bytes apart.\nfunc transposeBlocks(l Level, %s) {", transArgs)
	choose(t, moves, func(s shape) { t.p("trans%s(dst, ds, src, at, blocks)", s.level) })
	t.p("// few adds products of m rows x with the rows of w at the offsets at, in bytes, to")
	t.p("// sums, a vector for each row of x, dx bytes apart; what begins at next will be")
	t.p("// read soon. NEON has none.\nfunc few(l Level, m int, %s) {", fewArgs)
	chooseOf(t, levels, "m", func(shape) int { return fewest }, "few%s_%d(sums, x, dx, w, at, next, blocks)")
	t.p("// fewWidened is few for rows of bf16 numbers.\nfunc fewWidened(l Level, m int, %s) {", fewWidenedArgs)
	chooseOf(t, moves, "m", func(shape) int { return fewest }, "fewWidened%s_%d(sums, x, dx, w, at, next, blocks)")
	t.p("// weave makes pairs of two rows of bf16 numbers, for k pairs of rows and so many\n// vectors of pairs: dst[p,i] = (src[2p,i], src[2p+1,i]). Only pairs has it.")
	t.p("func weave(_ Level, %s) {", weaveArgs)
	if len(levels) > 1 {
		t.p("weavePairs(dst, ds, src, ss, k, vecs)")
	}
	t.p("}\n")
	t.p("// peak does rounds of as many multiplications and additions as a whole tile does\n// in a step.")
	t.p("func peak(l Level, rounds int) {")
	choose(t, levels, func(s shape) { t.p("peak%s(rounds)", s.level) })
	return formatted(t)
}

// declare declares the kernels of a level.
func (s shape) declare(t *text) {
	declare := func(name, args string) { t.p("//go:noescape\nfunc %s(%s)\n", name, args) }
	for m := 1; m <= s.rows; m++ {
		for v := 1; v <= s.vecs; v++ {
			declare(s.tile(m, v), tileArgs)
		}
	}
	t.p("func peak%s(rounds int)\n", s.level)
	if s == pairs {
		declare("weave"+s.level, weaveArgs)
	} else {
		declare("pack"+s.level, packArgs)
		declare("trans"+s.level, transArgs)
	}
	if s == neon {
		return
	}
	for v := 1; v <= s.vecs; v++ {
		declare(fmt.Sprintf("tiles%s_%d", s.level, v), tilesArgs)
	}
	for m := 1; m <= fewest; m++ {
		declare(s.few(m, false), fewArgs)
		if s != pairs {
			declare(s.few(m, true), fewWidenedArgs)
		}
	}
}

// chooseOf ends a function with a call for each level of amd64 and each number from
// 1 to most; call has verbs for both.
func chooseOf(t *text, levels []shape, number string, most func(shape) int, call string) {
	if len(levels) < 2 {
		levels = nil
	}
	choose(t, levels, func(s shape) {
		t.p("switch %s {", number)
		for i := 1; i <= most(s); i++ {
			t.p("case %d:\n"+call, i, s.level, i)
		}
		t.p("}")
	})
}

// choose ends a function with a call for each level; the last is for all others.
func choose(t *text, levels []shape, f func(shape)) {
	switch len(levels) {
	case 0:
	case 1:
		f(levels[0])
	default:
		t.p("switch l {")
		for i, s := range levels {
			if i+1 < len(levels) {
				t.p("case %s:", s.is)
			} else {
				t.p("default:")
			}
			f(s)
		}
		t.p("}")
	}
	t.p("}\n")
}
