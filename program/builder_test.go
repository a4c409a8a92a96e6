// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pleach/half"
	"pleach/program"
)

// Short names for tables.
const (
	f32 = half.F32
	i32 = half.I32
)

var quad = program.Heads{H: 4, G: 2, K: 2, T: 4} // 16 wide

// refusal is a program that must not be built.
type refusal struct {
	name, want string
	tensor     int // ranks
	build      func(b *program.Builder)
}

// TestRefused: the builder reports the first error, with the line of the model.
func TestRefused(t *testing.T) {
	all := map[string][]refusal{
		"spread": spreadRefusals(), "shape": shapeRefusals(), "heads": headsRefusals(), "head": headRefusals(),
		"collective": collectiveRefusals(), "update": updateRefusals(),
	}
	for group, tests := range all {
		for _, tt := range tests {
			t.Run(group+"/"+tt.name, func(t *testing.T) {
				l := program.Layout{Mesh: program.Mesh{Tensor: tt.tensor, Data: 2}, Compute: f32, Sum: f32}
				b := program.New("test", l)
				tt.build(b)
				b.Backward() // goes on without a panic
				_, err := b.Build()
				if err == nil || !strings.Contains(err.Error(), tt.want) ||
					!strings.HasPrefix(err.Error(), "program: builder_test.go:") {
					t.Errorf("got  %v\nwant program: builder_test.go:…: %s", err, tt.want)
				}
			})
		}
	}
}

func in(b *program.Builder, name string, shape ...int) *program.Value {
	return b.Input(name, f32, shape...)
}

func weight(b *program.Builder, name string, s program.Spread, shape ...int) *program.Value {
	return b.Param(name, f32, s, shape...)
}

// colsOf and partialOf are values spread so, where there are two tensor ranks.
func colsOf(b *program.Builder) *program.Value {
	return b.Linear(in(b, "x", 4, 3), weight(b, "up", program.Rows, 2, 3))
}

func partialOf(b *program.Builder) *program.Value {
	return b.Linear(colsOf(b), weight(b, "down", program.Cols, 3, 2))
}

func spreadRefusals() []refusal {
	return []refusal{
		{"partial into a norm", "rmsnorm: y.1 is partial, w is same: reduce first", 2, func(b *program.Builder) {
			b.RMSNorm(partialOf(b), weight(b, "w", program.Same, 3), 0)
		}},
		{"columns into a norm", "rmsnorm: y.0 is cols, w is same", 2, func(b *program.Builder) {
			b.RMSNorm(colsOf(b), weight(b, "w", program.Same, 2), 0)
		}},
		{"columns into rows", "linear: y.0 is cols, up2 is rows: gather or reduce first", 2, func(b *program.Builder) {
			b.Linear(colsOf(b), weight(b, "up2", program.Rows, 2, 2))
		}},
		{"same into columns", "linear: x is same, w is cols: gather or reduce first", 2, func(b *program.Builder) {
			b.Linear(in(b, "x", 4, 3), weight(b, "w", program.Cols, 2, 3))
		}},
		{"residual not reduced", "add: r is same, y.1 is partial", 2, func(b *program.Builder) {
			b.Add(in(b, "r", 4, 3), partialOf(b))
		}},
		{"partial into a gate", "swiglu: y.1 is partial: reduce first", 2, func(b *program.Builder) {
			b.SwiGLU(b.Linear(colsOf(b), weight(b, "down", program.Cols, 4, 2)))
		}},
		{"bias before the sum", "bias: y.1 is partial, c is same", 2, func(b *program.Builder) {
			b.Bias(partialOf(b), weight(b, "c", program.Same, 3))
		}},
		{"whole bias on columns", "bias: y.0 is cols, c is same", 2, func(b *program.Builder) {
			b.Bias(colsOf(b), weight(b, "c", program.Same, 2))
		}},
		{"split bias on the whole", "bias: x is same, c is rows", 2, func(b *program.Builder) {
			b.Bias(in(b, "x", 4, 3), weight(b, "c", program.Rows, 3))
		}},
		{"partial into rope", "rope: y.1 is partial", 2, func(b *program.Builder) {
			y := b.Linear(colsOf(b), weight(b, "down", program.Cols, 16, 2))
			b.RoPE(y, b.Input("p", i32, 4), quad, program.Rope{Theta: 10})
		}},
		{"columns into the head", "head: y.0 is cols, w is rows", 2, func(b *program.Builder) {
			b.HeadLoss(colsOf(b), weight(b, "w", program.Rows, 5, 2), b.Input("l", i32, 4), nil)
		}},
		{"head split in columns", "head: x is same, w is cols", 2, func(b *program.Builder) {
			b.HeadLoss(in(b, "x", 4, 2), weight(b, "w", program.Cols, 5, 2), b.Input("l", i32, 4), nil)
		}},
		{"tokens and a split weight", "the gradient of w is partial, the parameter rows", 2, func(b *program.Builder) {
			y := b.Linear(in(b, "x", 4, 3), weight(b, "w", program.Rows, 2, 3))
			b.Seed(y, b.State("dy", f32, program.Rows, 4, 2))
		}},
	}
}

