// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/binary"
	"unsafe"

	"pleach/half"
	"pleach/kernel"
)

// widen sets dst to the values of src, little-endian bytes of a float type.
func widen(l kernel.Level, dst []float32, t half.DType, src []byte) error {
	if len(dst) == 0 || !native(src) {
		return half.ToF32(dst, t, src)
	}
	switch t {
	case half.F32:
		copy(dst, unsafe.Slice((*float32)(unsafe.Pointer(&src[0])), len(dst)))
	case half.BF16:
		l.Widen(dst, unsafe.Slice((*uint16)(unsafe.Pointer(&src[0])), len(dst)))
	case half.F16:
		l.Widen16F(dst, unsafe.Slice((*uint16)(unsafe.Pointer(&src[0])), len(dst)))
	default:
		return half.ToF32(dst, t, src)
	}
	return nil
}

// narrow writes src to dst as a float type, rounded to nearest even.
func narrow(l kernel.Level, dst []byte, t half.DType, src []float32) error {
	if len(src) == 0 || !native(dst) {
		return half.FromF32(dst, t, src)
	}
	switch t {
	case half.F32:
		copy(unsafe.Slice((*float32)(unsafe.Pointer(&dst[0])), len(src)), src)
	case half.BF16:
		l.Narrow(unsafe.Slice((*uint16)(unsafe.Pointer(&dst[0])), len(src)), src)
	case half.F16:
		l.Narrow16F(unsafe.Slice((*uint16)(unsafe.Pointer(&dst[0])), len(src)), src)
	default:
		return half.FromF32(dst, t, src)
	}
	return nil
}

// round rounds x to a type in place. tmp has the length of x.
func round(l kernel.Level, x []float32, t half.DType, tmp []uint16) {
	switch t {
	case half.BF16:
		l.Round(x, x)
	case half.F16:
		l.Narrow16F(tmp, x)
		l.Widen16F(x, tmp)
	}
}

// native says whether bytes may be used as numbers where they lie: this machine is
// little-endian, and they are aligned.
func native(b []byte) bool {
	return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && uintptr(unsafe.Pointer(&b[0]))%4 == 0
}
