// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package half

import "math"

// ToI8 sets dst to src, a row of weights, as integers −127 … 127 and returns what one
// of them is worth:
//
//	s = max|src| / 127,  dst[i] = src[i]/s rounded to nearest even
//
// in float32, so that src[i] is off by s/2 at most, up to rounding. A row of zeros, or
// one so small that s is zero, has s = 0 and zeros. What is not finite is for the
// caller to refuse. dst has at least the length of src.
func ToI8(dst []int8, src []float32) (s float32) {
	dst = dst[:len(src)]
	var top uint32 // as integers, magnitudes are in the same order
	for _, f := range src {
		top = max(top, math.Float32bits(f)&^(1<<31))
	}
	if s = math.Float32frombits(top) / 127; s == 0 {
		clear(dst)
		return 0
	}
	// Beside 1.5·2²³ the last place of a float32 is 1.
	const large, largeBits = 3 << 22, 0x4b400000
	for i, f := range src {
		// A denormal s may be much less than a 127th of the largest.
		q := int32(math.Float32bits(f/s+large)) - largeBits
		dst[i] = int8(max(-127, min(127, q)))
	}
	return s
}
