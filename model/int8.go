// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import "pleach/program"

// Held lists all parameters as programs of a layout have them on one rank: those of
// Whole and, where matrices are weights of int8 and the head is tied, a head that is a
// copy of the embedding. The embedding itself, of which a token reads a row, keeps its
// type.
func (s Spec) Held(l program.Layout) []program.Param { return s.held(l, 0, 1, 1) }

func (s Spec) held(l program.Layout, stage, stages, t int) []program.Param {
	ps := s.Params(stage, stages, t)
	if l.Int8 && s.Tied && stage == stages-1 {
		ps = append(ps, s.headParam(t, "model.embed_tokens.weight"))
	}
	return ps
}

// headParam is the head as a matrix of its own, from a tensor.
func (s Spec) headParam(t int, tensor string) program.Param {
	return program.Param{
		Name: "head", Class: program.Matrix, Shape: []int{s.V, s.D}, Group: s.L + 1,
		Parts: []program.Part{{Tensor: tensor, Size: s.V, Ways: t}},
	}
}

// declare makes a parameter in the type that its layout gives it.
func declare(b *program.Builder, p program.Param) *program.Value {
	shape := p.Local()
	if l := b.Layout(); l.Quantized(p.Class) {
		return b.Int8(p.Name, p.Spread(), shape[0], shape[1])
	}
	return b.Param(p.Name, b.Layout().Compute, p.Spread(), shape...)
}
