// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compare

import "math"

// votes is how the signs of two task vectors agree.
type votes struct {
	both, opposed             int     // elements: both are not 0; of these, the signs differ
	bothWeight, opposedWeight float64 // Σ |x|+|y| over them
}

// signs compares the signs of two vectors of one length, without a branch: which
// way a sign goes is what no processor can predict.
//
// Weights are added in float64: element i to lane i mod 2 of 2 sums, and then these.
func signs(x, y []float32) votes {
	const sign = 1 << 31
	var both, opposed uint64
	var w0, w1, a0, a1 float64
	y = y[:len(x)]
	for i, v := range x {
		u, v := math.Float32bits(v), math.Float32bits(y[i])
		size := float64(math.Float32frombits(u&^sign)) + float64(math.Float32frombits(v&^sign))
		bits := math.Float64bits(size)
		// −n has the top bit if n has not, unless n is 0.
		un, vn := u<<1, v<<1
		b := uint64(((un | -un) & (vn | -vn)) >> 31)
		o := b & uint64((u^v)>>31)
		both += b
		opposed += o
		w0, w1 = w1, w0+math.Float64frombits(bits&-b)
		a0, a1 = a1, a0+math.Float64frombits(bits&-o)
	}
	return votes{int(both), int(opposed), w0 + w1, a0 + a1}
}

// zeros counts the elements that are 0 of either sign.
func zeros(x []float32) int {
	var nonzero uint32
	for _, v := range x {
		u := math.Float32bits(v) << 1
		nonzero += (u | -u) >> 31
	}
	return len(x) - int(nonzero)
}
