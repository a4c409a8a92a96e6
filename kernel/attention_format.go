// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// format is how attention reads numbers of a type, and multiplies them.
type format struct {
	level Level // of rows
	mul   Level // of products
	half  bool  // the numbers are of bf16
}

func formatOf(l Level, x Numbers) format {
	f := format{level: l, mul: l, half: x.Half()}
	if f.half {
		f.mul = l.multiplies()
	}
	return f
}

// attnWidths are the panels of attention, of tiles and heads that are mostly 64
// wide: panels of 48 would leave 16, with more loads than products.
var attnWidths = [levels + 1]int{
	Portable: 256, AVX2: 16, AVX512: 32, AVX512BF16: 32, AMX: tileSide, NEON: 12, AMXPlain: tileSide,
}

// steps is how many steps of an operand k steps are.
func (f *format) steps(k int) int {
	if f.half {
		return f.level.steps(k)
	}
	return k
}

func (f *format) panelLen(n, k int) int {
	if f.half {
		return f.level.PanelLen16(n, k)
	}
	return f.level.PanelLen(n, k)
}

// rowsTogether is how many queries share a limit of keys on the diagonal.
func (f *format) rowsTogether() int {
	if f.half && f.level.tiled() {
		return tileSide
	}
	return 8
}

// columns packs n vectors of length K as columns: C = A·Bᵀ.
func (f *format) columns(panels []float32, x Numbers, n, K, ld int) packed {
	w := attnWidths[f.level]
	if f.half {
		f.level.packNT16(panels, x.BF16, n, K, ld, w)
	} else {
		f.level.packNT(panels, x.F32, n, K, ld, w)
	}
	return packed{panels, n, f.steps(K), w}
}

// rows packs n vectors of length K as rows: C = A·B.
func (f *format) rows(panels []float32, x Numbers, n, K, ld int) packed {
	w := attnWidths[f.level]
	if f.half {
		f.level.packNN16(panels, x.BF16, K, n, ld, w)
	} else {
		f.level.packNN(panels, x.F32, K, n, ld, w)
	}
	return packed{panels, K, f.steps(n), w}
}

// left is the left operand of a product, with rows of distance ld.
type left struct {
	x  []float32
	ld int
}

func (a left) from(i int) left { return left{a.x[i*a.ld:], a.ld} }

// left is n rows of K numbers as an operand: where they lie, or in buf [n,K].
func (f *format) left(x Numbers, n, K, ld int, buf []float32) left {
	switch {
	case !f.half:
		return left{x.F32, ld}
	case f.level.paired() && even(x.BF16, K, ld) && K%f.level.Together16() == 0:
		return left{asPairs(x.BF16[:(n-1)*ld+K]), ld / 2}
	}
	steps := f.steps(K) // so long are the rows of buf
	for i := range n {
		f.level.stage(buf[i*steps:][:steps], x.BF16[i*ld:][:K], 0)
	}
	return left{buf, steps}
}

// softmax is softmaxRows of a tile [attnTile,attnTile], with what it makes as an
// operand: the tile itself, rounded if the other operand is of bf16, or pairs in buf.
func (f *format) softmax(s []float32, n int, scale float32, top, sum, corr, buf []float32) left {
	if f.half && f.level.paired() {
		f.level.softmaxHalf(asBF16(buf), s, attnTile, n, scale, top, sum, corr)
		return left{buf, attnTile / 2}
	}
	f.level.softmaxRows(s, attnTile, n, scale, top, sum, corr)
	f.round(s[:n*attnTile])
	return left{s, attnTile}
}

// softmaxGrad is softmaxGradRows, likewise for two tiles.
func (f *format) softmaxGrad(
	p, d []float32, n int, scale float32, lse, delta []float32, bufs [2][]float32,
) (pairsP, pairsD left) {
	if f.half && f.level.paired() {
		f.level.softmaxGradHalf(asBF16(bufs[0]), asBF16(bufs[1]), p, d, attnTile, n, scale, lse, delta)
		return left{bufs[0], attnTile / 2}, left{bufs[1], attnTile / 2}
	}
	f.level.softmaxGradRows(p, d, attnTile, n, scale, lse, delta)
	f.round(p[:n*attnTile])
	f.round(d[:n*attnTile])
	return left{p, attnTile}, left{d, attnTile}
}

func (f *format) round(x []float32) {
	if f.half {
		f.level.Round(x, x)
	}
}

// turnedTile is a tile [steps,attnTile] as the left operand of a product that sums
// over its rows. Columns are as apart.
type turnedTile struct {
	x  []float32
	as int
}

// from is column i from a step on.
func (a turnedTile) from(step, i int) []float32 { return a.x[step*attnTile+i*a.as:] }

// turned turns n rows of a tile, p as an operand.
func (f *format) turned(p left, n int, buf []float32) turnedTile {
	switch {
	case !f.half || !f.level.paired():
		return turnedTile{p.x, 1}
	case f.level.tiled():
		turnLeft(buf, asBF16(p.x[:n*p.ld]), attnTile, n, attnTile)
		return turnedTile{buf, tileSide / 2}
	}
	f.level.stageRows(buf, asBF16(p.x[:n*p.ld]), attnTile, n, attnTile, attnTile)
	return turnedTile{buf, 1}
}
