// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

// vdpbf16ps is VDPBF16PS on registers of 512 bits as directives: Go's assembler
// does not know it.
//
//	acc[i] += x[2i+1]·y[2i+1], then acc[i] += x[2i]·y[2i]
//
// EVEX.512.F3.0F38.W0 52 /r: Intel, Architecture Instruction Set Extensions
// Programming Reference, VDPBF16PS; the prefix is that of Intel's manual, volume
// 2A, section 2.7.1.
func vdpbf16ps(x, y, acc int) string {
	not := func(r, bit, to int) byte { return byte(^r>>bit&1) << to }
	return asBytes([]byte{
		0x62,
		not(acc, 3, 7) | not(x, 4, 6) | not(x, 3, 5) | not(acc, 4, 4) | 2, // R, X, B, R', map 0F38
		byte(^y&15)<<3 | 4 | 2,      // vvvv, prefix F3
		2<<5 | not(y, 4, 3),         // 512 bits, V'
		0x52,                        // opcode
		byte(0xc0 | acc&7<<3 | x&7), // ModRM: registers
	})
}
