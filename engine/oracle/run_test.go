// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"testing"

	"pleach/half"
	"pleach/program"
)

// run is a program without a gradient whose result other loops know. build
// returns the values to look at; states are looked at by name.
type run struct {
	name  string
	mesh  program.Mesh
	build func(b *program.Builder) []*program.Value
	mem   func(at program.Place) map[string][]float64
	want  func(at program.Place) [][]float64 // of what build returned
	state map[string][]float64               // and of states, on every rank
}

func f64(b *program.Builder, name string, shape ...int) *program.Value {
	return b.Input(name, half.F64, shape...)
}

// on is the same memory on every rank.
func on(m map[string][]float64) func(program.Place) map[string][]float64 {
	return func(program.Place) map[string][]float64 { return m }
}

// flat makes up the operand of rank r.
func flat(r, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(100*r + i)
	}
	return x
}

func runs() []run {
	return slices.Concat(localRuns(), updateRuns(), tensorRuns(), dataRuns())
}

func localRuns() []run {
	return []run{
		{
			name: "zero",
			build: func(b *program.Builder) []*program.Value {
				b.Clear(b.State("s", half.F64, program.Same, 3))
				return []*program.Value{b.Zeros(2)}
			},
			mem:   on(map[string][]float64{"s": {1, 2, math.NaN()}}),
			want:  func(program.Place) [][]float64 { return [][]float64{{0, 0}} },
			state: map[string][]float64{"s": {0, 0, 0}},
		},
		{
			name: "add into, cast into",
			build: func(b *program.Builder) []*program.Value {
				b.UpdatePhase()
				x := b.State("x", half.F64, program.Same, 2)
				b.AddInto(x, f64(b, "z", 2))
				b.CastInto(b.Param("w", half.F32, program.Same, 2), x)
				return nil
			},
			mem:   on(map[string][]float64{"x": {1, 2}, "z": {10, 20}, "w": {7, 7}}),
			state: map[string][]float64{"x": {11, 22}, "w": {11, 22}},
		},
		{
			name: "embed of a temporary",
			build: func(b *program.Builder) []*program.Value {
				return []*program.Value{b.Embed(b.Scale(f64(b, "x", 3, 2), 2), b.Input("pick", half.I32, 2))}
			},
			mem:  on(map[string][]float64{"x": {1, 2, 3, 4, 5, 6}, "pick": {2, 0}}),
			want: func(program.Place) [][]float64 { return [][]float64{{10, 12, 2, 4}} },
		},
	}
}

func updateRuns() []run {
	weighted := []program.Run{{Lo: 0, Hi: 2, Weight: 1}, {Lo: 2, Hi: 5, Weight: 0.5}}
	return []run{
		{
			name: "sum of squares, leaves of 2",
			build: func(b *program.Builder) []*program.Value {
				slots := b.Zeros(2, 3)
				b.SumSquares(slots, f64(b, "x", 5), 1, 2, false, weighted)
				b.SumSquares(slots, f64(b, "y", 1), 1, 2, false, []program.Run{{Lo: 0, Hi: 1, Weight: 1}})
				return []*program.Value{slots}
			},
			mem:  on(map[string][]float64{"x": {1, 2, 3, 4, 5}, "y": {10}}),
			want: func(program.Place) [][]float64 { return [][]float64{{0, 0, 0, 1 + 4 + 100, 4.5 + 8, 12.5}} },
		},
		{
			name: "clip, adamw", // 1 of 2 tokens' gradient 6: norm 3, clipped to a half
			build: func(b *program.Builder) []*program.Value {
				b.UpdatePhase()
				report := b.Clip(f64(b, "slots", 1, 1), f64(b, "weights", 1, 1), f64(b, "tally", 2), f64(b, "apply", 1), 1.5)
				s := func(name string) *program.Value { return b.State(name, half.F64, program.Same, 1) }
				p := b.Param("p", half.F64, program.Same, 1)
				b.AdamW(p, s("m"), s("v"), s("g"), report, f64(b, "lr", 1), f64(b, "t", 1),
					program.Adam{Beta1: 0.5, Beta2: 0.75, Eps: 0.25, Decay: 0.1}, program.Rounding{}, false)
				return []*program.Value{report}
			},
			mem: on(map[string][]float64{
				"slots": {36}, "weights": {4}, "tally": {5, 2}, "apply": {1},
				"p": {2}, "m": {1}, "v": {0}, "g": {6}, "lr": {0.1}, "t": {2},
			}),
			want: func(program.Place) [][]float64 { return [][]float64{{1.5 / (3 + 1e-6) / 2, 3, 2.5, 2, 1, 2}} },
			state: func() map[string][]float64 {
				g := 1.5 / (3 + 1e-6) * 3
				m, v := 0.5+0.5*g, 0.25*g*g
				p := 2 - 0.1*(m/0.75/(math.Sqrt(v/0.4375)+0.25)+0.2)
				return map[string][]float64{"m": {m}, "v": {v}, "p": {p}}
			}(),
		},
	}
}

