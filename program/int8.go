// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import "pleach/half"

// Scale ends the name of the scales of weights of int8.
const Scale = ".scale"

// Int8 declares weights of int8 for [Builder.Linear] and the head: q [O,I], −127 … 127,
// and, as name + [Scale], a float32 for each row, s [O]. They stand for s[o]·q[o,i].
//
//	y[n,o] = s[o] · Σ_i x[n,i] · q[o,i]
//
// x is bf16. The scale is applied to the sum, in float32, before y is rounded: q is exact
// in bf16, so the sum is that of a product with bf16 weights q. The scales are the last
// operand of an op with such weights. See half.ToI8 for how weights become q and s.
//
// There is no gradient for q or s.
func (b *Builder) Int8(name string, s Spread, O, I int) *Value {
	q := b.Param(name, half.I8, s, O, I)
	rows := Same // a row that is split in columns has one scale
	if s == Rows {
		rows = Rows
	}
	q.scale = b.Param(name+Scale, half.F32, rows, O)
	return q
}

// multiplies reports whether w may be the weights of a product with x.
func multiplies(x, w *Value) bool {
	if w.Type == half.I8 {
		return w.scale != nil && x.Type == half.BF16
	}
	return x.Type == w.Type
}

// scaled is operands, and the scales of w if it has some.
func scaled(w *Value, operands ...*Value) []*Value {
	if w.scale == nil {
		return operands
	}
	return append(operands, w.scale)
}

// differentiable refuses a gradient for weights of int8.
func (b *Builder) differentiable(w *Value) bool {
	b.want(w.Type != half.I8, "no gradient for int8 weights: %v", w)
	return w.Type != half.I8
}
