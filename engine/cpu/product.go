// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"pleach/kernel"
	"pleach/program"
)

// Cells of a product: what is multiplied by one call of a kernel, and finished
// (biased, gated, rotated, added) while it is in the first two caches.
const (
	cellRows = 64
	cellCols = 192

	// A gated product makes whole rows of gate and up, so many at a time, if they
	// are no longer than this: then nothing is copied.
	stripRows = 32
	stripLen  = 8192

	// No more rows do not pay for a packed copy of the weights: what counts is that
	// they are read once.
	fewRows = 16
)

// Products of bf16 make their cells in scratch, in float32, and round them to bf16
// after every op of the step: fused or not, the bits are the same.

// product is a step that begins with a product of rows by a weight: y = x·wᵀ for
// linear, y = x·w for linear.dx. Its columns are those of a part: a gated product
// has two, whose equal columns are made together.
type product struct {
	level             kernel.Level
	st                *step
	half              bool // operands and results are of bf16
	rows, cols, parts int
	k                 int
	transposed        bool // w is [cols·parts,k], else [k,cols]
	unit              int  // columns are cut at its multiples
	chunk             int  // columns that are packed at a time
}

// productOf reads the shapes of a step.
func productOf(s *schedule, st *step) product {
	op := st.first()
	p := product{
		level: s.level, st: st, half: halved(op.In[0]), rows: op.In[0].Dim(0), parts: 1, unit: s.level.PanelWidth(),
	}
	if p.transposed = op.Kind == program.OpLinear; p.transposed {
		p.cols, p.k = op.In[1].Dim(0), op.In[1].Dim(1)
	} else {
		p.cols, p.k = op.In[1].Dim(1), op.In[1].Dim(0)
	}
	if st.op(program.OpSwiGLU) != nil {
		p.parts, p.cols = 2, p.cols/2
	}
	if r := st.op(program.OpRoPE); r != nil {
		p.unit = multiple(p.unit, r.Attr.Heads.K)
	}
	p.unit = min(p.unit, p.cols)
	p.chunk = p.cols
	if p.panelLen(p.cols)*p.parts > s.limits.packed {
		p.chunk = upTo(s.limits.packed/(p.parts*p.k), p.unit)
	}
	return p
}

// panelLen is the size of n packed columns.
func (p *product) panelLen(n int) int { return panelLen(p.level, p.half, n, p.k) }

func panelLen(l kernel.Level, halved bool, n, k int) int {
	if halved {
		return l.PanelLen16(n, k)
	}
	return l.PanelLen(n, k)
}

// stageScratch and gemmScratch are what products take.
func stageScratch(l kernel.Level, halved bool) int {
	if halved {
		return l.StageScratch16()
	}
	return 0
}

func gemmScratch(l kernel.Level, halved bool) int {
	if halved {
		return l.GemmScratch16()
	}
	return l.GemmScratch()
}

// multiple is the smallest one of a and b.
func multiple(a, b int) int {
	m := a
	for m%b != 0 {
		m += a
	}
	return m
}

// upTo is the largest multiple of unit that is not above n, at least unit.
func upTo(n, unit int) int { return max(unit, n/unit*unit) }

// few reports whether the weights are not packed for all, but by each tile for
// itself.
func (p *product) few() bool { return p.rows <= fewRows }

// width is the columns of a cell in each part.
func (p *product) width() int { return min(upTo(cellCols, p.unit), p.cols) }

// gated reports whether the step ends with swiglu or its gradient.
func (p *product) gated() bool {
	k := p.st.last().Kind
	return k == program.OpSwiGLU || k == program.OpSwiGLUGrad
}

// short reports whether a gated product may be made in strips of whole rows.
func (p *product) short() bool {
	return p.gated() && !p.half && !p.few() && p.chunk == p.cols && 2*p.cols <= stripLen
}

