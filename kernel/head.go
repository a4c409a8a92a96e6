// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "pleach/half"

// The head never holds the logits of all tokens and the whole vocabulary: it
// makes them in tiles of tokens and of vocabulary, and keeps three numbers per
// token. A label below zero masks its token.

// HeadStatsBegin sets the statistics of tokens that have seen no logit: maximum
// −Inf, sum 0, target 0. stats is [N,3].
func HeadStatsBegin(stats []float32) {
	for n := 0; n < len(stats); n += 3 {
		stats[n], stats[n+1], stats[n+2] = negInf(), 0, 0
	}
}

// HeadStats adds a tile of logits to the statistics of its tokens: their
// maximum, Σ_v e^(z−maximum), and the logit of the label if the tile has it.
//
//	stats[n] = (max, sum, target);  z[n,i] is the logit of id first+i
//
// stats is [N,3], labels [N], z has N rows of V logits with distance ldz. The
// sum is a left fold per tile, and one fold over tiles: the cut of the
// vocabulary into tiles, and their order, are part of the result; the cut of the
// tokens is not. A NaN makes the sum NaN.
func (l Level) HeadStats(stats, z []float32, labels []int32, first, V, ldz int) {
	for n, id := range labels {
		st, zs := stats[3*n:][:3], z[n*ldz:][:V]
		if i := int(id) - first; 0 <= i && i < V {
			st[2] = zs[i]
		}
		if l != Portable {
			m := foldHighest(l, st[0], zs)
			base := finiteBase(m)
			sum := foldExp(l, zs, base)
			st[0], st[1] = m, float32(st[1]*expAbove(st[0]-base))+sum
			continue
		}
		m := st[0]
		for _, v := range zs {
			if v > m {
				m = v
			}
		}
		var sum float32
		base := finiteBase(m)
		for _, v := range zs {
			sum += Exp32(v - base)
		}
		st[0], st[1] = m, float32(st[1]*Exp32(st[0]-base))+sum
	}
}

// HeadCombine joins the statistics of two parts of the vocabulary: dst becomes
// dst and src. Both are [N,3]. The order of parts is part of the result.
func HeadCombine(dst, src []float32) {
	for n := 0; n < len(dst); n += 3 {
		d, s := dst[n:n+3], src[n:n+3]
		m := max(d[0], s[0])
		base := finiteBase(m)
		d[1] = float32(d[1]*Exp32(d[0]-base)) + float32(s[1]*Exp32(s[0]-base))
		d[0], d[2] = m, d[2]+s[2]
	}
}

// HeadLoss turns statistics of the whole vocabulary into losses in nats.
//
//	lse[n] = max + log sum;  loss[n] = lse[n] − target, 0 if masked
//
// lse and loss are [N], stats is [N,3]. The log-probability of a label is −loss.
func HeadLoss(lse, loss, stats []float32, labels []int32) {
	for n, id := range labels {
		st := stats[3*n:][:3]
		e := float64(st[0]) + logOf(float64(st[1]))
		lse[n], loss[n] = float32(e), 0
		if id >= 0 {
			loss[n] = float32(e - float64(st[2]))
		}
	}
}

// Tally adds the losses of the unmasked tokens and their number to a running
// sum, a left fold in float64.
func Tally(sum, count float64, loss []float32, labels []int32) (float64, float64) {
	for n, id := range labels {
		if id >= 0 {
			sum, count = sum+float64(loss[n]), count+1
		}
	}
	return sum, count
}

// HeadGrad turns a tile of logits into the gradients of the summed loss, in
// place.
//
//	z[n,i] = e^(z[n,i]−lse[n]) − [first+i = labels[n]],  0 if masked
//
// e^x below 2⁻¹²⁶ is 0, so that no gradient is a denormal number. A z above lse
// by more than rounding makes no sense.
//
// labels and lse are [N], z has N rows of V logits with distance ldz.
func (l Level) HeadGrad(z, lse []float32, labels []int32, first, V, ldz int) {
	for n, id := range labels {
		zs, e := z[n*ldz:][:V], lse[n]
		if id < 0 {
			clear(zs)
			continue
		}
		if l != Portable {
			eachExp(l, zs, zs, e)
		} else {
			for i, v := range zs {
				zs[i] = expAbove(v - e)
			}
		}
		if i := int(id) - first; 0 <= i && i < V {
			zs[i]--
		}
	}
}

// HeadGrad16 is HeadGrad with results that are rounded to bf16 and go to p, of which
// the rows have distance ldp; z stays.
func (l Level) HeadGrad16(p []uint16, z, lse []float32, labels []int32, first, V, ldp, ldz int) {
	for n, id := range labels {
		ps, zs, e := p[n*ldp:][:V], z[n*ldz:][:V], lse[n]
		if id < 0 {
			clear(ps)
			continue
		}
		if l != Portable {
			eachExpNarrow(l, ps, zs, e)
		} else {
			for i, v := range zs {
				ps[i] = half.ToBF16(expAbove(v - e))
			}
		}
		if i := int(id) - first; 0 <= i && i < V {
			x := [1]float32{zs[i]}
			l.HeadGrad(x[:], lse[n:n+1], labels[n:n+1], int(id), 1, 1)
			ps[i] = half.ToBF16(x[0])
		}
	}
}

// HeadLogProbs is y[n] = logit of the label − lse, 0 if masked. y is [N], stats
// is [N,3].
func HeadLogProbs(y, stats []float32, labels []int32) {
	for n, id := range labels {
		y[n] = 0
		if st := stats[3*n:][:3]; id >= 0 {
			y[n] = float32(float64(st[2]) - float64(st[0]) - logOf(float64(st[1])))
		}
	}
}
