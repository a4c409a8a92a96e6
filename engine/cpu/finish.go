// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"slices"

	"pleach/kernel"
	"pleach/program"
)

// finish is what is done for each cell of a product: it is multiplied, and what
// follows in the step is done to it.
func (p *multiplier) finish(l *lowering) func(worker int, c cell) {
	switch p.st.last().Kind {
	case program.OpSwiGLU:
		return p.gated(l)
	case program.OpSwiGLUGrad:
		return p.gatedGrad(l)
	case program.OpAdd:
		return p.added(l)
	case program.OpRoPE:
		return p.rotated(l)
	}
	y, bias := l.numbers(p.st.last().Out[0]), p.bias(l)
	return func(worker int, c cell) {
		z, ld, scratch := p.place(y, c, p.scratch(worker))
		p.multiply(z, ld, 0, c, scratch)
		bias(z, ld, 0, c, scratch)
		p.store(y, z, ld, c)
	}
}

// place is where a cell of y is made: in its place, or in scratch, without gaps.
func (p *multiplier) place(y kernel.Numbers, c cell, scratch []float32) (z []float32, ld int, rest []float32) {
	if !y.Half() {
		return y.F32[c.i*p.cols+c.j:], p.cols, scratch
	}
	z, rest = cut(scratch, c.m*c.n)
	return z, c.n, rest
}

// store rounds a cell into its place, if it is not there.
func (p *multiplier) store(y kernel.Numbers, z []float32, ld int, c cell) {
	for r := 0; y.Half() && r < c.m; r++ {
		y.Store(p.level, z[r*ld:][:c.n], (c.i+r)*p.cols+c.j)
	}
}

// round rounds what an op has made, for the next one; in float32 it does nothing.
func (p *multiplier) round(z []float32) { p.x.Round(p.level, z) }

// bias adds the step's bias to a cell of a part, nothing if it has none.
func (p *multiplier) bias(l *lowering) func(z []float32, ld, part int, c cell, scratch []float32) {
	op := p.st.op(program.OpBias)
	if op == nil {
		return func([]float32, int, int, cell, []float32) {}
	}
	b := l.numbers(op.In[1])
	return func(z []float32, ld, part int, c cell, scratch []float32) {
		b := b.Load(p.level, scratch, part*p.cols+c.j, c.n)
		for r := range c.m {
			row := z[r*ld:][:c.n]
			p.round(row)
			p.level.Add(row, row, b)
		}
	}
}

// added is y = x + z, or z + x.
func (p *multiplier) added(l *lowering) func(worker int, c cell) {
	op, bias := p.st.last(), p.bias(l)
	y, made := l.numbers(op.Out[0]), p.st.ops[len(p.st.ops)-2].Out[0]
	first := op.In[0] == made
	x := l.numbers(op.In[0])
	if first {
		x = l.numbers(op.In[1])
	}
	return func(worker int, c cell) {
		z, scratch := cut(p.scratch(worker), c.m*c.n)
		p.multiply(z, c.n, 0, c, scratch)
		bias(z, c.n, 0, c, scratch)
		for r := range c.m {
			at, row := (c.i+r)*p.cols+c.j, z[r*c.n:][:c.n]
			if p.half {
				p.level.AddNarrow(y.BF16[at:][:c.n], row, x.BF16[at:][:c.n])
				continue
			}
			a, b := x.F32[at:][:c.n], row
			if first {
				a, b = b, a
			}
			p.level.Add(y.F32[at:][:c.n], a, b)
		}
	}
}

// rotated turns the heads of a cell, which are whole in it: no value head is
// touched.
func (p *multiplier) rotated(l *lowering) func(worker int, c cell) {
	op, bias, turn := p.st.last(), p.bias(l), l.turner(p.st.last())
	y, K := l.numbers(op.Out[0]), op.Attr.Heads.K
	turned := (op.Attr.Heads.H + op.Attr.Heads.G) * K
	return func(worker int, c cell) {
		z, ld, scratch := p.place(y, c, p.scratch(worker))
		p.multiply(z, ld, 0, c, scratch)
		bias(z, ld, 0, c, scratch)
		p.round(z)
		turn(kernel.Numbers{F32: z}, ld, c.i, c.m, (min(c.j+c.n, turned)-c.j)/K, nil)
		p.store(y, z, ld, c)
	}
}

// turner rotates in place so many heads in rows of distance ld, of tokens from n
// on. scratch has a row of them.
func (l *lowering) turner(op *program.Op) func(z kernel.Numbers, ld, n, rows, heads int, scratch []float32) {
	a, k := op.Attr, l.level
	cos, sin := l.x.e.rotations(rotation{a.Rope, a.Heads.K, a.Heads.T})
	positions := view[int32](l.x.bytes(op.In[1], l.slot))
	return func(z kernel.Numbers, ld, n, rows, heads int, scratch []float32) {
		if heads <= 0 {
			return
		}
		h := kernel.Heads{H: heads, K: a.Heads.K}
		for r := range rows {
			row := z.Load(k, scratch, r*ld, heads*a.Heads.K)
			k.RoPE(row, row, positions[n+r:][:1], cos, sin, h, a.Inverse)
			z.Store(k, row, r*ld)
		}
	}
}

