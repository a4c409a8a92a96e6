// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

// sieve has the 256 bounds in registers, 64 in every two. An instruction looks up 32 words
// of 16 bits in two registers, by the lowest 6 bits of an index; the next two bits of it
// choose among four results.
func sieve(k *kern) {
	const bounds, even, odd, bit6, bit7, low = 16, 24, 25, 26, 27, 28 // registers
	t, kept, open, w, n := &k.asm, k.gpr["kept"], k.gpr["open"], k.gpr["w"], k.gpr["n"]
	for i := range 8 {
		t.p("\tVMOVDQU32 %d(%s), Z%d", 64*i, k.gpr["bound"], bounds+i)
	}
	for i := range 2 {
		var halves []uint32
		for j := range uint32(16) {
			at := 4*j + uint32(i)
			halves = append(halves, at|(at+2)<<16)
		}
		t.p("\tVMOVDQU32 %s, Z%d", k.vector(halves...), even+i)
	}
	for i, c := range []uint32{1 << 6, 1 << 7, 0xff} {
		t.p("\tVPBROADCASTD %s, Z%d", k.vector(c|c<<16), bit6+i)
	}
	t.p("\tTESTQ %[1]s, %[1]s\n\tJZ end", n)
	t.p("loop:\n\tVMOVDQU32 (%[1]s), Z0\n\tVMOVDQU32 64(%[1]s), Z1", w)
	t.p("\tVMOVDQA32 Z%d, Z5\n\tVPERMI2W Z1, Z0, Z5", even) // the indices, in the lower bytes
	t.p("\tVPERMT2W Z1, Z%d, Z0\n\tVPSRLW $8, Z0, Z0", odd) // the highest bytes
	t.p("\tVPTESTMW Z%d, Z5, K1\n\tVPTESTMW Z%d, Z5, K2", bit6, bit7)
	for i := range 3 {
		t.p("\tVMOVDQA32 Z5, Z%d", 2+i)
	}
	for i := range 4 {
		t.p("\tVPERMI2W Z%d, Z%d, Z%d", bounds+2*i+1, bounds+2*i, 2+i)
	}
	t.p("\tVMOVDQU16 Z3, K1, Z2\n\tVMOVDQU16 Z5, K1, Z4\n\tVMOVDQU16 Z4, K2, Z2")
	t.p("\tVPANDD Z%d, Z2, Z3\n\tVPSRLW $8, Z2, Z4", low)
	t.p("\tVPCMPUW $1, Z3, Z0, K3\n\tVPCMPUW $5, Z3, Z0, K4\n\tVPCMPUW $2, Z4, Z0, K4, K4") // <, ≥ and ≤
	t.p("\tKMOVD K3, (%s)\n\tKMOVD K4, (%s)", kept, open)
	t.p("\tADDQ $4, %s\n\tADDQ $4, %s\n\tADDQ $128, %s\n\tSUBQ $32, %s\n\tJNZ loop\nend:", kept, open, w, n)
}
