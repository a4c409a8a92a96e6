// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "math"

// expLowest is the smallest x with e^x ≥ 2⁻¹²⁶. Probabilities of its e^x and
// less are 0: denormal numbers mean nothing there, and processors take many
// times longer to multiply them.
var expLowest = math.Float32frombits(0xc2aeac4f) // −87.33654

// expAbove is e^x, or 0 for x ≤ expLowest.
func expAbove(x float32) float32 {
	if x <= expLowest {
		return 0
	}
	return Exp32(x)
}

// softmaxRows turns rows of products of a query with attnTile keys into
// exponentials below the running maximum, and moves the running sum to it.
//
//	z = scale·s[i];  m = max(top[i], max z);  corr[i] = e^(top[i]−m)
//	s[i] = e^(z−m);  sum[i] = sum[i]·corr[i] + Σ s[i];  top[i] = m
//
// s has rows of attnTile elements with distance lds; top, sum and corr have one
// element per row. scale ≥ 0. If all of a row is −Inf so far, its exponentials
// are 0. e^x below 2⁻¹²⁶ is 0. A NaN makes the sum NaN.
func (l Level) softmaxRows(s []float32, lds, rows int, scale float32, top, sum, corr []float32) {
	if l == Portable {
		for i := range rows {
			softmaxRow(s[i*lds:][:attnTile], scale, &top[i], &sum[i], &corr[i])
		}
		return
	}
	for i := 0; i < rows; {
		var part [64]float32
		n := min(rows-i, len(part))
		tile, t, u, c := s[i*lds:][:(n-1)*lds+attnTile], top[i:][:n], sum[i:][:n], corr[i:][:n]
		atSoftmax(l, &tile[0], 4*lds, n, scale, &t[0], &part[0], &c[0])
		eachSoftmaxEnd(l, c, u, part[:n])
		i += n
	}
}

// softmaxHalf is softmaxRows with exponentials that are rounded to bf16 and go to e,
// in rows of attnTile; s stays. Only levels with pairs have it.
func (l Level) softmaxHalf(e []uint16, s []float32, lds, rows int, scale float32, top, sum, corr []float32) {
	for i := 0; i < rows; {
		var part [64]float32
		n := min(rows-i, len(part))
		tile, to := s[i*lds:][:(n-1)*lds+attnTile], e[i*attnTile:][:n*attnTile]
		t, u, c := top[i:][:n], sum[i:][:n], corr[i:][:n]
		atSoftmaxHalf(l, &tile[0], &to[0], 4*lds, n, scale, &t[0], &part[0], &c[0])
		eachSoftmaxEnd(l, c, u, part[:n])
		i += n
	}
}

// softmaxRow is softmaxRows of one row.
func softmaxRow(s []float32, scale float32, top, sum, corr *float32) {
	m := *top
	for j, v := range s {
		v *= scale
		s[j] = v
		if v > m {
			m = v
		}
	}
	base := finiteBase(m)
	var t float32
	for j, v := range s {
		e := expAbove(v - base)
		s[j] = e
		t += e
	}
	c := expAbove(*top - base)
	*top, *sum, *corr = m, float32(*sum*c)+t, c
}

// softmaxGradRows turns rows of products q·k and do·v into probabilities and the
// gradients of the products q·k.
//
//	p[i] = e^(scale·p[i]−lse[i]);  d[i] = p[i]·((d[i]−delta[i])·scale)
//
// p and d have rows of attnTile elements with distance ld, lse and delta have one
// element per row. e^x below 2⁻¹²⁶ is 0; scale·p is at most lse but for rounding.
func (l Level) softmaxGradRows(p, d []float32, ld, rows int, scale float32, lse, delta []float32) {
	if l == Portable {
		for i := range rows {
			ps, ds := p[i*ld:][:attnTile], d[i*ld:][:attnTile]
			for j, v := range ps {
				e := expAbove(float32(v*scale) - lse[i])
				ps[j], ds[j] = e, e*((ds[j]-delta[i])*scale)
			}
		}
		return
	}
	for i := 0; i < rows; {
		n := min(rows-i, piece/attnTile)
		ps, ds := p[i*ld:][:(n-1)*ld+attnTile], d[i*ld:][:(n-1)*ld+attnTile]
		ls, es := lse[i:][:n], delta[i:][:n]
		atSoftmaxGrad(l, &ps[0], &ds[0], 4*ld, n, scale, &ls[0], &es[0])
		i += n
	}
}

// softmaxGradHalf is softmaxGradRows with results that are rounded to bf16 and go to
// e and f, in rows of attnTile; p and d stay. Only levels with pairs have it.
func (l Level) softmaxGradHalf(e, f []uint16, p, d []float32, ld, rows int, scale float32, lse, delta []float32) {
	for i := 0; i < rows; {
		n := min(rows-i, piece/attnTile)
		ps, ds := p[i*ld:][:(n-1)*ld+attnTile], d[i*ld:][:(n-1)*ld+attnTile]
		es, fs := e[i*attnTile:][:n*attnTile], f[i*attnTile:][:n*attnTile]
		ls, deltas := lse[i:][:n], delta[i:][:n]
		atSoftmaxGradHalf(l, &ps[0], &ds[0], &es[0], &fs[0], 4*ld, n, scale, &ls[0], &deltas[0])
		i += n
	}
}

// scaleRows is o[i,j] *= f[i] for j < n, in rows with distance ldo.
func (l Level) scaleRows(o []float32, ldo, rows, n int, f []float32) {
	if l != Portable && n%lanes == 0 && n > 0 && rows > 0 && n*rows <= piece {
		o, f = o[:(rows-1)*ldo+n], f[:rows]
		atScaleRow(l, &o[0], &f[0], n, rows, 4*(ldo-n))
		return
	}
	for i := range rows {
		l.Scale(o[i*ldo:][:n], o[i*ldo:][:n], f[i])
	}
}

// dotRow is Σ x·y, a left fold; in assembly as foldDot has it.
func (l Level) dotRow(x, y []float32) float32 {
	if l != Portable {
		return foldDot(l, x, y)
	}
	y = y[:len(x)]
	var sum float32
	for i, v := range x {
		sum += float32(v * y[i])
	}
	return sum
}