func tensorRuns() []run {
	mesh := program.Mesh{Tensor: 4}
	partial := func(b *program.Builder) *program.Value {
		return b.State("x", half.F64, program.Partial, 4, 2)
	}
	mem := func(at program.Place) map[string][]float64 {
		return map[string][]float64{"x": flat(at.Tensor, 8)}
	}
	total := make([]float64, 8)
	for i := range total {
		total[i] = 600 + 4*float64(i)
	}
	return []run{
		{
			name: "all-reduce, reduce-scatter, all-gather", mesh: mesh, mem: mem,
			build: func(b *program.Builder) []*program.Value {
				x := partial(b)
				part := b.ReduceScatter(x)
				return []*program.Value{b.AllReduce(x), part, b.AllGather(part)}
			},
			want: func(at program.Place) [][]float64 {
				return [][]float64{total, total[2*at.Tensor:][:2], total}
			},
		},
		{
			name: "sum over pairs of copies", mesh: mesh,
			build: func(b *program.Builder) []*program.Value {
				x := b.Add(partial(b), b.State("z", half.F64, program.Partial, 4, 2))
				b.SumCopies(x, 2, 5, 2, false)
				return []*program.Value{x}
			},
			mem: func(at program.Place) map[string][]float64 {
				return map[string][]float64{"x": flat(at.Tensor, 8), "z": make([]float64, 8)}
			},
			want: func(at program.Place) [][]float64 {
				x, other := flat(at.Tensor, 8), flat(at.Tensor^1, 8)
				for i := 2; i < 5; i++ {
					x[i] += other[i]
				}
				return [][]float64{x}
			},
		},
		{
			name: "embed of a split table", mesh: mesh,
			build: func(b *program.Builder) []*program.Value {
				y := b.Embed(b.Param("table", half.F64, program.Rows, 2, 1), b.Input("ids", half.I32, 3))
				return []*program.Value{y, b.AllReduce(y)}
			},
			mem: func(at program.Place) map[string][]float64 {
				return map[string][]float64{"table": {float64(10 + 2*at.Tensor), float64(11 + 2*at.Tensor)}, "ids": {7, 0, 3}}
			},
			want: func(at program.Place) [][]float64 {
				own := [][]float64{{0, 10, 0}, {0, 0, 13}, {0, 0, 0}, {17, 0, 0}}
				return [][]float64{own[at.Tensor], {17, 10, 13}}
			},
		},
	}
}

func dataRuns() []run {
	return []run{
		{
			name: "shards of 3 of 8", mesh: program.Mesh{Data: 3},
			build: func(b *program.Builder) []*program.Value {
				b.UpdatePhase()
				x, w := b.State("x", half.F64, program.Same, 8), b.Param("w", half.F64, program.Same, 8)
				sum, shard := b.ShardSum(x, 3), b.Shard(w, 3)
				slots := b.Zeros(1, 3)
				b.SumSquares(slots, shard, 0, 3, true, []program.Run{{Lo: 0, Hi: 8, Weight: 1}})
				b.Publish(w, b.Add(sum, shard))
				return []*program.Value{sum, shard, slots}
			},
			mem: func(at program.Place) map[string][]float64 {
				return map[string][]float64{"x": flat(at.Data, 8), "w": {1, 1, 1, 1, 1, 1, 1, 1}}
			},
			want: func(at program.Place) [][]float64 {
				sum := [][]float64{{300, 303, 306}, {309, 312, 315}, {318, 321, 0}}
				own := [][]float64{{1, 1, 1}, {1, 1, 1}, {1, 1, 0}}
				slots := [][]float64{{3, 0, 0}, {0, 3, 0}, {0, 0, 2}}
				return [][]float64{sum[at.Data], own[at.Data], slots[at.Data]}
			},
			state: map[string][]float64{"w": {301, 304, 307, 310, 313, 316, 319, 322}},
		},
		{
			name: "copies within a shard", mesh: program.Mesh{Data: 2, Tensor: 2},
			build: func(b *program.Builder) []*program.Value {
				x := b.Shard(b.State("x", half.F64, program.Rows, 6), 3)
				b.SumCopies(x, 2, 4, 2, true) // the last of shard 0, the first of shard 1
				b.SumCopies(x, 4, 6, 2, true) // none of shard 0
				return []*program.Value{x}
			},
			mem: func(at program.Place) map[string][]float64 {
				return map[string][]float64{"x": flat(at.Tensor, 6)}
			},
			want: func(at program.Place) [][]float64 {
				x := flat(at.Tensor, 6)
				for i := 2; i < 6; i++ {
					x[i] = 100 + 2*float64(i)
				}
				return [][]float64{x[3*at.Data:][:3]}
			},
		},
		{
			name: "sums over pipe and ends", mesh: program.Mesh{Pipe: 2, Data: 2},
			build: func(b *program.Builder) []*program.Value {
				b.SumOver(b.State("x", half.F64, program.Same, 2), program.Pipe)
				b.SumOver(b.State("y", half.F64, program.Same, 2), program.Ends)
				return nil
			},
			mem: func(at program.Place) map[string][]float64 {
				return map[string][]float64{"x": flat(at.Pipe, 2), "y": flat(at.Pipe, 2)}
			},
			state: map[string][]float64{"x": {100, 102}, "y": {100, 102}},
		},
	}
}

