// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "pleach/half"

// Widen16F is y[i] = x[i], a binary16 number in a uint16, exact, as half.FromF16 has
// it: NaN is made quiet. x has the length of y and must not overlap it. The bits are
// the same on every level, Portable included.
func (l Level) Widen16F(y []float32, x []uint16) {
	if l != Portable {
		eachWidenF16(l, y, x)
		return
	}
	half.F16ToF32(y, x[:len(y)])
}

// Narrow16F is y[i] = x[i] rounded to the nearest binary16 number, ties to even, as
// half.ToF16 does: denormal numbers are kept, what rounds to 65536 or more is Inf, NaN
// is made quiet. x has the length of y and must not overlap it. The bits are the same
// on every level, Portable included.
func (l Level) Narrow16F(y []uint16, x []float32) {
	if l != Portable {
		eachNarrowF16(l, y, x)
		return
	}
	half.F32ToF16(y, x[:len(y)])
}
