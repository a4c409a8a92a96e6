// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"pleach/kernel"
	"pleach/program"
)

// rowTile is the number of rows in a tile of work on rows.
const rowTile = 16

func embed(l *lowering) []phase {
	table, ids, y, D := l.in(0), l.ints(1), l.out(0), l.dim(0, 1)
	return []phase{over(len(ids), rowTile, func(lo, hi int) { kernel.Embed(y[lo*D:hi*D], table, ids[lo:hi], D, 0) })}
}

func embedGrad(l *lowering) []phase {
	dy, ids, dt, D := l.in(0), l.ints(1), l.in(2), l.dim(0, 1)
	return []phase{over(D, l.share(D, 16), func(lo, hi int) { l.level.EmbedGrad(dt, dy, ids, D, 0, lo, hi) })}
}

func bias(l *lowering) []phase {
	x, c, y := l.in(0), l.in(1), l.out(0)
	O := len(c)
	return []phase{over(len(x)/O, rowTile, func(lo, hi int) { l.level.AddBias(y[lo*O:hi*O], x[lo*O:hi*O], c) })}
}

func biasGrad(l *lowering) []phase {
	dy, dc := l.in(0), l.in(1)
	return []phase{over(len(dc), upTo(l.share(len(dc), 16), 64), func(lo, hi int) { l.level.BiasGrad(dc, dy, lo, hi) })}
}

func rmsNorm(l *lowering) []phase {
	x, w, y, eps := l.in(0), l.in(1), l.out(0), float32(l.op.Attr.Eps)
	D := len(w)
	return []phase{over(len(x)/D, rowTile, func(lo, hi int) { l.level.RMSNorm(y[lo*D:hi*D], x[lo*D:hi*D], w, eps) })}
}

func rmsNormGradNeeds(_ *schedule, st *step) {
	st.buffer("inverse", st.first().In[0].Dim(0))
	if st.last() != st.first() {
		st.scratch = rowTile * st.first().In[1].Dim(0)
	}
}

// rmsNormGrad sums the weights' gradient before it writes dx, or the sum of dx and
// what is added to it, which may lie over x, dy and that.
func rmsNormGrad(l *lowering) []phase {
	x, w, dy, dw, eps := l.in(0), l.in(1), l.in(2), l.in(3), float32(l.op.Attr.Eps)
	D, r := len(w), l.own(0)
	return []phase{
		over(len(r), rowTile, func(lo, hi int) { l.level.RMSNormInv(r[lo:hi], x[lo*D:hi*D], D, eps) }),
		over(D, upTo(l.share(D, 16), 64), func(lo, hi int) { l.level.RMSNormGradW(dw, dy, x, r, lo, hi) }),
		rmsNormGradX(l, r),
	}
}

func rmsNormGradX(l *lowering, r []float32) phase {
	x, w, dy, dx := l.in(0), l.in(1), l.in(2), l.f32(l.st.last().Out[0])
	D, sum := len(w), l.st.op(program.OpAdd)
	if sum == nil {
		return over(len(r), rowTile, func(lo, hi int) {
			l.level.RMSNormGradX(dx[lo*D:hi*D], dy[lo*D:hi*D], x[lo*D:hi*D], w, r[lo:hi])
		})
	}
	first := sum.In[0] == l.op.Out[0]
	other := sum.In[0]
	if first {
		other = sum.In[1]
	}
	z, scratch := l.f32(other), l.scratch()
	return overWith(len(r), rowTile, func(worker, lo, hi int) {
		g := scratch(worker)[:(hi-lo)*D]
		l.level.RMSNormGradX(g, dy[lo*D:hi*D], x[lo*D:hi*D], w, r[lo:hi])
		a, b := z[lo*D:hi*D], g
		if first {
			a, b = b, a
		}
		l.level.Add(dx[lo*D:hi*D], a, b)
	})
}

func swiGLU(l *lowering) []phase {
	x, y := l.in(0), l.out(0)
	F := l.dim(0, 1) / 2
	return []phase{over(len(y)/F, rowTile, func(lo, hi int) { l.level.SwiGLU(y[lo*F:hi*F], x[2*lo*F:2*hi*F], F) })}
}

func swiGLUGrad(l *lowering) []phase {
	x, dy, dx := l.in(0), l.in(1), l.out(0)
	F := l.dim(0, 1) / 2
	return []phase{over(len(dy)/F, rowTile, func(lo, hi int) {
		l.level.SwiGLUGrad(dx[2*lo*F:2*hi*F], dy[lo*F:hi*F], x[2*lo*F:2*hi*F], F)
	})}
}
