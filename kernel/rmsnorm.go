// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "math"

// RMSNorm scales each row of x by the inverse of its root mean square, then by w.
//
//	y[n,d] = w[d] · x[n,d] · r[n],  r[n] = 1/√(mean_d x[n,d]² + eps)
//
// x and y are [N,D], w is [D]; len(x) is a multiple of D. eps is added to a mean
// square, so it has the units of x². y may be x itself, but must not overlap it
// otherwise. Everything is read, summed and written in float32; the sum runs in
// index order, in assembly in 16 lanes.
//
// Zhang & Sennrich, "Root Mean Square Layer Normalization", 2019,
// arXiv:1910.07467, eq. 4.
//
// Differs: the paper has no eps. Llama adds it inside the root, and so do we.
func (l Level) RMSNorm(y, x, w []float32, eps float32) {
	D := len(w)
	if D == 0 {
		return // otherwise n would never advance
	}
	for n := 0; n < len(x); n += D {
		xs, ys := x[n:n+D], y[n:n+D]
		r := l.inverseRMS(xs, eps)
		if l != Portable {
			eachNorm(l, ys, xs, w, r)
			continue
		}
		for d, v := range xs {
			ys[d] = w[d] * (v * r)
		}
	}
}

// RMSNormInv is r of RMSNorm for rows of D elements: r[n] for the gradients.
// x is [len(r),D].
func (l Level) RMSNormInv(r, x []float32, D int, eps float32) {
	for n := range r {
		r[n] = l.inverseRMS(x[n*D:][:D], eps)
	}
}

// inverseRMS is 1/√(mean x² + eps).
func (l Level) inverseRMS(x []float32, eps float32) float32 {
	ss := l.dotRow(x, x)
	// A float64 square root rounded once more is the correctly rounded float32
	// square root, so every host gets the same bits.
	return 1 / float32(math.Sqrt(float64(ss/float32(len(x))+eps)))
}

// RMSNormGradX is the gradient of RMSNorm's input.
//
//	dx[n,d] = r·(w[d]·dy[n,d] − x[n,d]·r²·c),  r = r[n],
//	c = mean_d w[d]·dy[n,d]·x[n,d]
//
// x, dy, dx are [N,D], w is [D], r is [N] of RMSNormInv. dx may be dy or x
// itself, but must not overlap them otherwise; RMSNormGradW, which needs both,
// then runs first. float32 throughout; the mean sums in index order.
func (l Level) RMSNormGradX(dx, dy, x, w, r []float32) {
	D := len(w)
	for n, r := range r {
		xs, gs, ds := x[n*D:][:D], dy[n*D:][:D], dx[n*D:][:D]
		if l != Portable {
			c := float32(r*r) * (foldDot3(l, w, gs, xs) / float32(D))
			eachNormGradX(l, ds, gs, xs, w, c, r)
			continue
		}
		var c float32
		for d, v := range xs {
			c += float32(float32(w[d]*gs[d]) * v)
		}
		c = float32(float32(r*r) * (c / float32(D)))
		for d, v := range xs {
			ds[d] = r * (float32(w[d]*gs[d]) - float32(v*c))
		}
	}
}

// RMSNormGradW adds the gradient of RMSNorm's weights to dw in the columns
// d0 ≤ d < d1.
//
//	dw[d] += dy[n,d]·(x[n,d]·r[n])   for n = 0, 1, …
//
// x and dy are [N,D] with N = len(r), dw is [D].
func (l Level) RMSNormGradW(dw, dy, x, r []float32, d0, d1 int) {
	D := len(dw)
	if l != Portable {
		for ; d0+columns <= d1; d0 += columns {
			for n := 0; n < len(r); n += columnRows {
				rows := min(columnRows, len(r)-n)
				gs, xs := dy[n*D+d0:][:(rows-1)*D+columns], x[n*D+d0:][:(rows-1)*D+columns]
				atNormGradRows(l, &dw[d0], &gs[0], &xs[0], &r[n], rows, 4*D)
			}
		}
	}
	ws := dw[d0:d1]
	for n, r := range r {
		xs, gs := x[n*D:][d0:d1], dy[n*D:][d0:d1]
		if l != Portable {
			eachNormGradW(l, ws, gs, xs, r)
			continue
		}
		xs, gs = xs[:len(ws)], gs[:len(ws)]
		for d := range ws {
			ws[d] += float32(gs[d] * float32(xs[d]*r))
		}
	}
}
