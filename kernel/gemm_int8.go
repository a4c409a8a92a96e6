// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"unsafe"

	"pleach/half"
)

// Products of bf16 with weights of int8, of which every row has a scale. An int8 is
// exact in bf16 as in float32: products are those of gemm_bf16.go, in the same order
// and with the same bits as if the weights had been of bf16, and ScaleColumns is all
// that follows. On AMX few rows are multiplied in pairs, as on AVX512BF16, and have
// other bits than many.
//
//	y[n,o] = s[o] · Σ_i x[n,i] · q[o,i]

// PackNT8 is PackNT16 for rows j … j+n−1 of w: the panels are those of the values.
func (l Level) PackNT8(panels []float32, w Int8, j, n int) { l.packNT8(panels, w, j, 0, n, w.I) }

// packNT8 packs steps p … p+k−1, p even.
func (l Level) packNT8(panels []float32, w Int8, j, p, n, k int) {
	width := tilings[l.multiplies()].width
	for c := 0; c < n && k > 0; c += width {
		cols := min(width, n-c)
		panel, ld := panels[l.PanelLen16(c, k):], roundUp(cols, tilings[l].lanes)
		if l.tiled() {
			ld = width
			clear(panel[(k+1)/2*ld : l.steps(k)*ld])
		}
		for g := 0; g < cols; g += groupRows {
			m, o := min(groupRows, cols-g), j+c+g
			if l.onAMD64() && m == groupRows && o%groupRows == 0 && o < w.grouped() && p%groupCols == 0 && k%groupCols == 0 {
				l.unpackGroup(panel[g:], w.Q[w.at(o, p):], k, ld)
				continue
			}
			for h := 0; h < m; h += tilings[l].lanes {
				l.packRows8(panel[g+h:], w, o+h, p, min(tilings[l].lanes, m-h), k, ld)
			}
		}
	}
}

// words is the level that moves operands, and multiplies those of few rows.
func (l Level) words() Level {
	if l.paired() {
		return pairs
	}
	return l
}

// unpackGroup packs k steps of a group of rows, which begin at q.
func (l Level) unpackGroup(panel []float32, q []int8, k, ld int) {
	const most = 512 // blocks of a call
	wide := groupCols
	if l.paired() {
		wide /= 2
	}
	_, _ = q[k*groupRows-1], panel[(k/groupCols*wide-1)*ld+groupRows-1]
	for b := 0; b < k/groupCols; b += most {
		unpack8(l.words(), &panel[b*wide*ld], 4*ld, &q[b*groupRows*groupCols], min(most, k/groupCols-b))
	}
}

// packRows8 packs any m rows, at most a vector of them, as a vector's columns.
func (l Level) packRows8(panel []float32, w Int8, o, p, m, k, ld int) {
	const long = 128
	var rows [groupRows * long]float32
	var q [2 * long]int8
	to, steps, each := l.words(), l.steps(k), 1
	if l.paired() {
		each = 2
	}
	for s := 0; s < steps; s += long {
		d := min(long, steps-s)
		part := q[:min(each*d, k-each*s)]
		for i := range m {
			w.Get(part, (o+i)*w.I+p+each*s)
			l.stage8(rows[i*d:][:d], part)
		}
		to.turnColumns(panel[s*ld:], rows[:], m, d, ld)
	}
}

// stage8 is stage for int8.
func (l Level) stage8(dst []float32, q []int8) {
	if !l.paired() {
		for i, v := range q {
			dst[i] = float32(v)
		}
		return
	}
	to := asBF16(dst)
	for i, v := range q {
		to[i] = half.ToBF16(float32(v))
	}
	clear(to[len(q):])
}

// GemmNT8 is C = A·Bᵀ for A [m,k] of bf16 and rows j … j+n−1 of w as B, k being w.I.
// c must not overlap the others. scratch has GemmScratch16 elements. The rows from next
// on are those that the caller is likely to want then; that changes no result.
func (l Level) GemmNT8(c []float32, a []uint16, w Int8, m, j, n, next, ldc, lda int, scratch []float32) {
	if !begin(c, m, n, w.I, ldc, false) {
		return
	}
	whole := max(0, min(j+n, w.grouped())/groupRows*groupRows) // the end of groups
	first := min(roundUp(j, groupRows), j+n)                   // their beginning
	if !l.onAMD64() || m > 2*fewest || whole <= first {
		l.packedNT8(c, a, w, m, j, n, ldc, lda, scratch)
		return
	}
	l.packedNT8(c, a, w, m, j, first-j, ldc, lda, scratch)
	l.fewNT8(c[first-j:], a, w, m, first, whole-first, next, ldc, lda, scratch)
	l.packedNT8(c[whole-j:], a, w, m, whole, j+n-whole, ldc, lda, scratch)
}

