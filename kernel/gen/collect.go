// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
)

// To collect some lanes of a vector, they are moved to its first ones and all of it is
// written: the next vector overwrites what is too much. No more is written than has
// been read, so it fits where all elements would.

// Where counts has what is above hi, equal to hi, and equal to lo, and the length.
const (
	countAbove = 64 * iota
	countMost
	countLeast
	countAll
)

// collectAll is the loop over all elements; body looks at the next 16.
func collectAll(k *kern, body func(t *text)) {
	k.local("start")
	k.same("start", "dst")
	k.loop("n", func() { k.moves("x"); body(&k.asm) })
}

// collectEnd writes the counts in registers.
func collectEnd(k *kern, above, most, least int) {
	k.memory(&k.asm, opStore, above, k.gpr["counts"], countAbove)
	k.memory(&k.asm, opStore, most, k.gpr["counts"], countMost)
	k.memory(&k.asm, opStore, least, k.gpr["counts"], countLeast)
}

// collected writes the length of dst on amd64.
func collected(k *kern) {
	k.asm.p("\tSUBQ %[1]s, %[2]s\n\tSHRQ $2, %[2]s\n\tMOVL %[2]s, %[4]d(%[3]s)",
		k.gpr["start"], k.gpr["dst"], k.gpr["counts"], countAll)
}

// AVX-512 has an instruction that collects lanes. To memory it is slow on some processors.
func (s isaAVX512) collect(k *kern) {
	const x, above, most, least, abs, lo, hi, one, moved = 0, 1, 2, 3, 4, 5, 6, 7, 8
	k.collectBegin(s, map[int]uniform{
		abs: {bits: magnitude}, lo: {arg: "lo"}, hi: {arg: "hi"}, one: {bits: 1},
		above: {}, most: {}, least: {},
	})
	mask, dst := k.gpr[k.local("mask")], k.gpr["dst"]
	collectAll(k, func(t *text) { // 0: equal, 1: less, 6: greater, without a sign
		t.p("\tVPANDD (%s), Z%d, Z%d", k.gpr["x"], abs, x)
		t.p("\tVPCMPUD $6, Z%d, Z%d, K1\n\tVPCMPUD $1, Z%d, Z%d, K1, K1", lo, x, hi, x)
		t.p("\tVPCOMPRESSD.Z Z%d, K1, Z%d\n\tVMOVUPS Z%d, (%s)", x, moved, moved, dst)
		t.p("\tKMOVW K1, %[1]s\n\tPOPCNTL %[1]s, %[1]s\n\tLEAQ (%[2]s)(%[1]s*4), %[2]s", mask, dst)
		for i, c := range [][3]int{{6, hi, above}, {0, hi, most}, {0, lo, least}} {
			t.p("\tVPCMPUD $%d, Z%d, Z%d, K%d", c[0], c[1], x, 2+i)
			t.p("\tVPADDD Z%d, Z%d, K%d, Z%d", one, c[2], 2+i, c[2])
		}
	})
	collectEnd(k, above, most, least)
	collected(k)
}

// AVX2 compares with signs. With the sign bit set instead of cleared, the order is the
// same, and so it is with the sign bits of lo and hi turned.
func (s isaAVX2) collect(k *kern) {
	const x, mask, below, moved, above, most, least, sign, lo, hi = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	k.collectBegin(s, map[int]uniform{
		sign: {bits: 1 << 31}, lo: {arg: "lo"}, hi: {arg: "hi"}, above: {}, most: {}, least: {},
	})
	k.asm.p("\tVPXOR Y%[1]d, Y%[2]d, Y%[2]d\n\tVPXOR Y%[1]d, Y%[3]d, Y%[3]d", sign, lo, hi)
	bits, table, dst := k.gpr[k.local("bits")], k.gpr[k.local("table")], k.gpr["dst"]
	k.asm.p("\tLEAQ %s, %s", k.vector(firstLanes()...), table)
	collectAll(k, func(t *text) {
		for half := range 2 {
			t.p("\tVPOR %d(%s), Y%d, Y%d", 32*half, k.gpr["x"], sign, x)
			t.p("\tVPCMPGTD Y%d, Y%d, Y%d\n\tVPCMPGTD Y%d, Y%d, Y%d", lo, x, mask, x, hi, below)
			t.p("\tVPAND Y%d, Y%d, Y%d\n\tVMOVMSKPS Y%d, %s", mask, below, mask, mask, bits)
			t.p("\tVPMOVZXBD (%s)(%s*8), Y%d\n\tVPXOR Y%d, Y%d, Y%d", table, bits, moved, sign, x, below)
			t.p("\tVPERMD Y%d, Y%d, Y%d\n\tVMOVUPS Y%d, (%s)", below, moved, moved, moved, dst)
			t.p("\tPOPCNTL %[1]s, %[1]s\n\tLEAQ (%[2]s)(%[1]s*4), %[2]s", bits, dst)
			t.p("\tVPCMPGTD Y%d, Y%d, Y%d\n\tVPSUBD Y%d, Y%d, Y%d", hi, x, mask, mask, above, above)
			t.p("\tVPCMPEQD Y%d, Y%d, Y%d\n\tVPSUBD Y%d, Y%d, Y%d", hi, x, mask, mask, most, most)
			t.p("\tVPCMPEQD Y%d, Y%d, Y%d\n\tVPSUBD Y%d, Y%d, Y%d", lo, x, mask, mask, least, least)
		}
	})
	collectEnd(k, above, most, least)
	collected(k)
}