func shapeRefusals() []refusal {
	return []refusal{
		{"linear", "linear: got x f32[4 3], w f32[5 2], want [N,I], [O,I] of one type", 1, func(b *program.Builder) {
			b.Linear(in(b, "x", 4, 3), weight(b, "w", program.Same, 5, 2))
		}},
		{"linear of a vector", "linear: got x f32[3], w f32[5 3]", 1, func(b *program.Builder) {
			b.Linear(in(b, "x", 3), weight(b, "w", program.Same, 5, 3))
		}},
		{"linear of two types", "linear: got x f32[4 3], w bf16[5 3]", 1, func(b *program.Builder) {
			b.Linear(in(b, "x", 4, 3), b.Param("w", half.BF16, program.Same, 5, 3))
		}},
		{"bias", "bias: got x f32[4 3], c f32[4], want [N,O], [O] of one type", 1, func(b *program.Builder) {
			b.Bias(in(b, "x", 4, 3), weight(b, "c", program.Same, 4))
		}},
		{"norm", "rmsnorm: got x f32[4], w f32[4], want [N,D], [D]", 1, func(b *program.Builder) {
			b.RMSNorm(in(b, "x", 4), weight(b, "w", program.Same, 4), 0)
		}},
		{"embed", "embed: got w f32[4], i i32[2], want [V,D], [N]", 1, func(b *program.Builder) {
			b.Embed(weight(b, "w", program.Same, 4), b.Input("i", i32, 2))
		}},
		{"gradient of a temporary table", "embed: a gradient for x.0, which is no parameter", 1, func(b *program.Builder) {
			y := b.Embed(b.Scale(in(b, "x", 4, 2), 2), b.Input("i", i32, 2))
			b.Seed(y, in(b, "dy", 2, 2))
		}},
		{"odd gate", "swiglu: got x f32[4 3], want [N,2F]", 1, func(b *program.Builder) { b.SwiGLU(in(b, "x", 4, 3)) }},
		{"add", "add: got x f32[4 3] and z f32[3 4]", 1, func(b *program.Builder) {
			b.Add(in(b, "x", 4, 3), in(b, "z", 3, 4))
		}},
		{"add into", "add: got x f32[2] and z f64[2]", 1, func(b *program.Builder) {
			b.AddInto(b.State("x", f32, program.Same, 2), b.Input("z", half.F64, 2))
		}},
		{"cast into", "cast: got w f32[4] and x f32[3]", 1, func(b *program.Builder) {
			b.CastInto(weight(b, "w", program.Same, 4), in(b, "x", 3))
		}},
	}
}

