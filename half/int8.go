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
	for _, f := range src {
		if f < 0 {
			f = -f
		}
		s = max(s, f)
	}
	if s /= 127; s == 0 {
		clear(dst)
		return 0
	}
	for i, f := range src {
		// A denormal s may be much less than a 127th of the largest.
		q := math.RoundToEven(float64(f / s))
		dst[i] = int8(max(-127, min(127, q)))
	}
	return s
}