// collectBegin sets registers to numbers, in the order of their own.
func (k *kern) collectBegin(s isa, numbers map[int]uniform) {
	for _, reg := range slices.Sorted(maps.Keys(numbers)) {
		u := numbers[reg]
		if u.arg == "" && !slices.Contains(*k.table, u.bits) {
			*k.table = append(*k.table, u.bits)
		}
		s.uniform(&k.asm, reg, k, &u)
	}
}

// firstLanes is, for each mask of 8 lanes, their indices in 8 bits each, from the lowest
// byte on, and then zeros.
func firstLanes() (list []uint32) {
	for mask := range 256 {
		var lanes uint64
		n := 0
		for i := range 8 {
			if mask>>i&1 == 1 {
				lanes |= uint64(i) << (8 * n)
				n++
			}
		}
		list = append(list, uint32(lanes), uint32(lanes>>32))
	}
	return list
}

// The sum of what NEON keeps of a mask: the lanes in its lowest bits, and their count
// from bit 8 on.
var laneSums = []uint32{0x101, 0x102, 0x104, 0x108}

func (s isaNEON) collect(k *kern) {
	const x, mask, other, moved, sums, above, most, least, abs, lo, hi = 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18
	k.collectBegin(s, map[int]uniform{
		abs: {bits: magnitude}, lo: {arg: "lo"}, hi: {arg: "hi"}, above: {}, most: {}, least: {},
	})
	at, table, bits, dst := k.gpr[k.local("at")], k.gpr[k.local("table")], k.gpr[k.local("bits")], k.gpr["dst"]
	k.asm.p("\tMOVD $%s, %s\n\tFMOVQ (%s), F%d", k.vector(laneSums...), at, at, sums)
	k.asm.p("\tMOVD $%s, %s", k.vector(firstWords()...), table)
	collectAll(k, func(t *text) {
		for part := range 4 {
			t.p("\tFMOVQ %d(%s), F%d", 16*part, k.gpr["x"], x)
			t.arm(and, x, x, abs)
			t.arm(cmhi, mask, x, lo)
			t.arm(cmhi, other, hi, x)
			t.arm(and, mask, mask, other)
			t.arm(and, mask, mask, sums)
			t.arm(addv, mask, mask)
			t.p("\tFMOVS F%d, %s\n\tAND $15, %s, %s\n\tADD %s<<4, %s, %s", mask, bits, bits, at, at, table, at)
			t.p("\tFMOVQ (%s), F%d", at, moved)
			t.arm(tbl, moved, x, moved)
			t.p("\tFMOVQ F%d, (%s)\n\tLSR $8, %s, %s\n\tADD %s<<2, %s, %s", moved, dst, bits, bits, bits, dst, dst)
			for _, c := range []struct {
				op      armOp
				to, sum int
			}{{cmhi, hi, above}, {cmeq, hi, most}, {cmeq, lo, least}} {
				t.arm(c.op, other, x, c.to)
				t.arm(sub32, c.sum, c.sum, other)
			}
		}
	})
	collectEnd(k, above, most, least)
	k.asm.p("\tSUB %[1]s, %[2]s, %[2]s\n\tLSR $2, %[2]s, %[2]s\n\tMOVW %[2]s, %[4]d(%[3]s)",
		k.gpr["start"], dst, k.gpr["counts"], countAll)
}

// firstWords is, for each mask of 4 lanes, the 4 bytes of each, and then those of the
// first lane.
func firstWords() (list []uint32) {
	for mask := range 16 {
		lanes := [4]uint32{0x03020100, 0x03020100, 0x03020100, 0x03020100}
		n := 0
		for i := range uint32(4) {
			if mask>>i&1 == 1 {
				lanes[n] += 0x04040404 * i
				n++
			}
		}
		list = append(list, lanes[:]...)
	}
	return list
}
