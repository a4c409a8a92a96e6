// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "unsafe"

// The products of matrices. M, N, K are those of the BLAS literature: C is
// [m,n], and k is summed over. ld is the leading dimension: the distance of two
// rows of a matrix in its slice.
//
// Every element is one left fold over k in rising order, from its old value if
// acc, else from 0. Hence no cut of a product into tiles of m and n, no packing
// and no blocking of k inside changes a bit of the result, and parts of k may be
// added by calls with acc, in order. On Portable each product is rounded before
// it is added; the other levels fuse: c = fma(a, b, c).
//
// The right operand is read from panels, packed by PackNT or PackNN: a panel is
// up to PanelWidth columns, k rows of them one after the other. GemmNT, GemmNN
// and GemmTN pack a block at a time for themselves.

// Blocks of the levels in assembly: a block of packed B stays in the second-level
// cache while rows of A pass by.
const (
	blockK = 512 // steps of k
	blockN = 192 // columns: a multiple of every panel's width
	blockM = 96  // rows of a transposed A, of which blockK steps stay there too

	fewRows = 16 // fewer rows do not pay for a block: panels are packed one by one, long ones
)

// tiling is the largest tile of a level.
type tiling struct{ lanes, rows, width int }

var tilings = [allLevels]tiling{
	Portable: {1, 1, 256}, AVX2: {8, 6, 16}, AVX512: {16, 8, 48}, AVX512BF16: {16, 8, 48}, AMX: {16, 8, 48},
	NEON: {4, 8, 12}, AMXPlain: {16, 8, 48}, pairs: {16, 8, 48}, onTiles: {16, 32, 32}, plainTiles: {16, 32, 32},
}

// PanelWidth is the number of columns of a panel, or of some whole ones. Whoever
// packs or multiplies parts of a product cuts columns at its multiples.
func (l Level) PanelWidth() int {
	if l.tiled() {
		return 96 // of float32 there are 48, of bf16 32
	}
	return tilings[l].width
}

// PanelLen is the number of elements that n packed columns of length k take. So
// it is also where column n begins, if n is a multiple of PanelWidth.
func (l Level) PanelLen(n, k int) int { return roundUp(n, tilings[l].lanes) * k }

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// PackNT packs the right operand of C = A·Bᵀ: b is [n,k], the weights [out,in] of
// a linear layer. panels has PanelLen(n,k) elements and overlaps nothing.
func (l Level) PackNT(panels, b []float32, n, k, ldb int) {
	l.packNT(panels, b, n, k, ldb, tilings[l].width)
}

// packNT packs panels of a given width, a multiple of a vector's length.
func (l Level) packNT(panels, b []float32, n, k, ldb, width int) {
	s := tilings[l]
	for j := 0; j < n && k > 0; j += width {
		cols := min(width, n-j)
		panel, w := panels[l.PanelLen(j, k):], roundUp(cols, s.lanes)
		if l == Portable {
			transpose(panel, b[j*ldb:], cols, k, w, ldb)
			continue
		}
		for g := 0; g < cols; g += s.lanes {
			l.packColumns(panel[g:], b[(j+g)*ldb:], min(s.lanes, cols-g), k, w, ldb)
		}
	}
}

// packColumns packs rows of b as the columns of one vector; the last one fills
// what is left of it.
func (l Level) packColumns(dst, b []float32, rows, k, w, ldb int) {
	lanes := tilings[l].lanes
	_, _ = dst[(k-1)*w+lanes-1], b[(rows-1)*ldb+k-1]
	if k < lanes {
		for p := range k {
			for i := range lanes {
				dst[p*w+i] = b[min(i, rows-1)*ldb+p]
			}
		}
		return
	}
	var at [16]int
	for i := range at {
		at[i] = 4 * ldb * min(i, rows-1)
	}
	const most = 256 // blocks of a call
	for p := 0; p+lanes <= k; p += most * lanes {
		transposeBlocks(l, &dst[p*w], 4*w, &b[p], &at, min(most, (k-p)/lanes))
	}
	if k%lanes > 0 { // the last block covers some of the one before it again
		p := k - lanes
		transposeBlocks(l, &dst[p*w], 4*w, &b[p], &at, 1)
	}
}

// PackNN packs the right operand of C = A·B: b is [k,n]. panels is as for PackNT.
func (l Level) PackNN(panels, b []float32, n, k, ldb int) {
	l.packNN(panels, b, n, k, ldb, tilings[l].width)
}

// packNN packs panels of a given width, a multiple of a vector's length.
func (l Level) packNN(panels, b []float32, n, k, ldb, width int) {
	for j := 0; j < n && k > 0; j += width {
		cols := min(width, n-j)
		l.packPanel(panels[l.PanelLen(j, k):], b[j:], cols, k, ldb)
	}
}

