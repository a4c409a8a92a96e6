// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"

	"pleach/program"
)

// head is K elements of head j of token n in fused rows.
func head(x []float64, h program.Heads, n, j int) []float64 {
	return x[n*h.Width()+j*h.K:][:h.K]
}

// attend is one query q over keys and values: o is [K], and the result is the
// log of the sum of exponentials.
func attend(o, q []float64, keys, values [][]float64) float64 {
	scale, top := 1/math.Sqrt(float64(len(q))), math.Inf(-1)
	p := make([]float64, len(keys))
	for m, k := range keys {
		p[m] = dot(q, k) * scale
		top = max(top, p[m])
	}
	sum := 0.0
	for m := range p {
		p[m] = math.Exp(p[m] - top)
		sum += p[m]
	}
	clear(o)
	for m, v := range values {
		axpy(o, p[m]/sum, v)
	}
	return top + math.Log(sum)
}

func attention(c *call) {
	qkv, positions, o, lse := c.in[0], c.in[1], c.out[0], c.out[1]
	h := c.op.Attr.Heads
	for n := range positions {
		for j := range h.H {
			g := j * h.G / h.H
			var keys, values [][]float64
			for m := n - int(positions[n]); m <= n; m++ {
				keys = append(keys, head(qkv, h, m, h.H+g))
				values = append(values, head(qkv, h, m, h.H+h.G+g))
			}
			lse[n*h.H+j] = attend(o[(n*h.H+j)*h.K:][:h.K], head(qkv, h, n, j), keys, values)
		}
	}
}

func attentionGrad(c *call) {
	qkv, o, lse, do, positions, dqkv := c.in[0], c.in[1], c.in[2], c.in[3], c.in[4], c.out[0]
	h := c.op.Attr.Heads
	scale := 1 / math.Sqrt(float64(h.K))
	clear(dqkv)
	for n := range positions {
		for j := range h.H {
			g, i := j*h.G/h.H, n*h.H+j
			q, dq, dos := head(qkv, h, n, j), head(dqkv, h, n, j), do[i*h.K:][:h.K]
			delta := dot(dos, o[i*h.K:][:h.K])
			for m := n - int(positions[n]); m <= n; m++ {
				k, v := head(qkv, h, m, h.H+g), head(qkv, h, m, h.H+h.G+g)
				p := math.Exp(dot(q, k)*scale - lse[i])
				ds := p * (dot(dos, v) - delta) * scale
				axpy(head(dqkv, h, m, h.H+h.G+g), p, dos)
				axpy(dq, ds, k)
				axpy(head(dqkv, h, m, h.H+g), ds, q)
			}
		}
	}
}

func cachedAttention(c *call) {
	qkv, cache, slots, positions, o := c.in[0], c.in[1], c.in[2], c.in[3], c.out[0]
	h := c.op.Attr.Heads
	at := func(n int, p int) []float64 { return cache[(int(slots[n])*h.T+p)*2*h.G*h.K:][:2*h.G*h.K] }
	for n, p := range positions {
		copy(at(n, int(p)), qkv[n*h.Width()+h.H*h.K:][:2*h.G*h.K])
	}
	for n, p := range positions {
		for j := range h.H {
			g := j * h.G / h.H
			var keys, values [][]float64
			for m := range int(p) + 1 {
				keys = append(keys, at(n, m)[g*h.K:][:h.K])
				values = append(values, at(n, m)[(h.G+g)*h.K:][:h.K])
			}
			attend(o[(n*h.H+j)*h.K:][:h.K], head(qkv, h, n, j), keys, values)
		}
	}
}
