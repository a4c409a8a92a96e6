// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"

	"pleach/half"
)

// A bf16 number is a uint16, the upper half of the bits of a float32: see package
// half. What follows works on bits, or is exact: results are the same on every
// level, Portable included.

// widened is the value of a bf16 number. A signalling NaN stays one.
func widened(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// Widen is y[i] = x[i], exact: the bits of x[i], and 16 zeros. x has the length of
// y and must not overlap it.
//
// Differs: half.FromBF16 makes a signalling NaN quiet, which moves no bit here;
// whatever computes with it next does.
func (l Level) Widen(y []float32, x []uint16) {
	if l != Portable {
		eachWiden(l, y, x)
		return
	}
	x = x[:len(y)]
	for i, b := range x {
		y[i] = widened(b)
	}
}

// Narrow is y[i] = x[i] rounded to the nearest bf16 number, ties to even, as
// half.ToBF16 does: denormal numbers are kept, what lies beyond the largest
// finite number by half of its last place or more is Inf, NaN stays NaN and
// is quiet. x has the length of y and must not overlap it.
func (l Level) Narrow(y []uint16, x []float32) {
	if l != Portable {
		eachNarrow(l, y, x)
		return
	}
	x = x[:len(y)]
	for i, v := range x {
		y[i] = half.ToBF16(v)
	}
}

// Round is y[i] = x[i] rounded as by Narrow, as a float32. x has the length of y;
// y may be x itself.
func (l Level) Round(y, x []float32) {
	if l != Portable {
		eachRound(l, y, x)
		return
	}
	x = x[:len(y)]
	for i, v := range x {
		y[i] = widened(half.ToBF16(v))
	}
}

// NarrowRandom is y[i] = x[i] rounded at random to one of the two bf16 numbers
// beside it: away from zero if r[i] and the 16 bits that are lost carry.
//
//	|y[i]| = upper half of (bits(|x[i]|) + r[i])
//
// With r uniform on 0 … 65535, the probability of the one away from zero is
// exactly the distance of x[i] to the other one, in units of the distance of the
// two: the expectation of y[i] is x[i]. What is a bf16 number already stays.
//
// Beyond the largest finite bf16 number, where one of the two would be Inf, y[i] is
// that largest number: a finite x[i] never becomes Inf. Inf stays Inf, and NaN
// becomes what Narrow makes of it.
//
// x and r have the length of y. No two overlap, but y may be r itself.
func (l Level) NarrowRandom(y []uint16, x []float32, r []uint16) {
	if l != Portable {
		eachNarrowRandom(l, y, x, r)
		return
	}
	x, r = x[:len(y)], r[:len(y)]
	for i, v := range x {
		y[i] = narrowRandom(v, r[i])
	}
}

func narrowRandom(v float32, r uint16) uint16 {
	u := math.Float32bits(v)
	switch a := u &^ (1 << 31); {
	case a <= 0x7f7f0000: // the largest finite bf16 number
		u += uint32(r)
	case a > 0x7f800000: // NaN
		return half.ToBF16(v)
	}
	return uint16(u >> 16)
}

// AddInto16 is y[i] += x[i]. x has the length of y.
func (l Level) AddInto16(y []float32, x []uint16) {
	if l != Portable {
		eachAddWide(l, y, x)
		return
	}
	x = x[:len(y)]
	for i, b := range x {
		y[i] += widened(b)
	}
}

// EmbedGrad16 is EmbedGrad for dy in bf16: dt has the same bits as if dy were
// widened.
func (l Level) EmbedGrad16(dt []float32, dy []uint16, ids []int32, D, first, d0, d1 int) {
	V := rows(len(dt), D)
	for n, id := range ids {
		if v := int(id) - first; 0 <= v && v < V {
			l.AddInto16(dt[v*D:][d0:d1], dy[n*D:][d0:d1])
		}
	}
}

// BiasGrad16 is BiasGrad for dy in bf16: db has the same bits as if dy were
// widened.
func (l Level) BiasGrad16(db []float32, dy []uint16, o0, o1 int) {
	O := len(db)
	N := rows(len(dy), O)
	if l != Portable {
		for ; o0+columns <= o1; o0 += columns {
			for n := 0; n < N; n += columnRows {
				h := min(columnRows, N-n)
				gs := dy[n*O+o0:][:(h-1)*O+columns]
				atAddRowsWide(l, &db[o0], &gs[0], h, 2*O)
			}
		}
	}
	for n := range N {
		l.AddInto16(db[o0:o1], dy[n*O:][o0:o1])
	}
}

// RMSNormGradW16 is RMSNormGradW for x and dy in bf16: dw has the same bits as if
// they were widened.
func (l Level) RMSNormGradW16(dw []float32, dy, x []uint16, r []float32, d0, d1 int) {
	D := len(dw)
	if l != Portable {
		for ; d0+columns <= d1; d0 += columns {
			for n := 0; n < len(r); n += columnRows {
				rows := min(columnRows, len(r)-n)
				gs, xs := dy[n*D+d0:][:(rows-1)*D+columns], x[n*D+d0:][:(rows-1)*D+columns]
				atNormGradRowsWide(l, &dw[d0], &gs[0], &xs[0], &r[n], rows, 2*D)
			}
		}
	}
	ws := dw[d0:d1]
	for n, r := range r {
		xs, gs := x[n*D:][d0:d1], dy[n*D:][d0:d1]
		if l != Portable {
			eachNormGradWWide(l, ws, gs, xs, r)
			continue
		}
		xs, gs = xs[:len(ws)], gs[:len(ws)]
		for d := range ws {
			ws[d] += float32(widened(gs[d]) * float32(widened(xs[d])*r))
		}
	}
}
