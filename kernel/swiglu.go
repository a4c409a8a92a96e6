// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// SwiGLU gates one half of each row by the other.
//
//	y[n,f] = SiLU(x[n,f]) · x[n,F+f]
//
// x is [N,2F], y is [N,F], with N = len(y)/F; y must not overlap x. The
// logistic function is float64, the two products are rounded to float32. In
// assembly everything is float32, with an error of at most 2.5 units in the last
// place, or 2⁻¹²¹ where 1+e^−x overflows.
//
// Shazeer, "GLU Variants Improve Transformer", 2020, arXiv:2002.05202, eq. 6.
func (l Level) SwiGLU(y, x []float32, F int) {
	for n := range rows(len(y), F) {
		ys, as, us := y[n*F:][:F], x[2*n*F:][:F], x[(2*n+1)*F:][:F]
		if l != Portable {
			eachSwiglu(l, ys, as, us)
			continue
		}
		for f, a := range as {
			ys[f] = SiLU(a) * us[f]
		}
	}
}

// SwiGLUGrad is the gradient of SwiGLU's input.
//
//	dx[n,f]   = dy[n,f]·u·σ(a)·(1 + a·(1−σ(a)))
//	dx[n,F+f] = dy[n,f]·a·σ(a)       with a = x[n,f], u = x[n,F+f]
//
// dy is [N,F], x and dx are [N,2F] with N = len(dy)/F. dx may be x itself, but
// must not overlap it otherwise, nor dy. Computed in float64 and rounded once; in
// assembly in float32, with an error of a few units in the last place of the
// largest term.
func (l Level) SwiGLUGrad(dx, dy, x []float32, F int) {
	for n := range rows(len(dy), F) {
		gs, as, us := dy[n*F:][:F], x[2*n*F:][:F], x[(2*n+1)*F:][:F]
		ds, es := dx[2*n*F:][:F], dx[(2*n+1)*F:][:F]
		if l != Portable {
			eachSwigluGrad(l, ds, es, gs, as, us)
			continue
		}
		for f, a := range as {
			s := sigmoid(a)
			g, a, u := float64(gs[f]), float64(a), float64(us[f])
			ds[f] = float32(g * u * s * (1 + float64(a*(1-s))))
			es[f] = float32(g * a * s)
		}
	}
}