// packPanel packs up to a panel's columns of b [k,cols].
func (l Level) packPanel(panel, b []float32, cols, k, ldb int) {
	lanes := tilings[l].lanes
	if l == Portable {
		copyTile(panel, b, k, cols, ldb)
		return
	}
	w := roundUp(cols, lanes)
	_, _ = panel[k*w-1], b[(k-1)*ldb+cols-1]
	const most = 2048 // rows of a call
	if vecs := cols / lanes; vecs > 0 {
		for p := 0; p < k; p += most {
			packRows(l, &panel[p*w], 4*w, &b[p*ldb], 4*ldb, min(most, k-p), vecs)
		}
	}
	if whole := cols / lanes * lanes; whole < cols {
		for p := range k {
			rest := panel[p*w+whole : (p+1)*w]
			clear(rest[copy(rest, b[p*ldb+whole:p*ldb+cols]):])
		}
	}
}

// MultiplyN is C = A·B, or C += A·B if acc, for a packed B.
//
//	c[i,j] (+)= Σ_p a[i,p] · b[p,j]
//
// a is [m,k], c is [m,n]; c must not overlap the others.
func (l Level) MultiplyN(c, a, panels []float32, m, n, k, ldc, lda int, acc bool) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	_, _ = a[(m-1)*lda+k-1], panels[l.PanelLen(n, k)-1]
	if l == Portable {
		plain(c, a, panels, m, n, k, ldc, lda, 1, acc)
		return
	}
	for j := 0; j < n; j += blockN {
		w := min(blockN, n-j)
		for p := 0; p < k; p += blockK {
			b := packed{panels[l.PanelLen(j, k):], w, k, tilings[l].width}
			l.block(c[j:], a[p:], b, m, w, p, min(blockK, k-p), ldc, lda, 1, acc || p > 0)
		}
	}
}

// MultiplyT is C = Aᵀ·B, or C += Aᵀ·B if acc, for a packed B.
//
//	c[i,j] (+)= Σ_p a[p,i] · b[p,j]
//
// a is [k,m], c is [m,n]; c must not overlap the others. a is read where it lies:
// a step takes a tile's rows from one line of it, and packing it was measured to
// cost more than it gives, for leading dimensions of powers of two as well.
func (l Level) MultiplyT(c, a, panels []float32, m, n, k, ldc, lda int, acc bool) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	_, _ = a[(k-1)*lda+m-1], panels[l.PanelLen(n, k)-1]
	if l == Portable {
		plain(c, a, panels, m, n, k, ldc, 1, lda, acc)
		return
	}
	for i := 0; i < m; i += blockM {
		for p := 0; p < k; p += blockK {
			for j := 0; j < n; j += blockN {
				b := packed{panels[l.PanelLen(j, k):], min(blockN, n-j), k, tilings[l].width}
				l.block(c[i*ldc+j:], a[p*lda+i:], b, min(blockM, m-i), b.n, p, min(blockK, k-p), ldc, 1, lda, acc || p > 0)
			}
		}
	}
}

// begin checks the size of c, and does what is to do without k. It says whether
// there is more.
func begin(c []float32, m, n, k, ldc int, acc bool) bool {
	if m == 0 || n == 0 {
		return false
	}
	_ = c[(m-1)*ldc+n-1]
	if k == 0 && !acc {
		clearTile(c, m, n, ldc)
	}
	return k > 0
}

// packed is n columns of k steps in panels.
type packed struct {
	panels      []float32
	n, k, width int
}

// block adds steps p … p+d−1 of the first n columns of b to a block of C. a
// begins at its step p, with rows as and steps ap apart.
func (l Level) block(c, a []float32, b packed, m, n, p, d, ldc, as, ap int, acc bool) {
	if l == Portable {
		plainBlock(c, a, b, m, n, p, d, ldc, as, ap, acc)
		return
	}
	if l == onTiles || l == plainTiles {
		x := tileLeft{x: &asBF16(a)[0], as: 4 * as, ap: tileLine * ap}
		l.tileBlock(c, x, b, m, n, p, d, ldc, acc)
		return
	}
	i := 0
	if whole := n / b.width * b.width; whole > 0 && l.onAMD64() {
		i = l.wholeTiles(c, a, b, m, whole, p, d, ldc, as, ap, acc)
		if whole < n {
			l.tileByTile(c, a, b, 0, i, whole, n, p, d, ldc, as, ap, acc)
		}
	}
	l.tileByTile(c, a, b, i, m, 0, n, p, d, ldc, as, ap, acc)
}

// onAMD64 says whether the level has the kernels tiles and few.
func (l Level) onAMD64() bool { return l != Portable && l != NEON }

