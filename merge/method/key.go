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

// words is scratch memory as 32-bit words.
func words(x []float32) []uint32 {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&x[0])), len(x))
}
