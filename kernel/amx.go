// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "unsafe"

// Products of bf16 on tiles, as AMX multiplies. An element takes 32 steps of k at
// once. The products of even and of odd steps are two sums from zero, each a chain of
// fused multiplications and additions in order of k; then
//
//	c = c + (even + odd)
//
// Every operation rounds to nearest even, and denormal numbers (operands, sums and
// what is between) are zeros. k is filled up with zeros to a multiple of 32, so parts
// of k may be added by calls with acc, in order, if each but the last has a length
// that is a multiple of 32. Otherwise no cut and no packing changes a bit. Products of
// few rows go through the tiles as well, and have the same bits.
//
// Panels are 32 columns wide, one row for each pair of steps. A tile is loaded with
// its rows and columns, so what does not fill one is neither filled up nor read. The
// left operand is read where it lies, but for the last steps that are not 32.

const (
	tileSide  = 32  // rows and columns of a block of two by two tiles, and steps of k of an operation
	tileK     = 512 // steps of k whose panel stays in the first-level cache
	tileGroup = 8   // blocks of rows, of which tileK steps stay in the second-level cache
	tileCall  = 1024
	tileLine  = 64 // bytes of a row of a tile
)

// tiled says whether products of bf16 go through tiles.
func (l Level) tiled() bool { return l == AMX || l == AMXPlain }

// tileShapes is the memory that describes the eight tiles of a call.
type tileShapes [64]byte

// shapesOf are the shapes for blocks of r0+r1 rows and c0+c1 columns: T0 to T3 are
// what is summed, T4 and T5 the left operand, T6 and T7 the right one. Of 0 rows or
// columns there is no tile that a kernel uses, but its shape must be one.
func shapesOf(r0, r1, c0, c1 int) (s tileShapes) {
	s[0] = 1 // the palette
	for i, shape := range [8][2]int{{r0, c0}, {r0, c1}, {r1, c0}, {r1, c1}, {r0, 16}, {r1, 16}, {16, c0}, {16, c1}} {
		s[16+2*i] = byte(4 * max(shape[1], 1))
		s[48+i] = byte(max(shape[0], 1))
	}
	return s
}

// tileRange is a part of the rows or columns of a block: blocks of 32, or one with
// less, of a first and a second tile.
type tileRange struct{ from, blocks, first, second int }

// tileRanges are the whole blocks of n, and what is left.
func tileRanges(n int) (r [2]tileRange) {
	whole := n / tileSide * tileSide
	rest := n - whole
	r[0] = tileRange{0, whole / tileSide, 16, 16}
	if rest > 0 {
		r[1] = tileRange{whole, 1, min(rest, 16), max(rest-16, 0)}
	}
	return r
}

// tiles is how many tiles there are side by side.
func (r tileRange) tiles() int {
	if r.second > 0 {
		return 2
	}
	return 1
}

// tileLeft is the left operand: its first row, and the distances of rows and of 32
// steps of k in bytes.
type tileLeft struct {
	x      *uint16
	as, ap int
	stream bool // it is read once, and its rows lie one after the other
}

// from is the operand from row i on.
func (a tileLeft) from(i int) tileLeft {
	a.x = (*uint16)(unsafe.Add(unsafe.Pointer(a.x), i*a.as))
	return a
}

// tileBlock is block for bf16 numbers; p and d count pairs, in multiples of 16.
func (l Level) tileBlock(c []float32, a tileLeft, b packed, m, n, p, d, ldc int, acc bool) {
	for _, rows := range tileRanges(m) {
		for _, cols := range tileRanges(n) {
			if rows.blocks*cols.blocks > 0 {
				l.tileRect(c[rows.from*ldc+cols.from:], a.from(rows.from), b, rows, cols, p, d/16, ldc, acc)
			}
		}
	}
}

