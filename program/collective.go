// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import "slices"

// All collectives see a value as its flat row-major elements, split along the
// first dimension into equal pieces in the order of the ranks. Sums are taken
// in a fixed binary tree over the ranks whose root joins the even and the odd.

// AllReduce sums the terms of x over the tensor axis; all ranks get the sum.
func (b *Builder) AllReduce(x *Value) *Value {
	if b.p.Mesh.Size(Tensor) == 1 {
		return x
	}
	b.want(x.Spread == Partial, "all-reduce: %s is %v, not partial", x.Name, x.Spread)
	op := b.op(OpAllReduce, Attr{Axis: Tensor}, x)
	y := b.out(op, "sum", x.Type, Same, x.Shape...)
	b.onGrad(op, y, func(dy *Value) { b.addGrad(x, dy) })
	return y
}

// ReduceScatter sums the terms of x over the tensor axis; each rank gets its
// rows of the sum.
func (b *Builder) ReduceScatter(x *Value) *Value {
	t := b.p.Mesh.Size(Tensor)
	if t == 1 {
		return x
	}
	b.want(x.Spread == Partial && x.Dim(0)%t == 0, "reduce-scatter: %v is %v, want partial, rows a multiple of %d",
		x, x.Spread, t)
	op := b.op(OpReduceScatter, Attr{Axis: Tensor}, x)
	y := b.out(op, "part", x.Type, Rows, rows(x, 1, t)...)
	b.onGrad(op, y, func(dy *Value) { b.addGrad(x, b.AllGather(dy)) })
	return y
}

// AllGather joins the rows of all ranks of the tensor axis. Its gradient is a
// ReduceScatter of what the ranks made of their copies.
func (b *Builder) AllGather(x *Value) *Value {
	t := b.p.Mesh.Size(Tensor)
	if t == 1 {
		return x
	}
	b.want(x.Spread == Rows, "all-gather: %s is %v, not rows", x.Name, x.Spread)
	op := b.op(OpAllGather, Attr{Axis: Tensor}, x)
	y := b.out(op, "all", x.Type, Same, rows(x, t, 1)...)
	b.onGrad(op, y, func(dy *Value) { b.addGrad(x, b.ReduceScatter(dy)) })
	return y
}

// rows is the shape of x with its first dimension times num / den.
func rows(x *Value, num, den int) []int {
	shape := slices.Clone(x.Shape)
	if len(shape) > 0 {
		shape[0] = shape[0] * num / den
	}
	return shape
}

// Send passes x to the next stage of the pipeline. Its gradient is received
// from there in the backward half.
func (b *Builder) Send(x *Value) {
	op := b.op(OpSend, Attr{Axis: Pipe, Step: 1}, x)
	op.grad = func() {
		g := b.op(OpRecv, Attr{Axis: Pipe, Step: 1})
		b.addGrad(x, b.out(g, "dx", x.Type, x.Spread, x.Shape...))
	}
}

// Recv takes a value like the one that Send passes, from the previous stage;
// its gradient is sent back.
func (b *Builder) Recv(s Spread, shape ...int) *Value {
	op := b.op(OpRecv, Attr{Axis: Pipe, Step: -1})
	y := b.out(op, "x", b.layout.Compute, b.spread(s), shape...)
	b.onGrad(op, y, func(dy *Value) { b.op(OpSend, Attr{Axis: Pipe, Step: -1}, dy) })
	return y
}

// SumOver sums x in place over an axis.
func (b *Builder) SumOver(x *Value, a Axis) {
	if b.p.Mesh.Size(a) > 1 {
		b.into(b.op(OpAllReduce, Attr{Axis: a, Hi: x.Len()}, x), x)
	}
}

// SumCopies sums the flat elements [lo,hi) of x in place over groups of n
// consecutive ranks of the tensor axis: those which hold copies of them. With
// sharded, x is a flat shard of what lo and hi count in.
func (b *Builder) SumCopies(x *Value, lo, hi, n int, sharded bool) {
	b.want(n > 0 && b.p.Mesh.Size(Tensor)%n == 0, "sum copies: %d does not divide the tensor degree", n)
	b.into(b.op(OpAllReduce, Attr{Axis: Tensor, Copies: n, Lo: lo, Hi: hi, Sharded: sharded}, x), x)
}

// ShardSum sums x over the data axis; each rank gets its flat shard of n
// elements, the last ones padded with zeros.
func (b *Builder) ShardSum(x *Value, n int) *Value {
	b.want(n*b.p.Mesh.Size(Data) >= x.Len(), "shard sum: %d shards of %d do not hold %v", b.p.Mesh.Size(Data), n, x)
	op := b.op(OpReduceScatter, Attr{Axis: Data}, x)
	return b.out(op, "shard", x.Type, x.Spread, n)
}

// Shard copies the rank's own flat shard of x, as ShardSum cuts it.
func (b *Builder) Shard(x *Value, n int) *Value {
	op := b.op(OpShard, Attr{Axis: Data}, x)
	return b.out(op, "shard", x.Type, x.Spread, n)
}

// Publish gathers shards over the data axis into x, dropping the padding.
func (b *Builder) Publish(x, shard *Value) {
	b.want(x.Type == shard.Type, "publish: got %v for %v", shard, x)
	b.into(b.op(OpAllGather, Attr{Axis: Data}, shard), x)
}
