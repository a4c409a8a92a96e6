// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// piece is a range of bytes and its CRC-32C.
type piece struct {
	at, n int64
	sum   uint32
}

// joined is the CRC-32C of two texts in a row, of which the second has n bytes.
//
//	crc(a‖b) = crc(a)·x^(8n) mod P  xor  crc(b)
//
// Polynomials over GF(2) are bit-reversed: bit 31 is x⁰.
func joined(a, b uint32, n int64) uint32 {
	p, x := uint32(1)<<31, uint32(1)<<23 // 1 and x⁸
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = timesModP(p, x)
		}
		x = timesModP(x, x)
	}
	return timesModP(a, p) ^ b
}

// timesModP is a·b mod P.
func timesModP(a, b uint32) (c uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			c ^= b
		}
		low := b & 1
		b >>= 1
		if low == 1 {
			b ^= crc32.Castagnoli
		}
	}
	return c
}