// tileRect is blocks of equal shapes, k operations deep, in calls of at most some
// 20 µs.
func (l Level) tileRect(c []float32, a tileLeft, b packed, rows, cols tileRange, p, k, ldc int, acc bool) {
	shapes := shapesOf(rows.first, rows.second, cols.first, cols.second)
	group := tileGroup
	if a.stream {
		group = max(1, tileCall/4/k) // memory is slower
	}
	group = min(group, rows.blocks)
	panels := max(1, tileCall/(k*group))
	for i := 0; i < rows.blocks; i += group {
		at := a.from(i * tileSide)
		for j := 0; j < cols.blocks; j += panels {
			y := &b.panels[(cols.from+j*tileSide)*b.k+p*tileSide]
			z := &c[(i*ldc+j)*tileSide]
			g, w := min(group, rows.blocks-i), min(panels, cols.blocks-j)
			if l == plainTiles {
				plainGrid(k, at.x, at.as, at.ap, y, 4*tileSide*b.k, z, 4*ldc, acc, g, w, &shapes,
					rows.tiles(), cols.tiles())
				continue
			}
			stream := a.stream && rows.tiles() == 2
			tileGrid(rows.tiles(), cols.tiles(), stream, k, at.x, at.as, at.ap, y, 4*tileSide*b.k, z, 4*ldc, acc, g, w,
				&shapes)
		}
	}
}

// tilePanels are panels packed by PackNT16 or PackNN16.
func (l Level) tilePanels(panels []float32, n, k int) packed {
	return packed{panels[:l.PanelLen16(n, k)], n, l.steps(k), tileSide}
}

// tilePackNT is PackNT16 for rows of whole pairs.
func (l Level) tilePackNT(panels []float32, b []uint16, n, k, ldb int) {
	steps := l.steps(k)
	for j := 0; j < n; j += tileSide {
		cols, panel := min(tileSide, n-j), panels[j*steps:][:tileSide*steps]
		for g := 0; g < cols; g += 16 {
			m := min(16, cols-g)
			x := asPairs(b[(j+g)*ldb:][:(m-1)*ldb+k])
			pairs.packColumns(panel[g:], x, m, k/2, tileSide, ldb/2)
		}
		clear(panel[k/2*tileSide:])
	}
}

// tilePackNN is PackNN16.
func (l Level) tilePackNN(panels []float32, b []uint16, n, k, ldb int) {
	steps := l.steps(k)
	for j := 0; j < n && k > 0; j += tileSide {
		panel := panels[j*steps:][:tileSide*steps]
		l.stageRows(panel, b[j:], min(tileSide, n-j), k, ldb, tileSide)
		clear(panel[(k+1)/2*tileSide:])
	}
}

// tileMultiplyN is MultiplyN16. The steps are cut into equal parts.
func (l Level) tileMultiplyN(c []float32, a []uint16, panels []float32, m, n, k, ldc, lda int, acc bool,
	scratch []float32,
) {
	_ = a[(m-1)*lda+k-1]
	to, b, whole := l.multiplies(), l.tilePanels(panels, n, k), k/tileSide*tileSide
	for p, d := 0, tileChunk(whole); p < whole; p += d {
		x := tileLeft{x: &a[p], as: 2 * lda, ap: tileLine}
		to.tileBlock(c, x, b, m, n, p/2, min(d, whole-p)/2, ldc, acc || p > 0)
	}
	if whole < k {
		l.tileRest(c, a, b, m, n, k, ldc, lda, acc || whole > 0, scratch)
	}
}

// tileChunk cuts k steps into equal parts of at most tileK, in multiples of 32.
func tileChunk(k int) int {
	parts := (k + tileK - 1) / tileK
	return roundUp((k+parts-1)/max(parts, 1), tileSide)
}

// tileRest is the last steps, less than 32, by way of rows that are filled up.
func (l Level) tileRest(c []float32, a []uint16, b packed, m, n, k, ldc, lda int, acc bool, scratch []float32) {
	const each = tileSide / 2
	whole, most := k/tileSide*tileSide, len(scratch)/each
	for i := 0; i < m; i += most {
		rows := min(most, m-i)
		for r := range rows {
			l.stage(scratch[r*each:][:each], a[(i+r)*lda+whole:][:k-whole], 0)
		}
		x := tileLeft{x: &asBF16(scratch)[0], as: tileLine, ap: tileLine}
		l.multiplies().tileBlock(c[i*ldc:], x, b, rows, n, whole/2, each, ldc, acc)
	}
}

