// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package half

import "math"

// FromBF16 is the value of a bfloat16: 1 sign, 8 exponent and 7 fraction bits,
// the upper half of a float32. It is exact; a signalling NaN becomes quiet.
func FromBF16(b uint16) float32 {
	u := uint32(b) << 16
	if u&0x7fffffff > 0x7f800000 {
		u |= 0x00400000
	}
	return math.Float32frombits(u)
}

// ToBF16 rounds f to the nearest bfloat16, ties to even.
func ToBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if f != f {
		return uint16(u>>16) | 0x40
	}
	// The carry out of the fraction moves into the exponent, and out of the
	// largest exponent into Inf: both are the right result.
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// FromF16 is the value of an IEEE 754 binary16: 1 sign, 5 exponent and 10
// fraction bits. It is exact; a signalling NaN becomes quiet.
func FromF16(h uint16) float32 {
	sign, abs := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case abs > 0x7c00:
		return math.Float32frombits(sign | 0x7fc00000 | abs<<13)
	case abs == 0x7c00:
		return math.Float32frombits(sign | 0x7f800000)
	case abs >= 0x0400:
		return math.Float32frombits(sign | abs<<13 + (127-15)<<23)
	}
	// A denormal number is a multiple of 2⁻²⁴; the product is exact.
	v := float32(abs) * 0x1p-24
	return math.Float32frombits(sign | math.Float32bits(v))
}

// ToF16 rounds f to the nearest binary16, ties to even. What rounds to 65536 or
// more is Inf.
func ToF16(f float32) uint16 {
	u := math.Float32bits(f)
	sign, abs := uint16(u>>16)&0x8000, u&0x7fffffff
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00 | uint16(abs>>13&0x3ff)
	case abs >= 0x47800000: // 65536
		return sign | 0x7c00
	case abs >= 0x38800000: // 2⁻¹⁴, the smallest normal number
		abs += 0xfff + abs>>13&1
		return sign | uint16((abs-(127-15)<<23)>>13)
	}
	// The last place of a float32 in [½,1) is 2⁻²⁴, that of a denormal binary16:
	// the sum rounds where it should.
	v := math.Float32frombits(abs) + 0.5
	return sign | uint16(math.Float32bits(v)-math.Float32bits(0.5))
}

// BF16ToF32 sets dst[i] to the value of src[i]. dst has at least the length of
// src.
func BF16ToF32(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, b := range src {
		dst[i] = FromBF16(b)
	}
}

// F32ToBF16 sets dst[i] to src[i] rounded. dst has at least the length of src.
func F32ToBF16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		dst[i] = ToBF16(f)
	}
}

// F16ToF32 sets dst[i] to the value of src[i]. dst has at least the length of
// src.
func F16ToF32(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, h := range src {
		dst[i] = FromF16(h)
	}
}

// F32ToF16 sets dst[i] to src[i] rounded. dst has at least the length of src.
func F32ToF16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		dst[i] = ToF16(f)
	}
}
