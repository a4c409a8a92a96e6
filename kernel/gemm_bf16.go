// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "unsafe"

// The products of bf16 matrices: as those of gemm.go, with operands of bf16 and
// sums of float32. There are three ways to add:
//
//   - AVX512BF16 takes two steps of k at once, the second one first, and flushes
//     denormal numbers (operands, sums and what is between) to zero:
//     c = fma(a[p+1], b[p+1], c), then c = fma(a[p], b[p], c), for even p.
//   - AMX takes 32 steps at once: see amx.go.
//   - The others widen the operands, which is exact, and multiply as in float32.
//
// Parts of k may be added by calls with acc, in order, if each but the last has a
// length that is a multiple of [Level.Together16]. Everything else that holds in
// gemm.go holds here: no cut and no packing changes a bit.

// Together16 is how many steps of k products of bf16 take at once.
func (l Level) Together16() int {
	switch {
	case l.tiled():
		return tileSide
	case l.paired():
		return 2
	}
	return 1
}

// paired says whether operands are pairs of steps.
func (l Level) paired() bool { return l == AVX512BF16 || l.tiled() }

// HalfIsFaster says whether products of bf16 take less time than those of float32.
func (l Level) HalfIsFaster() bool { return l.paired() }

// multiplies is the level that multiplies the panels: pairs of steps as if a pair
// were a float32, or widened numbers.
func (l Level) multiplies() Level {
	switch l {
	case AVX512BF16:
		return pairs
	case AMX:
		return onTiles
	case AMXPlain:
		return plainTiles
	}
	return l
}

// steps is how many steps of panels k steps are.
func (l Level) steps(k int) int {
	if l.paired() {
		return roundUp(k, l.Together16()) / 2
	}
	return k
}

// PanelLen16 is the number of elements of float32 that n packed columns of bf16
// numbers of length k take: half of them or all.
func (l Level) PanelLen16(n, k int) int {
	if l.tiled() {
		return roundUp(n, tileSide) * l.steps(k)
	}
	return l.PanelLen(n, l.steps(k))
}

// GemmScratch16 is the number of elements of scratch that products of bf16 take.
func (l Level) GemmScratch16() int { return l.StageScratch16() + l.GemmScratch() }

// StageScratch16 is the number of elements of scratch that MultiplyN16 and
// MultiplyT16 take.
func (l Level) StageScratch16() int { return blockM * blockK }

// PackNT16 is PackNT for b [n,k] of bf16. panels has PanelLen16(n,k) elements.
func (l Level) PackNT16(panels []float32, b []uint16, n, k, ldb int) {
	l.packNT16(panels, b, n, k, ldb, tilings[l.multiplies()].width)
}

func (l Level) packNT16(panels []float32, b []uint16, n, k, ldb, width int) {
	if n == 0 || k == 0 {
		return
	}
	if l.tiled() && even(b, k, ldb) {
		l.tilePackNT(panels, b, n, k, ldb)
		return
	}
	if l.paired() && even(b, k, ldb) {
		pairs.packNT(panels, asPairs(b[:(n-1)*ldb+k]), n, k/2, ldb/2, width)
		return
	}
	const high, long = 16, 256
	var rows [high * long]float32
	to, steps := l.multiplies(), l.steps(k)
	lanes := tilings[l].lanes
	for j := 0; j < n; j += width {
		cols := min(width, n-j)
		panel, w := panels[to.PanelLen(j, steps):], roundUp(cols, lanes)
		if l.tiled() {
			w = width
		}
		for g := 0; g < cols; g += lanes {
			m := min(lanes, cols-g)
			for p := 0; p < steps; p += long {
				d := min(long, steps-p)
				for i := range m {
					l.stage(rows[i*d:][:d], b[(j+g+i)*ldb:][:k], p)
				}
				to.turnColumns(panel[p*w+g:], rows[:], m, d, w)
			}
		}
	}
}

// turnColumns makes columns of rows of d numbers, filling up a vector.
func (l Level) turnColumns(panel, rows []float32, m, d, w int) {
	if l == Portable {
		transpose(panel, rows, m, d, w, d)
		return
	}
	l.packColumns(panel, rows, m, d, w, d)
}

// stage makes steps p … p+len(dst)−1 of a row x of bf16 numbers: pairs or widened.
func (l Level) stage(dst []float32, x []uint16, p int) {
	if !l.paired() {
		l.Widen(dst, x[p:p+len(dst)])
		return
	}
	to := asBF16(dst)
	clear(to[copy(to, x[2*p:]):])
}

// PackNN16 is PackNN for b [k,n] of bf16. panels is as for PackNT16.
func (l Level) PackNN16(panels []float32, b []uint16, n, k, ldb int) {
	l.packNN16(panels, b, n, k, ldb, tilings[l.multiplies()].width)
}

