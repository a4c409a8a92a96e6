// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package optim_test

import (
	"slices"
	"testing"

	"pleach/half"
	"pleach/optim"
	"pleach/program"
)

// TestPrecision: names go there and back, and the update of each has the types
// that it stands for.
func TestPrecision(t *testing.T) {
	want := map[string]struct {
		weights, updated half.DType
		stochastic       bool
	}{
		"f32":     {half.F32, half.F32, false},
		"mixed":   {half.BF16, half.F32, false},
		"bf16-sr": {half.BF16, half.BF16, true},
		"bf16":    {half.BF16, half.BF16, false},
	}
	if len(optim.Precisions()) != len(want) {
		t.Errorf("precisions: got %v", optim.Precisions())
	}
	for _, name := range optim.Precisions() {
		p, err := optim.ParsePrecision(name)
		if err != nil || p.String() != name {
			t.Errorf("%s: got %v, %v", name, p, err)
		}
		a, l := p.Apply(optim.AdamW{Seed: 7}), p.Layout()
		if got := optim.PrecisionOf(l, a); got != p {
			t.Errorf("%s: its layout and optimizer are those of %v", name, got)
		}
		l.Mesh.Tensor = 2
		prog, w := programsOf(t, a, l), want[name]
		n := 0
		for _, op := range prog.Ops {
			if op.Kind != program.OpAdamW {
				continue
			}
			n++
			r := program.Rounding{Stochastic: w.stochastic, Seed: 7}
			if op.In[0].Type != w.updated || op.In[1].Type != half.F32 || op.In[3].Type != half.F32 || op.Attr.Rounding != r {
				t.Errorf("%s: adamw of %v, %v, %v, %+v", name, op.In[0], op.In[1], op.In[3], op.Attr.Rounding)
			}
		}
		if n != len(two()) || prog.Named("norm").Type != w.weights {
			t.Errorf("%s: %d updates, norm %v", name, n, prog.Named("norm"))
		}
		for i, op := range prog.Ops {
			if op.Kind == program.OpCast && op.Out[0] == prog.Named("0.w") && prog.Ops[i-1].Kind != program.OpAdamW {
				t.Errorf("%s: the weights are cast before the update", name)
			}
		}
	}
	if _, err := optim.ParsePrecision("f16"); err == nil {
		t.Error("f16: got no error")
	}
}

// TestRoundedAs: states draw random numbers under their own names, shards under
// that of their parameter, and count in the whole.
func TestRoundedAs(t *testing.T) {
	for _, zero := range []bool{false, true} {
		l := optim.BF16SR.Layout()
		l.Mesh, l.Zero = program.Mesh{Data: 2, Tensor: 2}, zero
		prog := programsOf(t, optim.BF16SR.Apply(optim.AdamW{HalfMoments: true}), l)
		var got []string
		for _, op := range prog.Ops {
			if op.Kind != program.OpAdamW {
				continue
			}
			if op.Attr.Sharded != zero {
				t.Errorf("sharded: got %v, want %v", op.Attr.Sharded, zero)
			}
			for i, v := range op.Out {
				got = append(got, op.RoundedAs(i))
				if v.Type != half.BF16 {
					t.Errorf("%v: want bf16", v)
				}
			}
		}
		if want := []string{"0.w", "m.0.w", "v.0.w", "0.w.bias", "m.0.w.bias"}; !slices.Equal(got[:5], want) {
			t.Errorf("names: got %v, want %v …", got, want)
		}
	}
}
