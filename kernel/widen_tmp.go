// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "pleach/half"

// Widen is y[i] = x[i].
func (l Level) Widen(y []float32, x []uint16) { half.BF16ToF32(y, x) }

// Narrow is y[i] = x[i], rounded to nearest even.
func (l Level) Narrow(y []uint16, x []float32) { half.F32ToBF16(y, x) }

// Round is y[i] = x[i], rounded to what bf16 can hold.
func (l Level) Round(y, x []float32) {
	for i, v := range x {
		y[i] = half.FromBF16(half.ToBF16(v))
	}
}