// gated makes gate and up side by side, stores them if they are wanted, and then
// what they make.
func (p *multiplier) gated(l *lowering) func(worker int, c cell) {
	bias, y := p.bias(l), l.numbers(p.st.last().Out[0])
	x, stored := p.stored(l, p.st.last().In[0])
	return func(worker int, c cell) {
		z, scratch := cut(p.scratch(worker), 2*c.m*c.n)
		for part := range 2 {
			half := z[part*c.n:]
			p.multiply(half, 2*c.n, part, c, scratch)
			bias(half, 2*c.n, part, c, scratch)
		}
		for r := range c.m {
			row, at, gate := z[2*r*c.n:][:2*c.n], (c.i+r)*p.cols+c.j, 2*(c.i+r)*p.cols+c.j
			switch {
			case p.half && stored:
				g, v := x.BF16[gate:][:c.n], x.BF16[gate+p.cols:][:c.n]
				p.level.SwiGLUNarrow(g, v, y.BF16[at:][:c.n], row[:c.n], row[c.n:])
				continue
			case p.half:
				p.level.SwiGLUNarrow(nil, nil, y.BF16[at:][:c.n], row[:c.n], row[c.n:])
				continue
			case stored:
				copy(x.F32[gate:], row[:c.n])
				copy(x.F32[gate+p.cols:], row[c.n:])
			}
			p.level.SwiGLU(y.F32[at:][:c.n], row, c.n)
		}
	}
}

// gatedStrip is gated for whole rows of float32.
func (p *multiplier) gatedStrip(l *lowering) func(worker int, c cell) {
	bias, y, F := p.bias(l), l.f32(p.st.last().Out[0]), p.cols
	x, stored := p.stored(l, p.st.last().In[0])
	return func(worker int, c cell) {
		z := p.scratch(worker)
		if stored {
			z = x.F32[2*c.i*F:]
		}
		for part := range 2 {
			p.multiply(z[part*F:], 2*F, part, c, nil)
			bias(z[part*F:], 2*F, part, c, nil)
		}
		p.level.SwiGLU(y[c.i*F:][:c.m*F], z[:2*c.m*F], F)
	}
}

// stored is where v lies, if it has memory.
func (p *multiplier) stored(l *lowering, v *program.Value) (x kernel.Numbers, has bool) {
	if !slices.Contains(p.st.out, v) {
		return x, false
	}
	return l.numbers(v), true
}

// gatedGrad makes a cell of the gradient of what was gated, and from it those of
// gate and up, which may lie over what they are the gradients of.
func (p *multiplier) gatedGrad(l *lowering) func(worker int, c cell) {
	op := p.st.last()
	x, dx := l.numbers(op.In[0]), l.numbers(op.Out[0])
	return func(worker int, c cell) {
		z, scratch := cut(p.scratch(worker), c.m*c.n)
		pair, scratch := cut(scratch, 2*c.n)
		p.multiply(z, c.n, 0, c, scratch)
		for r := range c.m {
			gate := 2*(c.i+r)*p.cols + c.j
			up, du := gate+p.cols, z[r*c.n:][:c.n]
			if p.half {
				p.level.SwiGLUGradNarrow(dx.BF16[gate:][:c.n], dx.BF16[up:][:c.n], du, x.BF16[gate:][:c.n], x.BF16[up:][:c.n])
				continue
			}
			copy(pair, x.F32[gate:][:c.n])
			copy(pair[c.n:], x.F32[up:][:c.n])
			p.level.SwiGLUGrad(pair, du, pair, c.n)
			copy(dx.F32[gate:], pair[:c.n])
			copy(dx.F32[up:], pair[c.n:])
		}
	}
}

// gatedGradStrip is gatedGrad for whole rows of float32.
func (p *multiplier) gatedGradStrip(l *lowering) func(worker int, c cell) {
	op, F := p.st.last(), p.cols
	x, dx := l.f32(op.In[0]), l.f32(op.Out[0])
	return func(worker int, c cell) {
		du := p.scratch(worker)[:c.m*F]
		p.multiply(du, F, 0, c, nil)
		at, n := 2*c.i*F, 2*c.m*F
		p.level.SwiGLUGrad(dx[at:][:n], du, x[at:][:n], F)
	}
}

// cut is the first n elements of x, and the rest.
func cut(x []float32, n int) (first, rest []float32) { return x[:n:n], x[n:] }