func headsRefusals() []refusal {
	rope := func(h program.Heads, width, tokens int) func(b *program.Builder) {
		return func(b *program.Builder) {
			b.RoPE(in(b, "x", 4, width), b.Input("p", i32, tokens), h, program.Rope{Theta: 10})
		}
	}
	cached := func(shape []int, slots int) func(b *program.Builder) {
		return func(b *program.Builder) {
			cache := b.State("cache", f32, program.Same, shape...)
			b.CachedAttention(in(b, "x", 4, 16), cache, b.Input("s", i32, slots), b.Input("p", i32, 4), quad)
		}
	}
	return []refusal{
		{"odd head", "want H a multiple of G, K even", 1, rope(program.Heads{H: 2, G: 1, K: 3, T: 4}, 12, 4)},
		{"no group", "want H a multiple of G, K even", 1, rope(program.Heads{H: 3, G: 2, K: 2, T: 4}, 14, 4)},
		{"no heads", "want H a multiple of G, K even", 1, rope(program.Heads{}, 0, 4)},
		{"width", "rope: got x f32[4 15], want [N,(H+2G)K]", 1, rope(quad, 15, 4)},
		{"positions", "rope: got p i32[5] for x f32[4 16]", 1, rope(quad, 16, 5)},
		{"part of a row", "attention: x f32[6 16]: want rows of 4 tokens", 1, func(b *program.Builder) {
			b.Attention(in(b, "x", 6, 16), b.Input("p", i32, 6), quad)
		}},
		{"attention of rows", "attention: x is rows", 2, func(b *program.Builder) {
			b.Attention(b.State("x", f32, program.Rows, 4, 16), b.Input("p", i32, 4), quad)
		}},
		{"cache", "cached attention: got cache f32[2 4 7], want [slots,T,2GK]", 1, cached([]int{2, 4, 7}, 4)},
		{"short cache", "cached attention: got cache f32[2 3 8], want [slots,T,2GK]", 1, cached([]int{2, 3, 8}, 4)},
		{"flat cache", "cached attention: got cache f32[8 8], want [slots,T,2GK]", 1, cached([]int{8, 8}, 4)},
		{"slots", "cached attention: got s i32[3] for x f32[4 16]", 1, cached([]int{2, 4, 8}, 3)},
	}
}

func headRefusals() []refusal {
	top := func(k, V int) func(b *program.Builder) {
		return func(b *program.Builder) {
			b.HeadTop(in(b, "x", 4, 2), weight(b, "w", program.Rows, V, 2), in(b, "lse", 4), k)
		}
	}
	return []refusal{
		{"shapes", "head: got x f32[4 3], w f32[5 2], want [N,D], [V,D] of one type", 1, func(b *program.Builder) {
			b.HeadLoss(in(b, "x", 4, 3), weight(b, "w", program.Same, 5, 2), b.Input("l", i32, 4), nil)
		}},
		{"labels", "head loss: got l i32[3] for x f32[4 2]", 1, func(b *program.Builder) {
			b.HeadLoss(in(b, "x", 4, 2), weight(b, "w", program.Same, 5, 2), b.Input("l", i32, 3), nil)
		}},
		{"no top", "head top: 0 of 5 words", 1, top(0, 5)},
		{"more than all", "head top: 6 of 5 words", 1, top(6, 5)},
		{"more than all ranks'", "head top: 11 of 10 words", 2, top(11, 5)},
		{"words that f32 cannot number", "head top: 16777218 words: want at most 2²⁴", 2, top(1, 1<<23+1)},
	}
}