func (l Level) packNN16(panels []float32, b []uint16, n, k, ldb, width int) {
	if l.tiled() {
		l.tilePackNN(panels, b, n, k, ldb)
		return
	}
	steps := l.steps(k)
	for j := 0; j < n && k > 0; j += width {
		cols := min(width, n-j)
		l.stageRows(panels[l.PanelLen(j, steps):], b[j:], cols, k, ldb, roundUp(cols, tilings[l].lanes))
	}
}

// stageRows makes steps of k rows of bf16 numbers [k,cols]: rows of pairs of two
// numbers below each other, or widened rows, ldd apart. What is between cols and
// ldd is cleared.
func (l Level) stageRows(dst []float32, b []uint16, cols, k, ldb, ldd int) {
	_ = b[(k-1)*ldb+cols-1]
	if !l.paired() {
		for p := range k {
			row := dst[p*ldd:][:ldd]
			l.Widen(row[:cols], b[p*ldb:][:cols])
			clear(row[cols:])
		}
		return
	}
	_ = dst[((k+1)/2-1)*ldd+cols-1]
	const most = 1024 // pairs of rows of a call
	vecs := cols / 16
	for p := 0; p < k/2 && vecs > 0; p += most {
		weave(l, &dst[p*ldd], 4*ldd, &b[2*p*ldb], 2*ldb, min(most, k/2-p), vecs)
	}
	whole := 16 * vecs
	for p := 0; p < k/2; p++ {
		weaveRest(dst[p*ldd+whole:][:ldd-whole], b[2*p*ldb+whole:][:cols-whole], b[(2*p+1)*ldb+whole:])
	}
	if k%2 != 0 {
		weaveRest(dst[k/2*ldd:][:ldd], b[(k-1)*ldb:][:cols], nil)
	}
}

// weaveRest is dst[i] = (x[i], y[i]), 0 for y where it is nil, and 0 behind x.
func weaveRest(dst []float32, x, y []uint16) {
	to := asBF16(dst)
	for i, v := range x {
		to[2*i], to[2*i+1] = v, 0
		if y != nil {
			to[2*i+1] = y[i]
		}
	}
	clear(to[2*len(x):])
}

// MultiplyN16 is MultiplyN for a [m,k] of bf16 and panels packed by PackNT16 or
// PackNN16. scratch has StageScratch16 elements.
func (l Level) MultiplyN16(c []float32, a []uint16, panels []float32, m, n, k, ldc, lda int, acc bool,
	scratch []float32,
) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	if l.tiled() {
		l.tileMultiplyN(c, a, panels, m, n, k, ldc, lda, acc, scratch)
		return
	}
	if l.paired() && even(a, k, lda) {
		pairs.MultiplyN(c, asPairs(a[:(m-1)*lda+k]), panels, m, n, k/2, ldc, lda/2, acc)
		return
	}
	steps := l.steps(k)
	for i := 0; i < m; i += blockM {
		rows := min(blockM, m-i)
		for p := 0; p < steps; p += blockK {
			d := min(blockK, steps-p)
			for r := range rows {
				l.stage(scratch[r*d:][:d], a[(i+r)*lda:][:k], p)
			}
			l.staged(c[i*ldc:], scratch, panels, rows, n, steps, p, d, ldc, d, 1, acc || p > 0)
		}
	}
}

// MultiplyT16 is MultiplyT for a [k,m] of bf16 and panels packed by PackNN16.
// scratch has StageScratch16 elements.
func (l Level) MultiplyT16(c []float32, a []uint16, panels []float32, m, n, k, ldc, lda int, acc bool,
	scratch []float32,
) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	if l.tiled() {
		l.tileMultiplyT(c, a, panels, m, n, k, ldc, lda, acc, scratch)
		return
	}
	steps, each := l.steps(k), 1
	if l.paired() {
		each = 2
	}
	for i := 0; i < m; i += blockM {
		rows := min(blockM, m-i)
		w := roundUp(rows, 16)
		for p := 0; p < steps; p += blockK {
			d := min(blockK, steps-p)
			l.stageRows(scratch, a[each*p*lda+i:], rows, min(each*d, k-each*p), lda, w)
			l.staged(c[i*ldc:], scratch, panels, rows, n, steps, p, d, ldc, 1, w, acc || p > 0)
		}
	}
}

// staged multiplies m rows of steps p … p+d−1, with rows as and steps ap apart in
// a, with all columns.
func (l Level) staged(c, a, panels []float32, m, n, steps, p, d, ldc, as, ap int, acc bool) {
	to := l.multiplies()
	wide := roundUp(blockN, tilings[to].width)
	for j := 0; j < n; j += wide {
		w := min(wide, n-j)
		b := packed{panels[to.PanelLen(j, steps):], w, steps, tilings[to].width}
		to.block(c[j:], a, b, m, w, p, d, ldc, as, ap, acc)
	}
}