// packedNT8 is GemmNT8 by way of panels.
func (l Level) packedNT8(c []float32, a []uint16, w Int8, m, j, n, ldc, lda int, scratch []float32) {
	stage, panels := scratch[:l.StageScratch16()], scratch[l.StageScratch16():]
	l.blocks(m, n, w.I, func(i, p, cols, d int) {
		l.packNT8(panels, w, j+i, p, cols, d)
		l.MultiplyN16(c[i:], a[p:], panels, m, cols, d, ldc, lda, p > 0, stage)
	})
}

// fewNT8 is GemmNT8 for few rows and whole groups: the weights are read once, straight
// from memory.
func (l Level) fewNT8(c []float32, a []uint16, w Int8, m, j, n, next, ldc, lda int, scratch []float32) {
	k := w.I
	_, _, _ = a[(m-1)*lda+k-1], c[(m-1)*ldc+n-1], w.Q[(j+n)*k-1]
	x, dx, wide := unsafe.Pointer(&a[0]), 2*lda, 2
	long := k
	if !l.paired() {
		x, dx, wide = unsafe.Pointer(&scratch[0]), 4*min(k, fewLong8), 4
		long = fewLong8
	}
	for p := 0; p < k; p += long {
		d, at := min(long, k-p), x
		if !l.paired() {
			for i := range m {
				l.Widen(scratch[i*dx/4:][:d], a[i*lda+p:][:d])
			}
		} else {
			at = unsafe.Add(x, wide*p)
		}
		for i := 0; i < m; i += fewest {
			l.fewGroups8(c[i*ldc:], unsafe.Add(at, i*dx), w, min(fewest, m-i), j, p, n, d, next, ldc, dx, p > 0)
		}
	}
}

// fewLong8 is how many steps are widened at a time: a multiple of groupCols.
const fewLong8 = blockM * blockK / (2 * fewest)

// fewGroups8 is steps p … p+k−1 of fewNT8 for up to fewest rows at x, dx bytes apart,
// of float32 or, in pairs, of bf16.
func (l Level) fewGroups8(c []float32, x unsafe.Pointer, w Int8, m, j, p, n, k, next, ldc, dx int, acc bool) {
	const most = 2048 // blocks of a call, of one group
	to, wide := l.words(), 4
	if l.paired() {
		wide = 2
	}
	var sums [fewest * 4 * groupRows]float32
	side := groups8(to, m)
	for o := 0; o < n; {
		left := (n - o) / groupRows
		g := across(left, across(left, side)) // in as few calls, of about one size
		cols := g * groupRows
		for i := range m {
			if s := sums[i*cols:][:cols]; acc {
				copy(s, c[i*ldc+o:])
			} else {
				clear(s)
			}
		}
		soon := j + o + cols
		if soon >= j+n {
			soon = next
		}
		soon = max(0, min(soon, w.grouped()-groupRows)) * w.I
		for b := 0; b < k/groupCols; b += most / g {
			few8(to, m, g, &sums[0], (*float32)(unsafe.Add(x, wide*groupCols*b)), dx,
				&w.Q[w.at(j+o, p+groupCols*b)], groupRows*w.I, &w.Q[min(soon+cols*(p+groupCols*b), len(w.Q)-1)],
				min(most/g, k/groupCols-b))
		}
		for i := range m {
			copy(c[i*ldc+o:][:cols], sums[i*cols:])
		}
		o += cols
	}
}

// across is how many groups of a size n are.
func across(n, size int) int { return (n + size - 1) / size }

// ScaleColumns is c[i,j] *= s[j] for c [m,n]: what follows a product with weights of
// int8. s has at least n elements.
func (l Level) ScaleColumns(c, s []float32, m, n, ldc int) {
	s = s[:n]
	for i := range m {
		row := c[i*ldc:][:n]
		if l != Portable {
			eachTimes(l, row, row, s)
			continue
		}
		for j, v := range s {
			row[j] *= v
		}
	}
}
