// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"slices"

	"pleach/program"
)

func shard(c *call) {
	n := len(c.out[0])
	clear(c.out[0])
	copy(c.out[0], c.in[0][min(c.offset(n), len(c.in[0])):])
}

func sumSquares(c *call) {
	x, a := c.in[0], c.op.Attr
	slots, off := c.in[1][a.Row*c.dim(1, 1):], c.shardOffset()
	for _, r := range a.Runs {
		for i := max(r.Lo, off); i < min(r.Hi, off+len(x)); i++ {
			slots[i/a.Leaf] += float64(r.Weight * float64(x[i-off]*x[i-off]))
		}
	}
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

func clip(c *call) {
	tally, apply, y := c.in[2], c.in[3][0], c.out[0]
	clear(y)
	y[program.ReportWeightNorm] = math.Sqrt(sum(c.in[1]))
	count := tally[1]
	if count == 0 {
		return
	}
	norm, scale := math.Sqrt(sum(c.in[0]))/count, 1/count
	if limit := c.op.Attr.C; limit > 0 {
		scale *= min(1, limit/(norm+1e-6))
	}
	y[program.ReportScale], y[program.ReportNorm] = scale, norm
	y[program.ReportLoss], y[program.ReportCount] = tally[0]/count, count
	if apply != 0 && !math.IsNaN(norm) && !math.IsInf(norm, 0) {
		y[program.ReportApply] = 1
	}
}

func adamW(c *call) {
	p, m, v, g, report := c.in[0], c.in[1], c.in[2], c.in[3], c.in[4]
	if report[program.ReportApply] == 0 {
		return
	}
	scale, lr, t, a := report[program.ReportScale], c.in[5][0], c.in[6][0], c.op.Attr.Adam
	b1, b2 := 1-math.Pow(a.Beta1, t), 1-math.Pow(a.Beta2, t)
	defer c.roundStochastically(uint64(t))
	for i := range p {
		gi := scale * g[i]
		m[i] = a.Beta1*m[i] + (1-a.Beta1)*gi
		v[i] = a.Beta2*v[i] + (1-a.Beta2)*gi*gi
		p[i] -= lr * (m[i]/b1/(math.Sqrt(v[i]/b2)+a.Eps) + a.Decay*p[i])
	}
}

func allReduce(c *call) {
	x, y, a := c.in[0], c.out[0], c.op.Attr
	lo, hi := 0, len(x)
	if a.Hi > 0 { // in place, so that y is x
		off := c.shardOffset()
		lo, hi = max(a.Lo-off, 0), min(a.Hi-off, len(x))
	}
	if lo >= hi {
		return // none of it in this shard, and so in no copy's
	}
	copy(y[lo:hi], treeSum(c.World.gather(c.At, a.Axis, a.Copies, x[lo:hi])))
}

func reduceScatter(c *call) {
	total := treeSum(c.World.gather(c.At, c.op.Attr.Axis, 0, c.in[0]))
	y := c.out[0]
	clear(y)
	copy(y, total[min(c.offset(len(y)), len(total)):])
}

func allGather(c *call) {
	y := c.out[0]
	for _, part := range c.World.gather(c.At, c.op.Attr.Axis, 0, c.in[0]) {
		y = y[copy(y, part):]
	}
}

func send(c *call) {
	to := c.At
	to.Pipe += c.op.Attr.Step
	c.World.link(c.At, to) <- slices.Clone(c.in[0])
}

func recv(c *call) {
	from := c.At
	from.Pipe += c.op.Attr.Step
	copy(c.out[0], <-c.World.link(from, c.At))
}