// TestRuns: ops that have no gradient give what other loops say.
func TestRuns(t *testing.T) {
	for _, r := range runs() {
		t.Run(r.name, func(t *testing.T) {
			prog, outs := buildRun(t, r)
			everyRank(prog.Mesh, r.mem, func(k *Rank) {
				f := Heap{}
				k.Run(prog, program.Whole, f)
				for i, v := range outs {
					wantNear(t, fmt.Sprintf("%+v: %s", k.At, v.Name), f.At(v), r.want(k.At)[i], 1e-15)
				}
				for name, want := range r.state {
					wantNear(t, fmt.Sprintf("%+v: %s", k.At, name), k.Mem[name], want, 1e-15)
				}
			})
		})
	}
}

func buildRun(t *testing.T, r run) (*program.Program, []*program.Value) {
	t.Helper()
	b := program.New(r.name, program.Layout{Mesh: r.mesh})
	outs := r.build(b)
	prog, err := b.Build(outs...)
	if err != nil {
		t.Fatal(err)
	}
	return prog, outs
}

// everyRank calls f for every rank of a mesh, all at once, with a copy of its
// memory.
func everyRank(m program.Mesh, mem func(program.Place) map[string][]float64, f func(*Rank)) {
	world := NewWorld(m, 1)
	var all sync.WaitGroup
	for p := range m.Size(program.Pipe) {
		for d := range m.Size(program.Data) {
			for i := range m.Size(program.Tensor) {
				at := program.Place{Data: d, Pipe: p, Tensor: i}
				own := map[string][]float64{}
				for name, x := range mem(at) {
					own[name] = slices.Clone(x)
				}
				all.Go(func() { f(&Rank{World: world, At: at, Mem: own}) })
			}
		}
	}
	all.Wait()
}

