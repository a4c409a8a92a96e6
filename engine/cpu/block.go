// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"slices"

	"pleach/program"
)

// rowTile is the number of rows in a tile of work on rows.
const rowTile = 16

// rowNeeds is the scratch of work on rows: a tile of each operand and result that is
// of bf16, in float32.
func rowNeeds(_ *schedule, st *step) {
	for _, op := range st.ops {
		for _, v := range slices.Concat(op.In, op.Out) {
			if halved(v) {
				st.scratch += rowTile * v.Dim(len(v.Shape)-1)
			}
		}
	}
}

func embed(l *lowering) []phase {
	table, ids, y, D := l.num(0), l.ints(1), l.numOut(0), l.dim(0, 1)
	return []phase{over(len(ids), rowTile, func(lo, hi int) { table.Embed(y.From(lo*D), ids[lo:hi], D, 0) })}
}

func embedGrad(l *lowering) []phase {
	dy, ids, dt, D := l.num(0), l.ints(1), l.in(2), l.dim(0, 1)
	return []phase{over(D, l.share(D, 16), func(lo, hi int) { dy.EmbedGrad(l.level, dt, ids, D, 0, lo, hi) })}
}

func bias(l *lowering) []phase {
	x, c, y := l.num(0), l.num(1), l.numOut(0)
	O := c.Len()
	return l.rows(x.Len()/O, func(d *desk, lo, hi int) {
		n := (hi - lo) * O
		out := d.room(y, lo*O, n)
		d.level.AddBias(out, d.read(x, lo*O, n), d.read(c, 0, O))
		y.Store(d.level, out, lo*O)
	})
}

// rows is the phase that works on tiles of n rows.
func (l *lowering) rows(n int, f func(d *desk, lo, hi int)) []phase {
	return []phase{overWith(n, rowTile, func(worker, lo, hi int) {
		d := l.desk(worker)
		f(&d, lo, hi)
	})}
}

func biasGrad(l *lowering) []phase {
	dy, dc := l.num(0), l.in(1)
	return []phase{over(len(dc), upTo(l.share(len(dc), 16), 64), func(lo, hi int) { dy.BiasGrad(l.level, dc, lo, hi) })}
}

func rmsNorm(l *lowering) []phase {
	x, w, y, eps := l.num(0), l.num(1), l.numOut(0), float32(l.op.Attr.Eps)
	D := w.Len()
	return l.rows(x.Len()/D, func(d *desk, lo, hi int) {
		n := (hi - lo) * D
		out := d.room(y, lo*D, n)
		d.level.RMSNorm(out, d.read(x, lo*D, n), d.read(w, 0, D), eps)
		y.Store(d.level, out, lo*D)
	})
}

func rmsNormGradNeeds(s *schedule, st *step) {
	rowNeeds(s, st)
	st.buffer("inverse", st.first().In[0].Dim(0))
	if st.last() != st.first() {
		st.scratch += rowTile * st.first().In[1].Dim(0)
	}
}

// rmsNormGrad sums the weights' gradient before it writes dx, or the sum of dx and
// what is added to it, which may lie over x, dy and that.
func rmsNormGrad(l *lowering) []phase {
	x, w, dy, dw, eps := l.num(0), l.num(1), l.num(2), l.in(3), float32(l.op.Attr.Eps)
	D, r := w.Len(), l.own(0)
	inverse := l.rows(len(r), func(d *desk, lo, hi int) {
		d.level.RMSNormInv(r[lo:hi], d.read(x, lo*D, (hi-lo)*D), D, eps)
	})
	toW := over(D, upTo(l.share(D, 16), 64), func(lo, hi int) { dy.RMSNormGradW(l.level, dw, x, r, lo, hi) })
	return append(append(inverse, toW), l.rmsNormGradX(r)...)
}

func (l *lowering) rmsNormGradX(r []float32) []phase {
	x, w, dy, dx := l.num(0), l.num(1), l.num(2), l.numbers(l.st.last().Out[0])
	D, sum := w.Len(), l.st.op(program.OpAdd)
	if sum == nil {
		return l.rows(len(r), func(d *desk, lo, hi int) {
			n := (hi - lo) * D
			out := d.room(dx, lo*D, n)
			d.level.RMSNormGradX(out, d.read(dy, lo*D, n), d.read(x, lo*D, n), d.read(w, 0, D), r[lo:hi])
			dx.Store(d.level, out, lo*D)
		})
	}
	first := sum.In[0] == l.op.Out[0]
	z := l.numbers(sum.In[0])
	if first {
		z = l.numbers(sum.In[1])
	}
	return l.rows(len(r), func(d *desk, lo, hi int) {
		n := (hi - lo) * D
		g := d.take(n)
		d.level.RMSNormGradX(g, d.read(dy, lo*D, n), d.read(x, lo*D, n), d.read(w, 0, D), r[lo:hi])
		dx.Round(d.level, g)
		a, b := d.read(z, lo*D, n), g
		if first {
			a, b = b, a
		}
		out := d.room(dx, lo*D, n)
		d.level.Add(out, a, b)
		dx.Store(d.level, out, lo*D)
	})
}

func swiGLU(l *lowering) []phase {
	x, y := l.num(0), l.numOut(0)
	F := l.dim(0, 1) / 2
	return l.rows(y.Len()/F, func(d *desk, lo, hi int) {
		n := (hi - lo) * F
		out := d.room(y, lo*F, n)
		d.level.SwiGLU(out, d.read(x, 2*lo*F, 2*n), F)
		y.Store(d.level, out, lo*F)
	})
}

func swiGLUGrad(l *lowering) []phase {
	x, dy, dx := l.num(0), l.num(1), l.numOut(0)
	F := l.dim(0, 1) / 2
	return l.rows(dy.Len()/F, func(d *desk, lo, hi int) {
		n := (hi - lo) * F
		out := d.room(dx, 2*lo*F, 2*n)
		d.level.SwiGLUGrad(out, d.read(dy, lo*F, n), d.read(x, 2*lo*F, 2*n), F)
		dx.Store(d.level, out, 2*lo*F)
	})
}