// productNeeds: a packed copy of w or of a chunk of it, and a cell or a strip where
// one is not made in place.
func productNeeds(s *schedule, st *step) {
	p := productOf(s, st)
	if p.few() {
		st.scratch = gemmScratch(s.level, p.half)
	} else {
		st.buffer("packed", p.parts*p.panelLen(min(p.chunk, p.cols)))
		st.scratch = stageScratch(s.level, p.half)
	}
	cell := min(cellRows, p.rows) * p.width()
	switch last := st.last().Kind; {
	case last == program.OpAdd:
		st.scratch += cell
	case last == program.OpSwiGLU:
		st.scratch += 2 * cell
	case last == program.OpSwiGLUGrad:
		st.scratch += cell + 2*p.width()
	case p.half:
		st.scratch += cell
	}
	if p.half { // a row of a bias, or of another operand
		st.scratch += p.width()
	}
	if p.short() {
		st.scratch = max(st.scratch, 2*p.cols*min(stripRows, p.rows))
	}
}

// cell is a rectangle of a product: rows from i, columns from j of each part.
type cell struct{ i, j, m, n int }

// multiplier is a product with the addresses of its operands.
type multiplier struct {
	product
	x          kernel.Numbers
	w          weights
	packed     []float32
	scratch    func(worker int) []float32
	base, size int // the columns that packed holds
	tile, step int // columns of a tile, and from one of a worker's tiles to its next
}

// multiply makes a cell of a part in z, with distance ld of rows.
func (p *multiplier) multiply(z []float32, ld, part int, c cell, scratch []float32) {
	a := p.x.From(c.i * p.k)
	switch at, row := p.panelLen(p.size)*part+p.panelLen(c.j-p.base), part*p.cols+c.j; {
	case !p.few():
		a.MultiplyN(p.level, z, p.packed[at:], c.m, c.n, p.k, ld, p.k, false, scratch)
		p.w.finish(p.level, z, c.m, row, c.n, ld)
	case p.transposed:
		p.w.gemmNT(p.level, z, a, c.m, row, c.n, p.next(part, c), ld, scratch)
	default:
		a.GemmNN(p.level, z, p.w.num.From(c.j), c.m, c.n, p.k, ld, p.k, p.cols, false, scratch)
	}
}

// next is the row of weights that a worker is likely to want after a cell: of the other
// part, of the tile's next cell, or of the tile that is its turn while the others do
// theirs.
func (p *multiplier) next(part int, c cell) int {
	if part+1 < p.parts {
		return (part+1)*p.cols + c.j
	}
	j := c.j + c.n
	if at := (c.j - p.base) % p.tile; at+c.n >= p.tile {
		j = c.j - at + p.step
	}
	return j
}

// pack is the phase that packs columns base … base+size−1 of all parts.
func (p *multiplier) pack(l *lowering) phase {
	n := l.panels(p.size)
	tiles, base, size := across(n, p.size), p.base, p.size
	return phase{tiles: tiles * p.parts, run: func(_, tile int) {
		part, j := tile/tiles, tile%tiles*n
		m := min(n, size-j)
		to := p.packed[p.panelLen(size)*part+p.panelLen(j):]
		if p.transposed {
			p.w.packNT(p.level, to, part*p.cols+base+j, m)
		} else {
			p.w.num.From(base+j).PackNN(p.level, to, m, p.k, p.cols)
		}
	}}
}

// panels is how many of n columns, in whole panels, a worker packs at a time.
func (l *lowering) panels(n int) int {
	width := l.level.PanelWidth()
	return max(width, (n/(4*l.x.e.threads)+width-1)/width*width)
}

// linear lowers a step that begins with linear or linear.dx.
func linear(l *lowering) []phase {
	m := &multiplier{product: productOf(l.x.s, l.st), x: l.num(0), w: l.weights(), scratch: l.scratch()}
	if !m.few() {
		m.packed = l.own(0)
	}
	var phases []phase
	for base := 0; base < m.cols; base += m.chunk {
		part := *m
		part.base, part.size = base, min(m.chunk, m.cols-base)
		if !m.few() {
			phases = append(phases, part.pack(l))
		}
		phases = append(phases, part.tiles(l))
	}
	return phases
}

