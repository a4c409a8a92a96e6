// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package half

import "math"

// DType says how one element of an array is stored. Multi-byte elements are
// little-endian wherever they leave memory.
type DType uint8

// The element types. F64, F32, BF16 and I32 are computed with, and I8 where it is
// weights, see [ToI8]; the others only occur in files.
const (
	F64 DType = iota
	F32
	BF16
	I32
	F16
	I64
	I16
	I8
	U8
	Bool
	numDTypes
)

var dtypes = [numDTypes]struct {
	name string
	size int
}{
	F64: {"f64", 8}, F32: {"f32", 4}, BF16: {"bf16", 2}, I32: {"i32", 4}, F16: {"f16", 2},
	I64: {"i64", 8}, I16: {"i16", 2}, I8: {"i8", 1}, U8: {"u8", 1}, Bool: {"bool", 1},
}

// Size is the number of bytes of one element.
func (t DType) Size() int { return dtypes[t].size }

// String is the name that programs, recipes and messages print.
func (t DType) String() string {
	if t >= numDTypes {
		return "?"
	}
	return dtypes[t].name
}

// Overflow is the least positive float32 that is rounded to infinity in this type:
// infinity itself where no finite one is.
func (t DType) Overflow() float32 {
	switch t {
	case F16:
		return 65520
	case BF16:
		return math.Float32frombits(0x7f7f8000)
	}
	return float32(math.Inf(1))
}

// IsFloat reports whether the elements are floating-point numbers.
func (t DType) IsFloat() bool { return t <= BF16 || t == F16 }
