// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"

	"pleach/half"
)

// The formulas are in package program, at the builder's methods.

func embed(c *call) {
	table, ids, y := c.in[0], c.in[1], c.out[0]
	V, D := c.dim(0, 0), c.dim(0, 1)
	lo := c.offset(V)
	for n, id := range ids {
		row := y[n*D:][:D]
		if v := int(id) - lo; 0 <= v && v < V {
			copy(row, table[v*D:])
		} else {
			clear(row)
		}
	}
}

func embedGrad(c *call) {
	dy, ids, dt := c.in[0], c.in[1], c.in[2]
	V, D := c.dim(2, 0), c.dim(2, 1)
	lo := c.offset(V)
	for n, id := range ids {
		if v := int(id) - lo; 0 <= v && v < V {
			axpy(dt[v*D:][:D], 1, dy[n*D:][:D])
		}
	}
}

func linear(c *call) {
	x, w, y := c.in[0], c.in[1], c.out[0]
	N, I, O := c.dim(0, 0), c.dim(0, 1), c.dim(1, 0)
	for n := range N {
		for o := range O {
			y[n*O+o] = c.scale(o) * dot(x[n*I:][:I], w[o*I:][:I])
		}
	}
}

// scale is that of row o of operand 1, the last operand where it is weights of int8.
func (c *call) scale(o int) float64 {
	if c.op.In[1].Type != half.I8 {
		return 1
	}
	return c.in[len(c.in)-1][o]
}

func dot(x, y []float64) (s float64) {
	for i := range x {
		s += float64(x[i] * y[i])
	}
	return s
}

func linearGradX(c *call) {
	dy, w, dx := c.in[0], c.in[1], c.out[0]
	N, O, I := c.dim(0, 0), c.dim(1, 0), c.dim(1, 1)
	clear(dx)
	for n := range N {
		for o := range O {
			axpy(dx[n*I:][:I], dy[n*O+o], w[o*I:][:I])
		}
	}
}

// axpy is y += a·x.
func axpy(y []float64, a float64, x []float64) {
	for i := range y {
		y[i] += float64(a * x[i])
	}
}

func linearGradW(c *call) {
	dy, x, dw := c.in[0], c.in[1], c.in[2]
	N, O, I := c.dim(0, 0), c.dim(0, 1), c.dim(1, 1)
	for n := range N {
		for o := range O {
			axpy(dw[o*I:][:I], dy[n*O+o], x[n*I:][:I])
		}
	}
}

func bias(c *call) {
	x, w, y := c.in[0], c.in[1], c.out[0]
	for i := range y {
		y[i] = x[i] + w[i%len(w)]
	}
}

func biasGrad(c *call) {
	dy, dw := c.in[0], c.in[1]
	for i, g := range dy {
		dw[i%len(dw)] += g
	}
}

func rmsNorm(c *call) {
	x, w, y := c.in[0], c.in[1], c.out[0]
	D := len(w)
	for n := 0; n < len(x); n += D {
		xs := x[n:][:D]
		r := 1 / math.Sqrt(dot(xs, xs)/float64(D)+c.op.Attr.Eps)
		for d := range D {
			y[n+d] = w[d] * (xs[d] * r)
		}
	}
}

func rmsNormGrad(c *call) {
	x, w, dy, dw, dx := c.in[0], c.in[1], c.in[2], c.in[3], c.out[0]
	D := len(w)
	for n := 0; n < len(x); n += D {
		xs, gs := x[n:][:D], dy[n:][:D]
		r := 1 / math.Sqrt(dot(xs, xs)/float64(D)+c.op.Attr.Eps)
		mean := 0.0
		for d := range D {
			mean += w[d] * gs[d] * xs[d] / float64(D)
			dw[d] += gs[d] * xs[d] * r
		}
		for d := range D {
			dx[n+d] = r * (w[d]*gs[d] - xs[d]*r*r*mean)
		}
	}
}

func rope(c *call) {
	x, positions, y, a := c.in[0], c.in[1], c.out[0], c.op.Attr
	h, W, half := a.Heads, c.dim(0, 1), a.Heads.K/2
	f := a.Rope.Frequencies(h.K)
	copy(y, x)
	for n := range positions {
		for i := range half {
			phi := positions[n] * f[i]
			if a.Inverse {
				phi = -phi
			}
			sin, cos := math.Sincos(phi)
			for j := range h.H + h.G {
				p := n*W + j*h.K + i
				u, v := y[p], y[p+half]
				y[p], y[p+half] = u*cos-v*sin, v*cos+u*sin
			}
		}
	}
}

func swiGLU(c *call) {
	x, y := c.in[0], c.out[0]
	F := c.dim(0, 1) / 2
	for n := range c.dim(0, 0) {
		for f := range F {
			a, u := x[2*n*F+f], x[2*n*F+F+f]
			y[n*F+f] = a / (1 + math.Exp(-a)) * u
		}
	}
}

func swiGLUGrad(c *call) {
	x, dy, dx := c.in[0], c.in[1], c.out[0]
	F := c.dim(0, 1) / 2
	for n := range c.dim(0, 0) {
		for f := range F {
			i := 2*n*F + f
			a, u, g := x[i], x[i+F], dy[n*F+f]
			s := 1 / (1 + math.Exp(-a))
			dx[i] = g * u * s * (1 + a*(1-s))
			dx[i+F] = g * a * s
		}
	}
}

func add(c *call) {
	for i := range c.out[0] {
		c.out[0][i] = c.in[0][i] + c.in[1][i]
	}
}

func scale(c *call) {
	for i := range c.out[0] {
		c.out[0][i] = c.op.Attr.C * c.in[0][i]
	}
}