// wholeTiles is block for n columns of whole panels and the rows of whole tiles,
// the number of which it returns.
func (l Level) wholeTiles(c, a []float32, b packed, m, n, p, d, ldc, as, ap int, acc bool) int {
	s := tilings[l]
	rows := m / s.rows * s.rows
	const most = 80_000 // cycles of a call, of a multiplication and addition in each
	group := s.rows * max(1, most/(d*n*s.rows/s.lanes))
	for i := 0; i < rows; i += group {
		tiles(l, b.width/s.lanes, d, &a[i*as], 4*as, 4*ap, &b.panels[p*b.width], 4*b.width, 4*b.width*b.k,
			&c[i*ldc], 4*ldc, acc, min(group, rows-i)/s.rows, n/b.width)
	}
	return rows
}

// tileByTile is block for rows i0 … m−1 and columns j0 … n−1.
func (l Level) tileByTile(c, a []float32, b packed, i0, m, j0, n, p, d, ldc, as, ap int, acc bool) {
	s := tilings[l]
	for i := i0; i < m; i += s.rows {
		rows := min(s.rows, m-i)
		x := &a[i*as]
		for j := j0; j < n; j += b.width {
			cols := min(b.width, n-j)
			w := roundUp(min(b.width, b.n-j), s.lanes)
			y := &b.panels[j*b.k+p*w]
			at := i*ldc + j
			if cols%s.lanes > 0 {
				l.edge(c[at:], x, y, rows, cols, d, ldc, as, ap, w, acc)
				continue
			}
			next := (*float32)(nil) // where the tile after this one is
			if j+b.width < n {
				next = &c[at+b.width]
			} else if i+2*s.rows <= m {
				next = &c[(i+s.rows)*ldc+j0]
			}
			tile(l, rows, cols/s.lanes, d, x, 4*as, 4*ap, y, 4*w, &c[at], 4*ldc, acc, next)
		}
	}
}

// edge is a tile whose last vector is not whole, by way of one that is.
func (l Level) edge(c []float32, a, b *float32, rows, cols, d, ldc, as, ap, bs int, acc bool) {
	const most = 8 * 48
	var whole [most]float32
	lanes := tilings[l].lanes
	w := roundUp(cols, lanes)
	if acc {
		for i := range rows {
			copy(whole[i*w:], c[i*ldc:][:cols])
		}
	}
	tile(l, rows, w/lanes, d, a, 4*as, 4*ap, b, 4*bs, &whole[0], 4*w, acc, nil)
	for i := range rows {
		copy(c[i*ldc:][:cols], whole[i*w:])
	}
}

// PeakFLOPs does so many rounds of independent multiplications and additions in
// registers, and returns how many operations that were: what it reaches is the
// peak that products are measured by. It is 0 on Portable.
func (l Level) PeakFLOPs(rounds int) int {
	if l == Portable {
		return 0
	}
	const most = 5_000 // rounds of a call
	for done := 0; done < rounds; done += most {
		peak(l, min(most, rounds-done))
	}
	return 2 * rounds * tilings[l].rows * tilings[l].width
}

// GemmScratch is the number of elements of scratch that a product takes.
func (l Level) GemmScratch() int {
	if l == Portable {
		return plainK * plainN
	}
	return blockK * blockN
}

// GemmNT is C = A·Bᵀ, or C += A·Bᵀ if acc: the forward product of a linear layer
// with weights [out,in].
//
//	c[i,j] (+)= Σ_p a[i,p] · b[j,p]
//
// a is [m,k], b is [n,k], c is [m,n]; c must not overlap the others. scratch has
// GemmScratch elements. B is packed a block at a time for all m rows, so tall
// products are cheaper: at 64 rows that costs about a tenth.
func (l Level) GemmNT(c, a, b []float32, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	if l == Portable && m < fewRows {
		if !acc {
			clearTile(c, m, n, ldc)
		}
		plainDots(c, a, b, m, n, k, ldc, lda, ldb)
		return
	}
	if l.onAMD64() && m <= 2*fewest {
		n0, k0 := fewDots(l, c, a, b, m, n, k, ldc, lda, ldb, acc)
		if n0 > 0 && k0 < k {
			l.packedNT(c, a[k0:], b[k0:], m, n0, k-k0, ldc, lda, ldb, true, scratch)
		}
		if n0 < n {
			l.packedNT(c[n0:], a, b[n0*ldb:], m, n-n0, k, ldc, lda, ldb, acc, scratch)
		}
		return
	}
	l.packedNT(c, a, b, m, n, k, ldc, lda, ldb, acc, scratch)
}

// packedNT is GemmNT by way of panels.
func (l Level) packedNT(c, a, b []float32, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	l.blocks(m, n, k, func(j, p, w, d int) {
		l.PackNT(scratch, b[j*ldb+p:], w, d, ldb)
		l.MultiplyN(c[j:], a[p:], scratch, m, w, d, ldc, lda, acc || p > 0)
	})
}