// tileMultiplyT is MultiplyT16: a is turned, some columns and steps at a time.
func (l Level) tileMultiplyT(c []float32, a []uint16, panels []float32, m, n, k, ldc, lda int, acc bool,
	scratch []float32,
) {
	_ = a[(k-1)*lda+m-1]
	b, d := l.tilePanels(panels, n, k), tileChunk(k)
	for i := 0; i < m; i += blockM {
		rows := min(blockM, m-i)
		for p := 0; p < k; p += d {
			x := turnLeft(scratch, a[p*lda+i:], rows, min(d, k-p), lda)
			l.multiplies().tileBlock(c[i*ldc:], x, b, rows, n, p/2, l.steps(min(d, k-p)), ldc, acc || p > 0)
		}
	}
}

// turnLeft makes a left operand of columns: a is [k,m]. For each 32 steps there are
// rows of them, one after the other.
func turnLeft(dst []float32, a []uint16, m, k, lda int) tileLeft {
	const each = tileSide / 2 // pairs of a row
	high := roundUp(m, 16)
	for p := 0; p < k; p += tileSide {
		to, steps, whole := dst[p/tileSide*high*each:][:high*each], min(tileSide, k-p), 0
		if steps == tileSide && m >= 16 {
			whole = m / 16 * 16
			turnTiles(&to[0], &a[p*lda], 2*lda, m/16)
		}
		rest := asBF16(to[whole*each:])
		clear(rest)
		for q := range steps {
			for i, v := range a[(p+q)*lda+whole:][:m-whole] {
				rest[i*tileSide+q] = v
			}
		}
	}
	return tileLeft{x: &asBF16(dst)[0], as: tileLine, ap: tileLine * high}
}

// tileFew is GemmNT16 for at most 32 rows: Cᵀ = B·Aᵀ, so that B, the weights, is read
// once and where it lies. A product has the same bits either way round.
func (l Level) tileFew(c []float32, a, b []uint16, m, n, k, ldc, lda, ldb int, acc bool, scratch []float32) {
	const long, high, each = 4096, 1024, tileSide / 2 // steps and columns of c at a time
	_, _ = a[(m-1)*lda+k-1], b[(n-1)*ldb+k-1]
	sums, scratch := scratch[:high*tileSide], scratch[high*tileSide:]
	rest, panel := scratch[:high*each], scratch[high*each:]
	for p := 0; p < k; p += long {
		d := min(long, k-p)
		l.PackNT16(panel, a[p:], m, d, lda)
		x, whole := l.tilePanels(panel, m, d), d/tileSide*tileSide
		for j := 0; j < n; j += high {
			rows := min(high, n-j)
			for i := range m {
				turnRow(sums[i:], c[i*ldc+j:][:rows], acc || p > 0)
			}
			y := b[j*ldb+p:]
			if whole > 0 {
				left := tileLeft{x: &y[0], as: 2 * ldb, ap: tileLine, stream: true}
				l.multiplies().tileBlock(sums, left, x, rows, m, 0, whole/2, tileSide, acc || p > 0)
			}
			if whole < d {
				l.tileRest(sums, y, x, rows, m, d, tileSide, ldb, acc || p+whole > 0, rest)
			}
			for i := range m {
				for r := range rows {
					c[i*ldc+j+r] = sums[r*tileSide+i]
				}
			}
		}
	}
}

// turnRow makes a column of sums of a row, if it is wanted.
func turnRow(sums, row []float32, wanted bool) {
	for r := 0; wanted && r < len(row); r++ {
		sums[r*tileSide] = row[r]
	}
}

// tilePeak does rounds of four products of whole tiles.
func tilePeak(rounds int) int {
	const most = 1500 // rounds of a call
	shapes := shapesOf(16, 16, 16, 16)
	for done := 0; done < rounds; done += most {
		peakAMX(min(most, rounds-done), &shapes)
	}
	return 4 * 2 * 16 * 16 * 32 * rounds
}
