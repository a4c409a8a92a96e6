// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"pleach/kernel"
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

// Tiles of a product: rows and columns of the result. Wide ones keep the inner
// loops long, tall ones are worth a copy of the right operand; the sizes are
// measured.
const (
	gemmRows = 64
	gemmCols = 256
)

// grid cuts an m by n result into tiles: smaller ones where workers would wait
// for each other at the end.
func (l *lowering) grid(m, n int, f func(worker, i, j, rows, cols int)) phase {
	tm, tn := min(gemmRows, m), min(gemmCols, n)
	across := func(size, n int) int { return (n + size - 1) / size }
	few := func() bool { return across(tm, m)*across(tn, n) < 8*l.x.e.threads }
	for few() && tn > gemmCols/4 {
		tn /= 2
	}
	for few() && tm > gemmRows/2 {
		tm /= 2
	}
	w := across(tn, n)
	return phase{tiles: across(tm, m) * w, run: func(worker, tile int) {
		i, j := tile/w*tm, tile%w*tn
		f(worker, i, j, min(tm, m-i), min(tn, n-j))
	}}
}

func linear(l *lowering) []phase {
	x, w, y := l.in(0), l.in(1), l.out(0)
	N, I, O, scratch := l.dim(0, 0), l.dim(0, 1), l.dim(1, 0), l.scratch()
	return []phase{l.grid(N, O, func(worker, i, j, m, n int) {
		l.level.GemmNT(y[i*O+j:], x[i*I:], w[j*I:], m, n, I, O, I, I, false, scratch(worker))
	})}
}

func linearGradX(l *lowering) []phase {
	dy, w, dx := l.in(0), l.in(1), l.out(0)
	N, O, I, scratch := l.dim(0, 0), l.dim(1, 0), l.dim(1, 1), l.scratch()
	return []phase{l.grid(N, I, func(worker, i, j, m, n int) {
		l.level.GemmNN(dx[i*I+j:], dy[i*O:], w[j:], m, n, O, I, O, I, false, scratch(worker))
	})}
}

func linearGradW(l *lowering) []phase {
	dy, x, dw := l.in(0), l.in(1), l.in(2)
	N, O, I, scratch := l.dim(0, 0), l.dim(0, 1), l.dim(1, 1), l.scratch()
	return []phase{l.grid(O, I, func(worker, i, j, m, n int) {
		l.level.GemmTN(dw[i*I+j:], dy[i:], x[j:], m, n, N, I, O, I, true, scratch(worker))
	})}
}

func bias(l *lowering) []phase {
	x, c, y := l.in(0), l.in(1), l.out(0)
	O := len(c)
	return []phase{over(len(x)/O, rowTile, func(lo, hi int) { l.level.AddBias(y[lo*O:hi*O], x[lo*O:hi*O], c) })}
}

func biasGrad(l *lowering) []phase {
	dy, dc := l.in(0), l.in(1)
	return []phase{over(len(dc), l.share(len(dc), 16), func(lo, hi int) { l.level.BiasGrad(dc, dy, lo, hi) })}
}

func rmsNorm(l *lowering) []phase {
	x, w, y, eps := l.in(0), l.in(1), l.out(0), float32(l.op.Attr.Eps)
	D := len(w)
	return []phase{over(len(x)/D, rowTile, func(lo, hi int) { l.level.RMSNorm(y[lo*D:hi*D], x[lo*D:hi*D], w, eps) })}
}

// rmsNormGrad sums the weights' gradient before it writes dx, which may lie
// over x or dy.
func rmsNormGrad(l *lowering) []phase {
	x, w, dy, dw, dx, eps := l.in(0), l.in(1), l.in(2), l.in(3), l.out(0), float32(l.op.Attr.Eps)
	D := len(w)
	r := view[float32](l.x.shared)[:len(x)/D]
	return []phase{
		over(len(r), rowTile, func(lo, hi int) { l.level.RMSNormInv(r[lo:hi], x[lo*D:hi*D], D, eps) }),
		over(D, l.share(D, 16), func(lo, hi int) { l.level.RMSNormGradW(dw, dy, x, r, lo, hi) }),
		over(len(r), rowTile, func(lo, hi int) {
			l.level.RMSNormGradX(dx[lo*D:hi*D], dy[lo*D:hi*D], x[lo*D:hi*D], w, r[lo:hi])
		}),
	}
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