func collectiveRefusals() []refusal {
	return []refusal{
		{"reduced twice", "all-reduce: sum.0 is same, not partial", 2, func(b *program.Builder) {
			b.AllReduce(b.AllReduce(partialOf(b)))
		}},
		{"scattered after a sum", "reduce-scatter: sum.0 f32[4 3] is same, want partial, rows a multiple of 2", 2, func(b *program.Builder) {
			b.ReduceScatter(b.AllReduce(partialOf(b)))
		}},
		{"rows that do not divide", "is partial, want partial, rows a multiple of 3", 3, func(b *program.Builder) {
			b.ReduceScatter(partialOf(b))
		}},
		{"gathered whole", "all-gather: x is same, not rows", 2, func(b *program.Builder) { b.AllGather(in(b, "x", 4, 3)) }},
		{"copies", "sum copies: 3 does not divide the tensor degree", 4, func(b *program.Builder) {
			b.SumCopies(b.State("x", f32, program.Rows, 4), 0, 4, 3, false)
		}},
		{"no copies", "sum copies: 0 does not divide", 4, func(b *program.Builder) {
			b.SumCopies(b.State("x", f32, program.Rows, 4), 0, 4, 0, false)
		}},
		{"small shards", "shard sum: 2 shards of 3 do not hold x f32[7]", 1, func(b *program.Builder) {
			b.ShardSum(b.State("x", f32, program.Same, 7), 3)
		}},
		{"type of a shard", "publish: got x.0 f32[4] for w bf16[8]", 1, func(b *program.Builder) {
			b.UpdatePhase()
			b.Publish(b.Param("w", half.BF16, program.Same, 8), b.Scale(in(b, "s", 4), 1))
		}},
	}
}

func updateRefusals() []refusal {
	return []refusal{
		{"slot row", "sum of squares: row 2, leaves of 4 in zero.0 f64[2 1]", 1, func(b *program.Builder) {
			b.SumSquares(b.Zeros(2, 1), in(b, "x", 4), 2, 4, false, nil)
		}},
		{"leaf", "sum of squares: row 0, leaves of 0", 1, func(b *program.Builder) {
			b.SumSquares(b.Zeros(2, 1), in(b, "x", 4), 0, 0, false, nil)
		}},
		{"adamw", "adamw: got p f32[4], m f32[4], v f32[4], g f32[3]", 1, func(b *program.Builder) {
			s := func(name string, n int) *program.Value { return b.State(name, f32, program.Same, n) }
			one := in(b, "one", 1)
			b.UpdatePhase()
			b.AdamW(weight(b, "p", program.Same, 4), s("m", 4), s("v", 4), s("g", 3), one, one, one, program.Adam{}, program.Rounding{}, false)
		}},
	}
}

