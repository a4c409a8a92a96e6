// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
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
	y, bias := l.f32(p.st.last().Out[0]), p.bias(l)
	return func(worker int, c cell) {
		z := y[c.i*p.cols+c.j:]
		p.multiply(z, p.cols, 0, c, p.scratch(worker))
		bias(z, p.cols, 0, c)
	}
}

// bias adds the step's bias to a cell of a part, nothing if it has none.
func (p *multiplier) bias(l *lowering) func(z []float32, ld, part int, c cell) {
	op := p.st.op(program.OpBias)
	if op == nil {
		return func([]float32, int, int, cell) {}
	}
	b := l.f32(op.In[1])
	return func(z []float32, ld, part int, c cell) {
		b := b[part*p.cols+c.j:][:c.n]
		for r := range c.m {
			row := z[r*ld:][:c.n]
			p.level.Add(row, row, b)
		}
	}
}

// added is y = x + z, or z + x.
func (p *multiplier) added(l *lowering) func(worker int, c cell) {
	op, bias := p.st.last(), p.bias(l)
	y, made := l.f32(op.Out[0]), p.st.ops[len(p.st.ops)-2].Out[0]
	first := op.In[0] == made
	other := op.In[0]
	if first {
		other = op.In[1]
	}
	x := l.f32(other)
	return func(worker int, c cell) {
		z, scratch := cut(p.scratch(worker), c.m*c.n)
		p.multiply(z, c.n, 0, c, scratch)
		bias(z, c.n, 0, c)
		for r := range c.m {
			at := (c.i+r)*p.cols + c.j
			a, b := x[at:][:c.n], z[r*c.n:][:c.n]
			if first {
				a, b = b, a
			}
			p.level.Add(y[at:][:c.n], a, b)
		}
	}
}

// rotated turns the heads of a cell, which are whole in it: no value head is
// touched.
func (p *multiplier) rotated(l *lowering) func(worker int, c cell) {
	op, bias, turn := p.st.last(), p.bias(l), l.turner(p.st.last())
	y, K := l.f32(op.Out[0]), op.Attr.Heads.K
	turned := (op.Attr.Heads.H + op.Attr.Heads.G) * K
	return func(worker int, c cell) {
		z := y[c.i*p.cols+c.j:]
		p.multiply(z, p.cols, 0, c, p.scratch(worker))
		bias(z, p.cols, 0, c)
		turn(z, p.cols, c.i, c.m, (min(c.j+c.n, turned)-c.j)/K)
	}
}

// turner rotates in place so many heads in rows of distance ld, of tokens from n
// on.
func (l *lowering) turner(op *program.Op) func(z []float32, ld, n, rows, heads int) {
	a, k := op.Attr, l.level
	cos, sin := l.x.e.rotations(rotation{a.Rope, a.Heads.K, a.Heads.T})
	positions := view[int32](l.x.bytes(op.In[1], l.slot))
	return func(z []float32, ld, n, rows, heads int) {
		if heads <= 0 {
			return
		}
		h := kernel.Heads{H: heads, K: a.Heads.K}
		for r := range rows {
			row := z[r*ld:][:heads*a.Heads.K]
			k.RoPE(row, row, positions[n+r:][:1], cos, sin, h, a.Inverse)
		}
	}
}

// gated makes gate and up side by side, stores them if they are wanted, and then
// what they make.
func (p *multiplier) gated(l *lowering) func(worker int, c cell) {
	bias, y := p.bias(l), l.f32(p.st.last().Out[0])
	x := p.stored(l, p.st.last().In[0])
	return func(worker int, c cell) {
		z, scratch := cut(p.scratch(worker), 2*c.m*c.n)
		for part := range 2 {
			half := z[part*c.n:]
			p.multiply(half, 2*c.n, part, c, scratch)
			bias(half, 2*c.n, part, c)
		}
		for r := range c.m {
			row, at := z[2*r*c.n:][:2*c.n], (c.i+r)*p.cols+c.j
			if x != nil {
				at := 2*(c.i+r)*p.cols + c.j
				copy(x[at:][:c.n], row)
				copy(x[at+p.cols:][:c.n], row[c.n:])
			}
			p.level.SwiGLU(y[at:][:c.n], row, c.n)
		}
	}
}

// gatedStrip is gated for whole rows.
func (p *multiplier) gatedStrip(l *lowering) func(worker int, c cell) {
	bias, y, F := p.bias(l), l.f32(p.st.last().Out[0]), p.cols
	x := p.stored(l, p.st.last().In[0])
	return func(worker int, c cell) {
		z := p.scratch(worker)
		if x != nil {
			z = x[2*c.i*F:]
		}
		for part := range 2 {
			p.multiply(z[part*F:], 2*F, part, c, nil)
			bias(z[part*F:], 2*F, part, c)
		}
		p.level.SwiGLU(y[c.i*F:][:c.m*F], z[:2*c.m*F], F)
	}
}

// stored is where v lies, nil if it has no memory.
func (p *multiplier) stored(l *lowering, v *program.Value) []float32 {
	for _, o := range p.st.out {
		if o == v {
			return l.f32(v)
		}
	}
	return nil
}

// gatedGrad makes a cell of the gradient of what was gated, and from it those of
// gate and up, which may lie over what they are the gradients of.
func (p *multiplier) gatedGrad(l *lowering) func(worker int, c cell) {
	op := p.st.last()
	x, dx := l.f32(op.In[0]), l.f32(op.Out[0])
	return func(worker int, c cell) {
		z, scratch := cut(p.scratch(worker), c.m*c.n)
		pair, scratch := cut(scratch, 2*c.n)
		p.multiply(z, c.n, 0, c, scratch)
		for r := range c.m {
			gate := 2*(c.i+r)*p.cols + c.j
			up := gate + p.cols
			copy(pair, x[gate:][:c.n])
			copy(pair[c.n:], x[up:][:c.n])
			p.level.SwiGLUGrad(pair, z[r*c.n:][:c.n], pair, c.n)
			copy(dx[gate:][:c.n], pair)
			copy(dx[up:][:c.n], pair[c.n:])
		}
	}
}

// gatedGradStrip is gatedGrad for whole rows.
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
