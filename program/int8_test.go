// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"strings"
	"testing"

	"pleach/half"
	"pleach/model"
	"pleach/program"
)

// TestInt8Refused: weights of int8 are for bf16, with scales, and without gradients.
func TestInt8Refused(t *testing.T) {
	x := func(b *program.Builder) *program.Value { return b.Input("x", half.BF16, 4, 3) }
	for _, tt := range []refusal{
		{"of float32", "linear: got x f32[4 3], w i8[5 3], want [N,I], [O,I] of one type", 1, func(b *program.Builder) {
			b.Linear(in(b, "x", 4, 3), b.Int8("w", program.Same, 5, 3))
		}},
		{"no scales", "linear: got x bf16[4 3], w i8[5 3], want", 1, func(b *program.Builder) {
			b.Linear(x(b), b.Param("w", half.I8, program.Same, 5, 3))
		}},
		{"width", "head: got x bf16[4 3], w i8[5 2], want [N,D], [V,D] of one type", 1, func(b *program.Builder) {
			b.HeadLoss(x(b), b.Int8("w", program.Same, 5, 2), b.Input("l", i32, 4), nil)
		}},
		{"gradient", "no gradient for int8 weights: w i8[5 3]", 1, func(b *program.Builder) {
			b.Seed(b.Linear(x(b), b.Int8("w", program.Same, 5, 3)), b.Input("dy", half.BF16, 4, 5))
		}},
		{"tally", "no gradient for int8 weights: w i8[5 3]", 1, func(b *program.Builder) {
			b.HeadLoss(x(b), b.Int8("w", program.Same, 5, 3), b.Input("l", i32, 4), b.Tally())
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := program.New("test", program.Layout{Compute: half.BF16, Sum: f32})
			tt.build(b)
			b.Backward()
			if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	l := program.Layout{Compute: f32, Sum: f32, Int8: true}
	if err := l.Check(); err == nil || err.Error() != "program: weights of int8 with f32: want bf16" {
		t.Errorf("a layout of float32: got %v", err)
	}
}

// TestInt8Spread: the ranks that split rows split their scales; a row that is split in
// columns has one scale on all of them.
func TestInt8Spread(t *testing.T) {
	for _, tt := range []struct{ w, scale program.Spread }{
		{program.Same, program.Same}, {program.Rows, program.Rows}, {program.Cols, program.Same},
	} {
		b := program.New("test", program.Layout{Mesh: program.Mesh{Tensor: 2}, Compute: half.BF16, Sum: f32})
		b.Int8("w", tt.w, 6, 4)
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		s := p.Named("w" + program.Scale)
		if s.Spread != tt.scale || s.Type != f32 || s.Len() != 6 {
			t.Errorf("%v: got scales %v %v, want f32[6] %v", tt.w, s, s.Spread, tt.scale)
		}
	}
}

// TestInt8Bytes: a decoded token reads a byte for each element of the matrices and the
// head, four for each row, and two for each of the norms.
func TestInt8Bytes(t *testing.T) {
	for _, tied := range []bool{false, true} {
		s := small
		s.Tied = tied
		held := func(l program.Layout) int {
			p, err := model.Extend("decode", s, l, 0, model.Window{N: 1, M: 1, Slots: 1, T: 8})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, v := range p.Held(program.Weight) {
				n += v.Bytes()
			}
			return n
		}
		matrices, rows := s.V*s.D, s.V // the head
		for _, p := range s.Whole() {
			if p.Class == program.Matrix && p.Name != "head" {
				matrices, rows = matrices+p.Len(), rows+p.Shape[0]
			}
		}
		rest := 2 * s.V * s.D // the embedding
		for _, p := range s.Whole() {
			if p.Class == program.Norm || p.Class == program.Bias {
				rest += 2 * p.Len()
			}
		}
		got := held(program.Layout{Compute: half.BF16, Sum: f32, Int8: true})
		if want := matrices + 4*rows + rest; got != want {
			t.Errorf("tied %v: weights take %d bytes, want %d", tied, got, want)
		}
	}
}