// tiles is the phase that makes the columns at hand: in strips where it may, and
// there are enough of them for all workers.
func (p *multiplier) tiles(l *lowering) phase {
	n := across(stripRows, p.rows)
	if !p.short() || l.x.e.threads > 1 && n < 8*l.x.e.threads {
		return p.cells(l, p.finish(l))
	}
	strip := p.gatedStrip(l)
	if p.st.last().Kind == program.OpSwiGLUGrad {
		strip = p.gatedGradStrip(l)
	}
	return phase{tiles: n, run: func(worker, tile int) {
		i := tile * stripRows
		strip(worker, cell{i, 0, min(stripRows, p.rows-i), p.cols})
	}}
}

// cells is the phase that makes all cells of the columns at hand. A tile is
// several of them; tiles are smaller where workers would wait for each other.
func (p *multiplier) cells(l *lowering, finish func(worker int, c cell)) phase {
	w := p.width()
	tm, tn := min(4*cellRows, p.rows), min(2*w, p.size)
	few := func() bool { return l.few(across(tm, p.rows) * across(tn, p.size)) }
	if few() {
		tn = min(w, p.size)
	}
	for few() && tm > cellRows {
		tm /= 2
	}
	for few() && tn > p.unit && tn > cellCols/4 {
		tn = upTo(tn/2, p.unit)
	}
	wide := across(tn, p.size)
	p.tile, p.step = tn, tn*l.x.e.threads
	return phase{tiles: across(tm, p.rows) * wide, run: func(worker, tile int) {
		i0, j0 := tile/wide*tm, p.base+tile%wide*tn
		i1, j1 := min(i0+tm, p.rows), min(j0+tn, p.base+p.size)
		for j := j0; j < j1; j += w {
			for i := i0; i < i1; i += cellRows {
				finish(worker, cell{i, j, min(cellRows, i1-i), min(w, j1-j)})
			}
		}
	}}
}

// linearGradW adds dyᵀ·x to the gradient sum: x is packed, some tokens at a time,
// and the sums go on from tokens to tokens.
func linearGradW(l *lowering) []phase {
	dy, x, dw := l.num(0), l.num(1), l.in(2)
	N, O, I, scratch := l.dim(0, 0), l.dim(0, 1), l.dim(1, 1), l.scratch()
	size, packed := tokensPacked(l.x.s, N, I), l.own(0)
	var phases []phase
	for n0 := 0; n0 < N; n0 += size {
		n := min(size, N-n0)
		phases = append(phases, l.packRows(packed, x.From(n0*I), n, I), l.strips(O, I, func(worker, i, j, rows, cols int) {
			dy.From(n0*O+i).MultiplyT(l.level, dw[i*I+j:], packed[x.PanelLen(l.level, j, n):], rows, cols, n, I, O, true,
				scratch(worker))
		}))
	}
	return phases
}

// tokensPacked is how many rows of I elements are packed at a time.
func tokensPacked(s *schedule, N, I int) int { return min(N, upTo(s.limits.packed/I, cellRows)) }

func gradWNeeds(s *schedule, st *step) {
	x := st.first().In[1]
	N, I := x.Dim(0), x.Dim(1)
	st.buffer("packed", panelLen(s.level, halved(x), I, tokensPacked(s, N, I)))
	st.scratch = stageScratch(s.level, halved(x))
}

// packRows packs x [n,cols] as the right operand of a product.
func (l *lowering) packRows(packed []float32, x kernel.Numbers, n, cols int) phase {
	k := l.level
	return over(cols, l.panels(cols), func(lo, hi int) {
		x.From(lo).PackNN(k, packed[x.PanelLen(k, lo, n):], hi-lo, n, cols)
	})
}

// strips cuts an m by n result into tiles of few rows and as many columns as
// leave several tiles for each worker.
func (l *lowering) strips(m, n int, f func(worker, i, j, rows, cols int)) phase {
	const high = 96 // rows that kernels take through the whole second-level cache
	tm, tn, width := high, n, l.level.PanelWidth()
	few := func() bool { return l.few(across(tm, m) * across(tn, n)) }
	if few() {
		tm = high / 2
	}
	for few() && tn > cellCols && tn > width {
		tn = (tn/2 + width - 1) / width * width
	}
	wide := across(tn, n)
	return phase{tiles: across(tm, m) * wide, run: func(worker, tile int) {
		i, j := tile/wide*tm, tile%wide*tn
		f(worker, i, j, min(tm, m-i), min(tn, n-j))
	}}
}
