// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"math"
	"math/bits"

	"pleach/half"
)

// The order of sums is that of aten/src/ATen/native/cpu/SumKernel.cpp: numbers of
// float32 are added in levels, each of which takes in the one below after a power of
// two of rows; four rows are summed beside each other.
const (
	lanes  = 8 // of a vector of float32
	beside = 4 // rows that are summed at a time
	levels = 4
)

// cascade is the sum of the columns of x, which is [rows, width].
func cascade(x []float32, width int) []float32 {
	rows := len(x) / width
	power := levelPower(rows)
	step := 1 << power
	acc := make([]float32, levels*width)
	level := func(j int) []float32 { return acc[j*width : (j+1)*width] }
	i := 0
	for ; i+step <= rows; i += step {
		for r := i; r < i+step; r++ {
			addTo(level(0), x[r*width:])
		}
		for j := 1; j < levels; j++ {
			addTo(level(j), level(j-1))
			clear(level(j - 1))
			if (i+step)&((step-1)<<(j*power)) != 0 {
				break
			}
		}
	}
	for ; i < rows; i++ {
		addTo(level(0), x[i*width:])
	}
	for j := 1; j < levels; j++ {
		addTo(level(0), level(j))
	}
	return level(0)
}

// levelPower is the logarithm of the rows of a level.
func levelPower(rows int) int {
	if rows < 2 {
		return 4
	}
	return max(4, bits.Len(uint(rows-1))/levels)
}

// addTo adds x to dst.
func addTo(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] += v
	}
}

// rowSum is the sum of the columns of x, [rows, width], four rows beside each other.
func rowSum(x []float32, width int) []float32 {
	whole := len(x) / width / beside * beside * width
	acc := cascade(x[:whole], beside*width)
	sum := acc[:width]
	for i := whole; i < len(x); i += width {
		addTo(sum, x[i:])
	}
	for k := 1; k < beside; k++ {
		addTo(sum, acc[k*width:])
	}
	return sum
}

// sum is the float32 sum of x, whose numbers are of type t. buffer has half of its
// length, unless t is float32.
func sum(x []float32, t half.DType, buffer []float32) float32 {
	block := lanes
	if t != half.F32 {
		block = 2 * lanes
	}
	if len(x) < block {
		return rowSum(x, 1)[0]
	}
	whole := len(x) / block * block
	body := x[:whole]
	if t != half.F32 {
		body = folded(buffer[:len(body)/2], body)
	}
	acc := rowSum(body, lanes)
	var s float32
	for _, v := range x[whole:] {
		s += v
	}
	for _, v := range acc {
		s += v
	}
	return s
}

// folded sets y to the sums of the two vectors that each vector of half as many bits
// in x is widened to.
func folded(y, x []float32) []float32 {
	for i := range y {
		at := i/lanes*2*lanes + i%lanes
		y[i] = x[at] + x[at+lanes]
	}
	return y
}

// columns sets dst to the sums of the columns of rows, all of one length: the sum
// over the outer dimension.
func columns(dst []float32, rows func(i int) []float32, count int) {
	n := len(dst)
	plain := n - n%beside
	if n >= lanes {
		plain = n - n%(beside*lanes)
	}
	column := make([]float32, count)
	for e := range dst {
		for i := range column {
			column[i] = rows(i)[e]
		}
		if e < plain {
			dst[e] = cascade1(column)
		} else {
			dst[e] = rowSum1(column)
		}
	}
}

// cascade1 is cascade of one column; few rows are added one after another.
func cascade1(x []float32) float32 {
	if len(x) >= 16 {
		return cascade(x, 1)[0]
	}
	var s float32
	for _, v := range x {
		s += v
	}
	return s
}

// rowSum1 is rowSum of one column; up to four rows are added one after another.
func rowSum1(x []float32) float32 {
	if len(x) > beside {
		return rowSum(x, 1)[0]
	}
	return cascade1(x)
}

// norm is the Euclidean norm of consecutive x, of ReduceOpsKernel.cpp: eight lanes,
// then the rest, the last n mod 4 of which with fused additions.
func norm(x []float32, t half.DType) float32 {
	block := lanes
	if t != half.F32 {
		block = 2 * lanes
	}
	whole := len(x) / block * block
	var acc [lanes]float32
	for i, v := range x[:whole] {
		acc[i%lanes] += float32(v * v)
	}
	s := acc[0]
	for _, v := range acc[1:] {
		s += v
	}
	rest := x[whole:]
	fused := len(rest) / 4 * 4
	for _, v := range rest[:fused] {
		s += float32(v * v)
	}
	for _, v := range rest[fused:] {
		s = fma(v, v, s)
	}
	return root(s)
}

// root is the square root in float32.
func root(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// fma is x·y + z with one rounding (but for one case in 2²⁹, where it is rounded to
// float64 before).
func fma(x, y, z float32) float32 { return float32(float64(x)*float64(y) + float64(z)) }

// columnNorm is the norm of n numbers of x from at on, stride apart, which are added
// one after another.
func columnNorm(x []float32, at, stride, n int) float32 {
	var s float32
	for i := range n {
		v := x[at+i*stride]
		s += float32(v * v)
	}
	return root(s)
}