// GemmNT16 is GemmNT for a [m,k] and b [n,k] of bf16. scratch has GemmScratch16
// elements.
func (l Level) GemmNT16(c []float32, a, b []uint16, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	if l.tiled() && m <= tileSide {
		l.tileFew(c, a, b, m, n, k, ldc, lda, ldb, acc, scratch)
		return
	}
	if l.onAMD64() && m <= 2*fewest && !l.tiled() {
		if l.paired() && even(a, k, lda) && even(b, k, ldb) {
			a, b := asPairs(a[:(m-1)*lda+k]), asPairs(b[:(n-1)*ldb+k])
			pairs.GemmNT(c, a, b, m, n, k/2, ldc, lda/2, ldb/2, acc, scratch)
			return
		}
		if !l.paired() {
			l.fewNT16(c, a, b, m, n, k, ldc, lda, ldb, acc, scratch)
			return
		}
	}
	l.packedNT16(c, a, b, m, n, k, ldc, lda, ldb, acc, scratch)
}

// packedNT16 is GemmNT16 by way of panels.
func (l Level) packedNT16(c []float32, a, b []uint16, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	stage, panels := scratch[:l.StageScratch16()], scratch[l.StageScratch16():]
	l.blocks(m, n, k, func(j, p, w, d int) {
		l.PackNT16(panels, b[j*ldb+p:], w, d, ldb)
		l.MultiplyN16(c[j:], a[p:], panels, m, w, d, ldc, lda, acc || p > 0, stage)
	})
}

// fewNT16 is GemmNT16 for few rows, on a level that widens.
func (l Level) fewNT16(c []float32, a, b []uint16, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	const long = blockM * blockK / (2 * fewest)
	for p := 0; p < k; p += long {
		d := min(long, k-p)
		for i := range m {
			l.Widen(scratch[i*d:][:d], a[i*lda+p:][:d])
		}
		n0, k0 := fewDots(l, c, scratch, b[p:], m, n, d, ldc, d, ldb, acc || p > 0)
		if n0 > 0 && k0 < d {
			l.packedNT16(c, a[p+k0:], b[p+k0:], m, n0, d-k0, ldc, lda, ldb, true, scratch)
		}
		if n0 < n {
			l.packedNT16(c[n0:], a[p:], b[n0*ldb+p:], m, n-n0, d, ldc, lda, ldb, acc || p > 0, scratch)
		}
	}
}

// GemmNN16 is GemmNN for a [m,k] and b [k,n] of bf16. scratch has GemmScratch16
// elements.
func (l Level) GemmNN16(c []float32, a, b []uint16, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	stage, panels := scratch[:l.StageScratch16()], scratch[l.StageScratch16():]
	l.blocks(m, n, k, func(j, p, w, d int) {
		l.PackNN16(panels, b[p*ldb+j:], w, d, ldb)
		l.MultiplyN16(c[j:], a[p:], panels, m, w, d, ldc, lda, acc || p > 0, stage)
	})
}

// GemmTN16 is GemmTN for a [k,m] and b [k,n] of bf16. scratch has GemmScratch16
// elements.
func (l Level) GemmTN16(c []float32, a, b []uint16, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	stage, panels := scratch[:l.StageScratch16()], scratch[l.StageScratch16():]
	l.blocks(m, n, k, func(j, p, w, d int) {
		l.PackNN16(panels, b[p*ldb+j:], w, d, ldb)
		l.MultiplyT16(c[j:], a[p*lda:], panels, m, w, d, ldc, lda, acc || p > 0, stage)
	})
}

// PeakFLOPs16 is PeakFLOPs of products of bf16.
func (l Level) PeakFLOPs16(rounds int) int {
	switch l {
	case AVX512BF16:
		return 2 * pairs.PeakFLOPs(rounds)
	case AMX:
		return tilePeak(rounds)
	}
	return l.PeakFLOPs(rounds)
}

// even says whether rows of k numbers, ld apart, are rows of whole pairs.
func even(x []uint16, k, ld int) bool {
	return k%2 == 0 && ld%2 == 0 && len(x) > 0 && uintptr(unsafe.Pointer(&x[0]))%4 == 0
}

// asPairs is the memory of x as pairs of numbers, each a float32 that means nothing.
func asPairs(x []uint16) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&x[0])), len(x)/2)
}

// asBF16 is the memory of x as bf16 numbers.
func asBF16(x []float32) []uint16 {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(&x[0])), 2*len(x))
}