// fewest is the most rows of A that one reading of B serves in fewDots, which
// turns B in registers, so fast that memory is what it waits for. For more than
// twice as many, packed panels are faster.
const fewest = 4

// fewDots is GemmNT for the first n0 columns and k0 steps, which it returns: those
// that fill vectors. b is widened if it is of bf16.
func fewDots[E float32 | uint16](l Level, c, a []float32, b []E, m, n, k, ldc, lda, ldb int, acc bool) (n0, k0 int) {
	lanes := tilings[l].lanes
	n0, k0 = n/lanes*lanes, k/lanes*lanes
	if n0 == 0 || k0 == 0 {
		return 0, 0
	}
	_, _ = a[(m-1)*lda+k-1], b[(n-1)*ldb+k-1]
	var at [16]int
	for i := range at {
		at[i] = int(unsafe.Sizeof(b[0])) * ldb * i
	}
	for j := 0; j < n0; j += lanes {
		next := j + lanes // its rows come next
		if next+lanes > n {
			next = j
		}
		for i := 0; i < m; i += fewest {
			fewColumns(l, c[i*ldc+j:], a[i*lda:], b[j*ldb:], b[next*ldb:], min(fewest, m-i), k0, ldc, lda, &at, acc)
		}
	}
	return n0, k0
}

// fewColumns is a vector of columns for up to fewest rows.
func fewColumns[E float32 | uint16](l Level, c, a []float32, b, next []E, m, k, ldc, lda int, at *[16]int, acc bool) {
	const most = 256 // blocks of a call
	lanes := tilings[l].lanes
	var sums [fewest * 16]float32
	for i := 0; acc && i < m; i++ {
		copy(sums[i*lanes:], c[i*ldc:][:lanes])
	}
	for p := 0; p < k; p += most * lanes {
		at, blocks := at, min(most, (k-p)/lanes)
		w, ahead := unsafe.Pointer(&b[p]), unsafe.Pointer(&next[min(p*lanes, len(next)-1)])
		if unsafe.Sizeof(b[0]) == 4 {
			few(l, m, &sums[0], &a[p], 4*lda, (*float32)(w), at, (*float32)(ahead), blocks)
		} else {
			fewWidened(l, m, &sums[0], &a[p], 4*lda, (*uint16)(w), at, (*uint16)(ahead), blocks)
		}
	}
	for i := range m {
		copy(c[i*ldc:][:lanes], sums[i*lanes:])
	}
}

// GemmNN is C = A·B, or C += A·B if acc: the gradient of a linear layer's input.
//
//	c[i,j] (+)= Σ_p a[i,p] · b[p,j]
//
// a is [m,k], b is [k,n], c is [m,n]; c must not overlap the others. scratch has
// GemmScratch elements.
func (l Level) GemmNN(c, a, b []float32, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	if l == Portable && m < fewRows {
		if !acc {
			clearTile(c, m, n, ldc)
		}
		plainPanel(c, a, b, m, n, k, ldc, lda, 1, ldb)
		return
	}
	l.blocks(m, n, k, func(j, p, w, d int) {
		l.PackNN(scratch, b[p*ldb+j:], w, d, ldb)
		l.MultiplyN(c[j:], a[p:], scratch, m, w, d, ldc, lda, acc || p > 0)
	})
}

// blocks calls f for blocks of columns and steps that fit scratch: columns j …
// j+w−1, steps p … p+d−1.
func (l Level) blocks(m, n, k int, f func(j, p, w, d int)) {
	cols, steps := blockN, blockK
	switch {
	case l == Portable:
		cols, steps = plainN, plainK
	case m < fewRows:
		cols = tilings[l].width
		steps = blockK * blockN / cols
	}
	for j := 0; j < n; j += cols {
		for p := 0; p < k; p += steps {
			f(j, p, min(cols, n-j), min(steps, k-p))
		}
	}
}

// GemmTN is C = Aᵀ·B, or C += Aᵀ·B if acc: the gradient of a linear layer's
// weights, where k counts tokens.
//
//	c[i,j] (+)= Σ_p a[p,i] · b[p,j]
//
// a is [k,m], b is [k,n], c is [m,n]; c must not overlap the others. scratch has
// GemmScratch elements.
func (l Level) GemmTN(c, a, b []float32, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	if !begin(c, m, n, k, ldc, acc) {
		return
	}
	l.blocks(m, n, k, func(j, p, w, d int) {
		l.PackNN(scratch, b[p*ldb+j:], w, d, ldb)
		l.MultiplyT(c[j:], a[p*lda:], scratch, m, w, d, ldc, lda, acc || p > 0)
	})
}
