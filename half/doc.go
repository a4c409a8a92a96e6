// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package half says how a number is stored: the list of element types, and the
// conversion of the 16-bit floats to and from float32.
//
// The types to know are [DType], one element type of an array in memory or in a
// file, and the two pairs [BF16ToF32], [F32ToBF16] and [F16ToF32], [F32ToF16] on
// slices. [ToF32] and [FromF32] convert the bytes of a file.
//
//	row := make([]float32, 2)
//	err := half.ToF32(row, half.BF16, []byte{0x80, 0x3f, 0x00, 0xc0}) // 1, -2
//
// Rounding is to nearest, ties to even. Values beyond the largest finite number
// become Inf, denormal numbers of every format are exact, and NaN stays NaN,
// made quiet, with as much of its payload as fits.
//
// [ToI8] makes a row of weights a row of int8 and a scale.
//
// Not here: arithmetic on 16-bit numbers (there is none), stochastic rounding,
// which is a property of the optimizer's update, and shapes.
package half
