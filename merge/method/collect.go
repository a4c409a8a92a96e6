// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math"
	"unsafe"
)

// key is what magnitudes are compared by: the bits of |x|, which have the order of
// the values. A NaN is larger than all numbers.
func key(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }

// largestKey is that of a NaN.
const largestKey = 1<<31 - 1

// value is the number x ≥ 0 of a key.
func value(key uint32) float32 { return math.Float32frombits(key) }

// below is the largest number below that of a key; −1 for that of zero.
func below(key uint32) float32 {
	if key == 0 {
		return -1
	}
	return value(key - 1)
}

// collect sets dst to the keys of x that lie between two others, in the order of x,
// and counts the rest. dst has room for len(x); lo < hi.
//
//	n: lo < key < hi;  above: key > hi;  least: key = lo;  most: key = hi
func collect(dst []uint32, x []float32, lo, hi uint32) (n, above, least, most int) {
	span := uint64(hi - lo - 1)
	dst = dst[:len(x)]
	for _, v := range x {
		k := key(v)
		dst[n] = k
		n += int((uint64(k-lo-1) - span) >> 63)
		above += int((uint64(hi) - uint64(k)) >> 63)
		least += int((uint64(k^lo) - 1) >> 63)
		most += int((uint64(k^hi) - 1) >> 63)
	}
	return n, above, least, most
}

// words is scratch memory as 32-bit words.
func words(x []float32) []uint32 {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&x[0])), len(x))
}
