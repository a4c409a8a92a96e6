// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package half

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ToF32 sets dst to the values of src, an array of floats of type t in
// little-endian bytes. F32, BF16 and F16 are exact, F64 is rounded to nearest
// even. Other types, and a src that is not exactly len(dst) elements, are errors.
func ToF32(dst []float32, t DType, src []byte) error {
	if err := check("reading", t, len(dst), len(src)); err != nil {
		return err
	}
	le := binary.LittleEndian
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(src[4*i:]))
		}
	case F64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(le.Uint64(src[8*i:])))
		}
	case BF16:
		for i := range dst {
			dst[i] = FromBF16(le.Uint16(src[2*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = FromF16(le.Uint16(src[2*i:]))
		}
	}
	return nil
}

// FromF32 writes src to dst as an array of floats of type t in little-endian
// bytes. F32 and F64 are exact, BF16 and F16 are rounded to nearest even. Other
// types, and a dst that is not exactly len(src) elements, are errors.
func FromF32(dst []byte, t DType, src []float32) error {
	if err := check("writing", t, len(src), len(dst)); err != nil {
		return err
	}
	le := binary.LittleEndian
	switch t {
	case F32:
		for i, f := range src {
			le.PutUint32(dst[4*i:], math.Float32bits(f))
		}
	case F64:
		for i, f := range src {
			le.PutUint64(dst[8*i:], math.Float64bits(float64(f)))
		}
	case BF16:
		for i, f := range src {
			le.PutUint16(dst[2*i:], ToBF16(f))
		}
	case F16:
		for i, f := range src {
			le.PutUint16(dst[2*i:], ToF16(f))
		}
	}
	return nil
}

// check reports whether n elements of a float type take the given bytes.
func check(doing string, t DType, n, bytes int) error {
	if t >= numDTypes || !t.IsFloat() {
		return fmt.Errorf("half: %s floats: got type %v, want f64, f32, bf16 or f16", doing, t)
	}
	if bytes != n*t.Size() {
		return fmt.Errorf("half: %s %d elements of %v: got %d bytes, want %d",
			doing, n, t, bytes, n*t.Size())
	}
	return nil
}
