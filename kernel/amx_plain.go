// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"unsafe"
)

// plainGrid is what tileGrid computes, in plain Go: it defines the bits of tiles, and
// AMX is checked by it before it is used. A block of C is rows tiles high and cols
// tiles wide; a tile's own rows and columns are in shapes.
func plainGrid(k int, a *uint16, as, ap int, b *float32, bnext int, c *float32, ldc int, acc bool,
	groups, panels int, shapes *tileShapes, rows, cols int,
) {
	m, n := int(shapes[48]), int(shapes[16])/4
	if rows == 2 {
		m = 16 + int(shapes[50])
	}
	if cols == 2 {
		n = 16 + int(shapes[18])/4
	}
	for j := range panels {
		for i := range groups {
			x := (*uint16)(unsafe.Add(unsafe.Pointer(a), i*tileSide*as))
			y := (*float32)(unsafe.Add(unsafe.Pointer(b), j*bnext))
			z := (*float32)(unsafe.Add(unsafe.Pointer(c), i*tileSide*ldc+j*4*tileSide))
			plainTile(k, x, as, ap, y, z, ldc, acc, m, n)
		}
	}
}

// plainTile is a block of m by n, k operations deep.
func plainTile(k int, a *uint16, as, ap int, b, c *float32, ldc int, acc bool, m, n int) {
	var left, right [tileSide * tileSide]float64
	for i := 0; i < m && !acc; i++ {
		clear(unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(c), i*ldc)), n))
	}
	for q := range k {
		for i := range m {
			row := unsafe.Slice((*uint16)(unsafe.Add(unsafe.Pointer(a), i*as+q*ap)), tileSide)
			for p, v := range row {
				left[i*tileSide+p] = operand(v)
			}
		}
		for p := range tileSide {
			row := unsafe.Slice((*uint16)(unsafe.Add(unsafe.Pointer(b), (q*16+p/2)*4*tileSide)), 2*n)
			for j := range n {
				right[j*tileSide+p] = operand(row[2*j+p%2])
			}
		}
		for i := range m {
			row := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(c), i*ldc)), n)
			for j := range row {
				row[j] = tileSum(row[j], (*[tileSide]float64)(left[i*tileSide:]), (*[tileSide]float64)(right[j*tileSide:]))
			}
		}
	}
}

// tileSum is one element of TDPBF16PS.
func tileSum(c float32, x, y *[tileSide]float64) float32 {
	var even, odd float64
	for p := 0; p < tileSide; p += 2 {
		even = fused(x[p], y[p], even)
		odd = fused(x[p+1], y[p+1], odd)
	}
	return noDenormal(noDenormal(c) + noDenormal(float32(even)+float32(odd)))
}

// fused is x·y + c rounded to float32, for bf16 numbers x and y. The product is exact
// in float64; the sum is exact, or far from the middle of two float32, so rounding it
// twice is rounding it once. It is zero if it is denormal after it was rounded to 24
// bits, hence the middle between 2⁻¹²⁶ and the number of 24 bits below.
func fused(x, y, c float64) float64 {
	s := x*y + c // fused or not: x·y is exact
	if s < 0x1p-126-0x1p-151 && s > -(0x1p-126-0x1p-151) {
		return math.Copysign(0, s)
	}
	return float64(float32(s))
}

// operand is a bf16 number, 0 if it is denormal.
func operand(v uint16) float64 {
	return float64(noDenormal(math.Float32frombits(uint32(v) << 16)))
}

// noDenormal is x, or zero with its sign if it is denormal.
func noDenormal(x float32) float32 {
	if u := math.Float32bits(x); u&0x7f800000 == 0 {
		return math.Float32frombits(u & 0x80000000)
	}
	return x
}
