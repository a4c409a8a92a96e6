// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package optim_test

import (
	"slices"
	"strings"
	"testing"

	"pleach/half"
	"pleach/optim"
	"pleach/program"
)

// two is a matrix and its bias, as one rank of two holds them.
func two() []program.Param {
	return []program.Param{
		{Name: "0.w", Shape: []int{6, 4}, Parts: []program.Part{{Size: 6, Ways: 2}}, Group: 1},
		{Name: "0.w.bias", Class: program.Bias, Shape: []int{6}, Parts: []program.Part{{Size: 6, Ways: 2}}, Group: 1},
		{Name: "1.w", Shape: []int{6, 4}, Parts: []program.Part{{Size: 4, Ways: 2}, {Size: 2, Ways: 1}}, Group: 2},
		{Name: "norm", Class: program.Norm, Shape: []int{4}, Parts: []program.Part{{Size: 4, Ways: 1}}, Group: 3},
		{Name: "embed", Class: program.Embedding, Shape: []int{8, 4}, Parts: []program.Part{{Size: 8, Ways: 2}}},
	}
}

// TestGroups: what decays comes first, parameters of layers are listed once.
func TestGroups(t *testing.T) {
	a := optim.AdamW{Decay: 0.1, Except: []program.Class{program.Norm, program.Bias}}
	var got []string
	for _, g := range a.Groups(two()) {
		got = append(got, g.String())
	}
	want := []string{
		"decay 0.1: 80 elements in 3 parameters: *.w, embed",
		"decay 0: 10 elements in 2 parameters: *.w.bias, norm",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	a.Except = nil
	if n := len(a.Groups(two())); n != 1 {
		t.Errorf("%d groups where all decay, want 1", n)
	}
	a.Decay = 0
	if g := a.Groups(two()); len(g) != 1 || len(g[0].Names) != 5 {
		t.Errorf("without decay: groups %v", g)
	}
}

func TestClassesOf(t *testing.T) {
	got, err := optim.ClassesOf([]string{"norms", "biases", "embeddings"})
	if want := []program.Class{program.Norm, program.Bias, program.Embedding}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := optim.ClassesOf([]string{"norm"}); err == nil || !strings.Contains(err.Error(), `"norm": want norms, biases or embeddings`) {
		t.Errorf("got %v", err)
	}
}

// programsOf is an accumulate program that adds into no sum, and its update.
func programsOf(t *testing.T, a optim.AdamW, l program.Layout) *program.Program {
	t.Helper()
	b := program.New("accumulate", l)
	acc, err := b.Build(b.Zeros(1))
	if err != nil {
		t.Fatal(err)
	}
	p, err := optim.Update(a, l, two(), 4, acc)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOrder: a gradient is summed over data, then over copies, then enters the
// norm; after the report come AdamW and the new weights; every sum and the
// tally end cleared. A part of 1.w is held by both tensor ranks.
func TestOrder(t *testing.T) {
	l := program.Layout{Mesh: program.Mesh{Data: 2, Tensor: 2}, Zero: true, Compute: half.BF16, Sum: half.F32}
	p := programsOf(t, optim.AdamW{Clip: 1, Master: true}, l)
	var g *program.Value // the shard of d1.w
	var got []string
	for _, op := range p.Ops {
		reads := func(v *program.Value) bool { return v != nil && slices.Contains(op.In, v) }
		switch {
		case reads(p.Named("d1.w")) && op.Kind == program.OpReduceScatter:
			g = op.Out[0]
		case reads(g), reads(p.Named("master.1.w")), slices.Contains(op.Out, p.Named("1.w")), op.Kind == program.OpClip:
		default:
			continue
		}
		got = append(got, op.Kind.String())
	}
	want := []string{"reduce.scatter", "all.reduce", "sum.squares", "clip", "adamw", "cast", "all.gather"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, v := range p.Held(program.State) {
		if v.Name[0] != 'd' && v.Name != "tally" {
			continue
		}
		if last := p.Ops[lastOf(p, v)]; last.Kind != program.OpZero {
			t.Errorf("%s ends with %v, want it cleared", v.Name, last.Kind)
		}
	}
}

func lastOf(p *program.Program, v *program.Value) (last int) {
	for i, op := range p.Ops {
		if slices.Contains(op.In, v) || slices.Contains(op.Out, v) {
			last = i
		}
	}
	return last
}

// TestStates: what an update keeps, by layout and type.
func TestStates(t *testing.T) {
	tests := []struct {
		name   string
		a      optim.AdamW
		l      program.Layout
		master bool
		len    int // of the moments of 0.w, 12 elements on a rank
		typ    half.DType
	}{
		{"f32", optim.AdamW{}, program.Layout{Compute: half.F32, Sum: half.F32}, false, 12, half.F32},
		{"mixed", optim.AdamW{Master: true}, program.Layout{Compute: half.BF16, Sum: half.F32}, true, 12, half.F32},
		{"ZeRO-1", optim.AdamW{Master: true}, program.Layout{Mesh: program.Mesh{Data: 5}, Zero: true, Compute: half.BF16, Sum: half.F32}, true, 3, half.F32},
		{"bf16", optim.AdamW{Stochastic: true}, program.Layout{Mesh: program.Mesh{Data: 2}, Zero: true, Compute: half.BF16, Sum: half.F32}, false, 6, half.F32},
		{"ZeRO-1 of chunks", optim.AdamW{}, program.Layout{Mesh: program.Mesh{Data: 2}, Chunks: 8, Zero: true, Compute: half.F32, Sum: half.F32}, false, 8, half.F32},
	}
	for _, tt := range tests {
		tt.l.Mesh.Tensor = 2
		p := programsOf(t, tt.a, tt.l)
		for _, name := range []string{"m.0.w", "v.0.w", "master.0.w"} {
			v := p.Named(name)
			if want := tt.master || name[0] != 'm' || name == "m.0.w"; (v != nil) != want {
				t.Errorf("%s: %s is there: %v, want %v", tt.name, name, v != nil, want)
				continue
			}
			if v != nil && (v.Len() != tt.len || v.Type != tt.typ) {
				t.Errorf("%s: %v, want %d elements of %v", tt.name, v, tt.len, tt.typ)
			}
		}
	}
}

// TestStochastic: the attribute reaches every AdamW.
func TestStochastic(t *testing.T) {
	p := programsOf(t, optim.AdamW{Stochastic: true, Decay: 0.1, Except: []program.Class{program.Norm}}, program.Layout{Compute: half.BF16, Sum: half.F32, Mesh: program.Mesh{Tensor: 2}})
	n := 0
	for _, op := range p.Ops {
		if op.Kind == program.OpAdamW {
			n++
			if want := map[bool]float64{true: 0, false: 0.1}[op.In[0].Name == "norm"]; !op.Attr.Stochastic || op.Attr.Adam.Decay != want {
				t.Errorf("%s: %+v, stochastic %v", op.In[0].Name, op.Attr.Adam, op.Attr.Stochastic)
			}
		}
	}
	if n != len(two()) {
		t.Errorf("%d parameters are updated, want %d", n, len(two()))
	}
}

// TestCarry adds every sum into an older one and clears it.
func TestCarry(t *testing.T) {
	b := program.New("accumulate", program.Layout{})
	for _, name := range []string{"dw", "tally"} {
		b.Clear(b.State(name, half.F64, program.Same, 2))
	}
	acc, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := optim.Carry(program.Layout{}, acc)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, op := range p.Ops {
		got = append(got, op.Kind.String()+" "+op.Out[0].Name)
	}
	if want := []string{"add older.dw", "zero dw", "add older.tally", "zero tally"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
