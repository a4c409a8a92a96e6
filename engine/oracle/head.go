// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"math"
	"slices"
)

func headStats(c *call) {
	x, w, labels, stats := c.in[0], c.in[1], c.in[2], c.out[0]
	V, D := c.dim(1, 0), c.dim(1, 1)
	lo := c.offset(V)
	z := make([]float64, V)
	for n := range labels {
		top, sum, target := math.Inf(-1), 0.0, 0.0
		for v := range V {
			z[v] = c.scale(v) * dot(x[n*D:][:D], w[v*D:][:D])
			top = max(top, z[v])
			if int(labels[n]) == lo+v {
				target = z[v]
			}
		}
		for v := range V {
			sum += math.Exp(z[v] - top)
		}
		copy(stats[3*n:], []float64{top, sum, target})
	}
}

func headLoss(c *call) {
	stats, labels, lse, loss := c.in[0], c.in[1], c.out[0], c.out[1]
	N := len(labels)
	for n := range N {
		top, sum, target := math.Inf(-1), 0.0, 0.0
		for s := n; s < len(stats)/3; s += N {
			top = max(top, stats[3*s])
			target += stats[3*s+2]
		}
		for s := n; s < len(stats)/3; s += N {
			sum += stats[3*s+1] * math.Exp(stats[3*s]-top)
		}
		lse[n], loss[n] = top+math.Log(sum), 0
		if labels[n] < 0 {
			continue
		}
		loss[n] = lse[n] - target
		if len(c.in) > 2 {
			c.in[2][0] += loss[n]
			c.in[2][1]++
		}
	}
}

func headGrad(c *call) {
	x, w, labels, lse, dw, dx := c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.out[0]
	V, D := c.dim(1, 0), c.dim(1, 1)
	lo := c.offset(V)
	clear(dx)
	for n := range labels {
		if labels[n] < 0 {
			continue
		}
		for v := range V {
			p := math.Exp(dot(x[n*D:][:D], w[v*D:][:D]) - lse[n])
			if int(labels[n]) == lo+v {
				p--
			}
			axpy(dx[n*D:][:D], p, w[v*D:][:D])
			axpy(dw[v*D:][:D], p, x[n*D:][:D])
		}
	}
}

// word is a candidate of a top list.
type word struct{ id, logit float64 }

func byLogit(a, b word) int {
	return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id))
}

func headTop(c *call) {
	x, w, found := c.in[0], c.in[1], c.out[0]
	V, D, k := c.dim(1, 0), c.dim(1, 1), c.op.Out[0].Dim(2)
	lo := c.offset(V)
	for n := range c.dim(0, 0) {
		var words []word
		for v := range V {
			words = append(words, word{float64(lo + v), c.scale(v) * dot(x[n*D:][:D], w[v*D:][:D])})
		}
		slices.SortFunc(words, byLogit)
		for i := range k { // a rank with fewer than k words has empty places
			pair := found[2*(n*k+i):][:2]
			pair[0], pair[1] = -1, math.Inf(-1)
			if i < V {
				pair[0], pair[1] = words[i].id, words[i].logit
			}
		}
	}
}

func topMerge(c *call) {
	found, lse, top := c.in[0], c.in[1], c.out[0]
	t, N, k := c.dim(0, 0), c.dim(0, 1), c.dim(0, 2)
	for n := range N {
		var words []word
		for i := range t * k {
			pair := found[2*((i/k*N+n)*k+i%k):]
			words = append(words, word{pair[0], pair[1]})
		}
		slices.SortStableFunc(words, byLogit)
		for i := range k {
			top[2*(n*k+i)], top[2*(n*k+i)+1] = words[i].id, words[i].logit-lse[n]
		}
	}
}
