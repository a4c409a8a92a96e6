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
// Element i is added to lane i mod 4 of 4 sums in float64, and then lanes 0 and 2,
// and 1 and 3, become one, and these two.
func signs(x, y []float32) votes {
	var both, opposed uint64
	var lanes, against [4]float64
	y = y[:len(x)]
	n := len(x) &^ 3
	for i := 0; i < n; i += 4 {
		xs, ys := (*[4]float32)(x[i:]), (*[4]float32)(y[i:])
		for j := range 4 {
			b, o, w, a := sign(xs[j], ys[j])
			both += b
			opposed += o
			lanes[j] += w
			against[j] += a
		}
	}
	for i := n; i < len(x); i++ {
		b, o, w, a := sign(x[i], y[i])
		both += b
		opposed += o
		lanes[i&3] += w
		against[i&3] += a
	}
	return votes{
		int(both), int(opposed),
		(lanes[0] + lanes[2]) + (lanes[1] + lanes[3]), (against[0] + against[2]) + (against[1] + against[3]),
	}
}

// sign is 1 and |x|+|y| if neither is 0, and the same again if also their signs
// differ; else 0.
func sign(x, y float32) (both, opposed uint64, w, against float64) {
	u, v := math.Float32bits(x), math.Float32bits(y)
	u2, v2 := u<<1, v<<1                           // without the sign
	both = uint64(((u2 | -u2) & (v2 | -v2)) >> 31) // −n has the top bit if n has not, unless n is 0
	opposed = both & uint64((u^v)>>31)
	sum := math.Float64bits(float64(math.Float32frombits(u&^(1<<31))) + float64(math.Float32frombits(v&^(1<<31))))
	return both, opposed, math.Float64frombits(sum & -both), math.Float64frombits(sum & -opposed)
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