func wantNear(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
		return
	}
	for i := range got {
		if !(got[i] == want[i] || math.Abs(got[i]-want[i]) <= tol*(1+math.Abs(want[i]))) {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

// TestSendRecv: what a stage sends arrives at the next, and the gradient comes
// back; stages have programs of their own.
func TestSendRecv(t *testing.T) {
	first, second := stagePrograms(t)
	mem := func(program.Place) map[string][]float64 {
		return map[string][]float64{"w": {3, -2}, "dw": {0, 0}, "ids": {1, 0}, "dy": {10, 20}}
	}
	everyRank(first.Mesh, mem, func(k *Rank) {
		f, p := Heap{}, []*program.Program{first, second}[k.At.Pipe]
		k.Run(p, program.Whole, f)
		if k.At.Pipe == 0 {
			wantNear(t, "dw", k.Mem["dw"], []float64{40, 20}, 0)
		} else {
			wantNear(t, "y", f.At(p.Outputs[0]), []float64{-4, 6}, 0)
		}
	})
}

func stagePrograms(t *testing.T) (first, second *program.Program) {
	t.Helper()
	l := program.Layout{Mesh: program.Mesh{Pipe: 2}}
	b := program.New("first", l)
	b.Send(b.Embed(b.Param("w", half.F64, program.Same, 2, 1), b.Input("ids", half.I32, 2)))
	b.Backward()
	first, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	b = program.New("second", l)
	y := b.Scale(b.Recv(program.Same, 2, 1), 2)
	b.Seed(y, b.Input("dy", half.F64, 2, 1))
	b.Backward()
	second, err = b.Build(y)
	if err != nil {
		t.Fatal(err)
	}
	return first, second
}

// topProgram is the k most probable words of 6 tokens of width 2 out of V.
func topProgram(t *testing.T, tensor, V, k int) *program.Program {
	t.Helper()
	b := program.New("top", program.Layout{Mesh: program.Mesh{Tensor: tensor}})
	x, w := b.Input("x", half.F64, 6, 2), b.Param("w", half.F64, program.Rows, V/tensor, 2)
	_, lse := b.HeadLoss(x, w, b.Input("labels", half.I32, 6), nil)
	prog, err := b.Build(b.HeadTop(x, w, lse, k))
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// TestTop compares the most probable words with a sort of all, ties to the
// lowest word, on one rank and with the vocabulary split.
func TestTop(t *testing.T) {
	const V = 16
	rng := rand.New(rand.NewPCG(3, 3))
	x, w := make([]float64, 12), make([]float64, 2*V)
	for i := range x {
		x[i] = float64(rng.IntN(5) - 2) // small integers: many ties
	}
	for i := range w {
		w[i] = float64(rng.IntN(5) - 2)
	}
	clear(x[:2]) // all words tie
	for _, tensor := range []int{1, 2, 4} {
		for _, k := range []int{1, 3, 7, V} { // 7 is more than a quarter
			prog := topProgram(t, tensor, V, k)
			want := sortedTop(x, w, k)
			mem := func(at program.Place) map[string][]float64 {
				n := len(w) / tensor
				return map[string][]float64{"x": x, "w": w[at.Tensor*n:][:n], "labels": make([]float64, 6)}
			}
			everyRank(prog.Mesh, mem, func(r *Rank) {
				f := Heap{}
				r.Run(prog, program.Whole, f)
				wantNear(t, fmt.Sprintf("tensor %d, top %d", tensor, k), f.At(prog.Outputs[0]), want, 1e-14)
			})
		}
	}
}

func sortedTop(x, w []float64, k int) (top []float64) {
	V := len(w) / 2
	for n := 0; n < len(x); n += 2 {
		z, order, sum := make([]float64, V), make([]int, V), 0.0
		for v := range V {
			z[v], order[v] = x[n]*w[2*v]+x[n+1]*w[2*v+1], v
			sum += math.Exp(z[v])
		}
		sort.SliceStable(order, func(i, j int) bool { return z[order[i]] > z[order[j]] })
		for _, v := range order[:k] {
			top = append(top, float64(v), z[v]-math.Log(sum))
		}
	}
	return top
}

// cacheProgram is CachedAttention of N tokens with 3 slots of 6.
func cacheProgram(t *testing.T, h program.Heads, N int) *program.Program {
	t.Helper()
	b := program.New("cached", program.Layout{})
	cache := b.State("cache", half.F64, program.Same, 3, h.T, 2*h.G*h.K)
	slots, positions := b.Input("slots", half.I32, N), b.Input("positions", half.I32, N)
	qkv := b.Scale(b.Input("qkv", half.F64, N, h.Width()), 1)
	prog, err := b.Build(b.CachedAttention(qkv, cache, slots, positions, h))
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// TestCachedAttention: two sequences in two slots, of different lengths, give
// what Attention gives on each whole, whether they come at once, token by
// token, or a part and then the rest.
func TestCachedAttention(t *testing.T) {
	h := program.Heads{H: 4, G: 2, K: 2, T: 6}
	rng := rand.New(rand.NewPCG(8, 1))
	type token struct {
		slot, position int
		qkv, want      []float64
	}
	var all []token
	for slot, length := range map[int]int{2: 6, 0: 4} {
		qkv := normal(rng, 6*h.Width())
		want := wholeAttention(t, h, qkv)
		for n := range length {
			all = append(all, token{slot, n, qkv[n*h.Width():][:h.Width()], want[n*h.H*h.K:][:h.H*h.K]})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].position < all[j].position }) // slots take turns
	n := len(all)
	for name, cuts := range map[string][]int{
		"at once": {0, n}, "token by token": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "part and rest": {0, 5, n},
		"last first": {0, n},
	} {
		all := slices.Clone(all)
		if name == "last first" {
			slices.Reverse(all)
		}
		cache := slices.Repeat([]float64{math.NaN()}, 3*h.T*2*h.G*h.K) // what nobody wrote is not read
		for i := range len(cuts) - 1 {
			mem := map[string][]float64{"cache": cache}
			batch := all[cuts[i]:cuts[i+1]]
			for _, k := range batch {
				mem["qkv"] = append(mem["qkv"], k.qkv...)
				mem["slots"] = append(mem["slots"], float64(k.slot))
				mem["positions"] = append(mem["positions"], float64(k.position))
			}
			prog := cacheProgram(t, h, len(batch))
			f := Heap{}
			(&Rank{World: NewWorld(prog.Mesh, 1), Mem: mem}).Run(prog, program.Whole, f)
			for j, k := range batch {
				got := f.At(prog.Outputs[0])[j*h.H*h.K:][:h.H*h.K]
				wantNear(t, fmt.Sprintf("%s: slot %d position %d", name, k.slot, k.position), got, k.want, 0)
			}
		}
	}
}

// wholeAttention is Attention over one row.
func wholeAttention(t *testing.T, h program.Heads, qkv []float64) []float64 {
	t.Helper()
	b := program.New("whole", program.Layout{})
	prog, err := b.Build(b.Attention(b.Input("qkv", half.F64, h.T, h.Width()), b.Input("positions", half.I32, h.T), h))
	if err != nil {
		t.Fatal(err)
	}
	f := Heap{}
	mem := map[string][]float64{"qkv": qkv, "positions": {0, 1, 2, 3, 4, 5}}
	(&Rank{World: NewWorld(prog.Mesh, 1), Mem: mem}).Run(prog, program.Whole, f)
	return f.At(prog.Outputs[0])
}

// TestDocuments: attention whose positions restart is attention over each
// document alone.
func TestDocuments(t *testing.T) {
	h := program.Heads{H: 2, G: 1, K: 4, T: 6}
	qkv := normal(rand.New(rand.NewPCG(4, 4)), 6*h.Width())
	b := program.New("documents", program.Layout{})
	prog, err := b.Build(b.Attention(b.Input("qkv", half.F64, 6, h.Width()), b.Input("positions", half.I32, 6), h))
	if err != nil {
		t.Fatal(err)
	}
	f := Heap{}
	mem := map[string][]float64{"qkv": qkv, "positions": {0, 1, 0, 1, 2, 0}}
	(&Rank{World: NewWorld(prog.Mesh, 1), Mem: mem}).Run(prog, program.Whole, f)
	var want []float64
	for _, doc := range [][2]int{{0, 2}, {2, 5}, {5, 6}} {
		alone := make([]float64, len(qkv)) // moved to the start of a row
		copy(alone, qkv[doc[0]*h.Width():doc[1]*h.Width()])
		want = append(want, wholeAttention(t, h, alone)[:(doc[1]-doc[0])*h.H*h.K]...)
	}
	wantNear(t, "documents", f.At(prog.Outputs[0]), want, 0)
}

// TestComplete fails when a kind has no line in the oracle.
func TestComplete(t *testing.T) {
	for k, f := range ops {
		if f == nil {
			t.Errorf("no %v", program.Kind(k))
		}
	}
}

// TestCovered fails when no test of this package runs a kind of op.
func TestCovered(t *testing.T) {
	h := program.Heads{H: 2, G: 1, K: 2, T: 6}
	first, second := stagePrograms(t)
	programs := []*program.Program{first, second, topProgram(t, 2, 16, 3), cacheProgram(t, h, 2)}
	for _, p := range probes() {
		programs = append(programs, newBench(t, p, 0).prog)
	}
	for _, r := range runs() {
		p, _ := buildRun(t, r)
		programs = append(programs, p)
	}
	seen := map[program.Kind]bool{}
	for _, p := range programs {
		for _, op := range p.Ops {
			seen[op.Kind] = true
		}
	}
	for k := range program.Kind(program.Kinds) {
		if !seen[k] {
			t.Errorf("%v is in no test", k)
		}
	}
}

// TestTreeSum: ranks that sum what they own first give the bits of the whole
// tree, and a plain sum does not.
func TestTreeSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	parts := make([][]float64, 16)
	for i := range parts {
		parts[i] = normal(rng, 200)
	}
	want := treeSum(parts)
	for _, ranks := range []int{1, 2, 4, 8, 16} {
		owned := make([][][]float64, ranks)
		for c, p := range parts {
			owned[c%ranks] = append(owned[c%ranks], p)
		}
		var sums [][]float64
		for _, ps := range owned {
			sums = append(sums, treeSum(ps))
		}
		if !slices.Equal(treeSum(sums), want) {
			t.Errorf("%d ranks: other bits", ranks)
		}
	}
	plain := make([]float64, 200)
	for _, p := range parts {
		axpy(plain, 1, p)
	}
	wantNear(t, "plain sum", plain, want, 1e-13)
	if slices.Equal(plain, want) {
		t.Error("a plain sum has the same bits: the test sees nothing")
	}
}