// TestLine: the line is that of the forward op, though its gradient rule is at
// fault, and it is the first of two.
func TestLine(t *testing.T) {
	b := program.New("test", program.Layout{Compute: f32})
	table := b.Scale(in(b, "x", 4, 2), 2)
	_, _, line, _ := runtime.Caller(0)
	y := b.Embed(table, b.Input("i", i32, 2)) // line+1
	b.Seed(y, in(b, "dy", 2, 2))
	b.Backward()
	b.SwiGLU(in(b, "odd", 1, 3))
	_, err := b.Build()
	if want := fmt.Sprintf("program: builder_test.go:%d: embed: ", line+1); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

// TestCheck: what no method of the builder would append.
func TestCheck(t *testing.T) {
	temp := func(name string) *program.Value { return &program.Value{Name: name, Shape: []int{1}} }
	held := func(name string, r program.Role) *program.Value {
		return &program.Value{Name: name, Role: r, Shape: []int{1}}
	}
	x, y := temp("x.0"), temp("y.0")
	vs := func(v ...*program.Value) []*program.Value { return v }
	tests := []struct {
		want   string
		values []*program.Value
		ops    []*program.Op
	}{
		{"", nil, []*program.Op{{Kind: program.OpZero, Out: vs(x)}, {Kind: program.OpScale, In: vs(x), Out: vs(y)}}},
		{"", nil, []*program.Op{{Kind: program.OpZero, Out: vs(x)}, {Kind: program.OpScale, In: vs(x), Out: vs(x)}}},
		{"program: p op 0 scale: reads x.0 before it is written", nil, []*program.Op{{Kind: program.OpScale, In: vs(x), Out: vs(y)}}},
		{"program: p op 0 scale: reads x.0 before it is written", nil, []*program.Op{{Kind: program.OpScale, In: vs(x), Out: vs(x)}}},
		{"program: p op 1 zero: writes x.0 again", nil, []*program.Op{{Kind: program.OpZero, Out: vs(x)}, {Kind: program.OpZero, Out: vs(x)}}},
		{"program: p op 0 zero: writes input i", nil, []*program.Op{{Kind: program.OpZero, Out: vs(held("i", program.Input)), Phase: program.Update}}},
		{"program: p op 0 zero: writes weight w", nil, []*program.Op{{Kind: program.OpZero, Out: vs(held("w", program.Weight)), Phase: program.Backward}}},
		{"", nil, []*program.Op{{Kind: program.OpZero, Out: vs(held("w", program.Weight)), Phase: program.Update}}},
		{"", nil, []*program.Op{{Kind: program.OpZero, Out: vs(held("s", program.State))}}},
		{"program: p: two values are called a", vs(held("a", program.Input), held("a", program.State)), nil},
		{"", vs(temp("a"), temp("a"), held("a", program.State)), nil},
	}
	for i, tt := range tests {
		p := &program.Program{Name: "p", Values: tt.values, Ops: tt.ops}
		got := ""
		if err := p.Check(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%d: got %q, want %q", i, got, tt.want)
		}
	}
}

// TestMixedGradients: a value that is the same on all ranks and feeds both a
// split weight and a residual collects a partial and a full gradient. They meet
// as full ones, whichever comes first, at the cost of one all-reduce.
func TestMixedGradients(t *testing.T) {
	for _, first := range []bool{true, false} {
		b := program.New("test", program.Layout{Mesh: program.Mesh{Tensor: 2}, Compute: f32, Sum: f32})
		x := b.Linear(in(b, "in", 4, 3), weight(b, "same", program.Same, 3, 3))
		up, down := weight(b, "up", program.Rows, 2, 3), weight(b, "down", program.Cols, 3, 2)
		var y *program.Value
		if first {
			branch := b.AllReduce(b.Linear(b.Linear(x, up), down))
			y = b.Add(b.Scale(x, 2), branch)
		} else {
			double := b.Scale(x, 2)
			y = b.Add(double, b.AllReduce(b.Linear(b.Linear(x, up), down)))
		}
		b.Seed(y, in(b, "dy", 4, 3))
		b.Backward()
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if n := count(p, program.OpAllReduce); n != 2 || b.Grad(x).Spread != program.Same {
			t.Errorf("branch first %v: %d all-reduces, gradient %v, want 2 and same", first, n, b.Grad(x).Spread)
		}
	}
}

// TestLateReduction: partial gradients of two branches are summed over ranks
// once, after they were added.
func TestLateReduction(t *testing.T) {
	b := program.New("test", program.Layout{Mesh: program.Mesh{Tensor: 2}, Compute: f32, Sum: f32})
	x := b.Linear(in(b, "in", 4, 3), weight(b, "same", program.Same, 3, 3))
	for _, name := range []string{"a", "b"} {
		y := b.Linear(x, weight(b, name, program.Rows, 2, 3))
		b.Seed(y, b.State("dy"+name, f32, program.Cols, 4, 2))
	}
	b.Backward()
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if n := count(p, program.OpAllReduce); n != 1 {
		t.Errorf("%d all-reduces, want 1", n)
	}
}

// TestOneRank: with one tensor rank every value is the same and collectives
// append nothing.
func TestOneRank(t *testing.T) {
	b := program.New("test", program.Layout{Compute: f32, Sum: f32})
	y := b.AllGather(b.ReduceScatter(b.AllReduce(partialOf(b))))
	b.SumOver(b.State("s", f32, program.Partial, 3), program.Data)
	p, err := b.Build(y)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Ops) != 2 {
		t.Errorf("%d ops, want 2", len(p.Ops))
	}
	for _, v := range p.Values {
		if v.Spread != program.Same {
			t.Errorf("%s is %v", v.Name, v.Spread)
		}
	}
}

func count(p *program.Program, k program.Kind) (n int) {
	for _, op := range p.Ops {
		if op.Kind == k {
			n++
		}
	}
	return n
}
