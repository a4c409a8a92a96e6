// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pleach/half"
	"pleach/program"
)

// probe is an op whose gradient is under test. build appends it to weights of
// the given shapes and returns its output, nil if it adds to the tally.
type probe struct {
	name   string
	shapes [][]int
	build  func(b *program.Builder, x []*program.Value) *program.Value
}

// The inputs of probes: 10 tokens in 2 rows of 5.
var (
	probeHeads  = program.Heads{H: 4, G: 2, K: 4, T: 5}
	probeInputs = map[string][]float64{
		"ids":       {2, 0, 6, 2, 2, 1, 3, 3, 5, 4},
		"labels":    {1, -1, 6, 0, 3, 3, -1, 2, 2, 5},
		"positions": {0, 1, 0, 0, 1, 0, 1, 2, 3, 4}, // restart within the first row
	}
	llama3 = program.Rope{
		Theta: 50, Scaling: program.Llama3Scaling, Factor: 8, LowFreq: 1, HighFreq: 3, Original: 24,
	}
)

func ints(b *program.Builder, name string) *program.Value {
	return b.Input(name, half.I32, len(probeInputs[name]))
}

func ropeProbe(name string, r program.Rope) probe {
	return probe{name, [][]int{{10, 32}}, func(b *program.Builder, x []*program.Value) *program.Value {
		return b.RoPE(x[0], ints(b, "positions"), probeHeads, r)
	}}
}

func attentionProbe(name string, h program.Heads) probe {
	return probe{name, [][]int{{10, h.Width()}}, func(b *program.Builder, x []*program.Value) *program.Value {
		return b.Attention(x[0], ints(b, "positions"), h)
	}}
}

func probes() []probe {
	return []probe{
		{"embed", [][]int{{7, 3}}, func(b *program.Builder, x []*program.Value) *program.Value {
			return b.Embed(x[0], ints(b, "ids")) // 2 and 3 occur more than once
		}},
		{"linear", [][]int{{10, 3}, {5, 3}}, func(b *program.Builder, x []*program.Value) *program.Value {
			return b.Linear(x[0], x[1])
		}},
		{"bias", [][]int{{10, 3}, {3}}, func(b *program.Builder, x []*program.Value) *program.Value {
			return b.Bias(x[0], x[1])
		}},
		{"linear, bias", [][]int{{10, 3}, {4, 3}, {4}}, func(b *program.Builder, x []*program.Value) *program.Value {
			return b.Bias(b.Linear(x[0], x[1]), x[2])
		}},
		{"rmsnorm", [][]int{{10, 6}, {6}}, func(b *program.Builder, x []*program.Value) *program.Value {
			return b.RMSNorm(x[0], x[1], 0.01)
		}},
		ropeProbe("rope", program.Rope{Theta: 50}),
		ropeProbe("rope linear", program.Rope{Theta: 50, Scaling: program.LinearScaling, Factor: 3}),
		ropeProbe("rope llama3", llama3),
		attentionProbe("attention", program.Heads{H: 4, G: 4, K: 2, T: 5}),
		attentionProbe("attention grouped", probeHeads),
		attentionProbe("attention multi-query", program.Heads{H: 3, G: 1, K: 6, T: 5}),
		{"swiglu", [][]int{{10, 6}}, func(b *program.Builder, x []*program.Value) *program.Value {
			return b.SwiGLU(x[0])
		}},
		{"add, fan-out", [][]int{{10, 3}, {10, 3}}, func(b *program.Builder, x []*program.Value) *program.Value {
			return b.Add(b.Add(x[0], x[1]), b.Add(x[0], x[0]))
		}},
		{"scale, cast", [][]int{{10, 3}}, func(b *program.Builder, x []*program.Value) *program.Value {
			return b.Cast(b.Cast(b.Scale(x[0], -1.5), half.F32), half.F64)
		}},
		{"head", [][]int{{10, 4}, {7, 4}}, func(b *program.Builder, x []*program.Value) *program.Value {
			b.HeadLoss(x[0], x[1], ints(b, "labels"), b.Tally())
			return nil
		}},
		{"tied", [][]int{{7, 4}}, func(b *program.Builder, x []*program.Value) *program.Value {
			b.HeadLoss(b.Embed(x[0], ints(b, "ids")), x[0], ints(b, "labels"), b.Tally())
			return nil
		}},
	}
}

// TestGradients compares the gradient rule of every op with central
// differences of f(x) = Σ_i dy[i]·y(x)[i], of the loss sum for heads.
func TestGradients(t *testing.T) {
	for _, p := range probes() {
		t.Run(p.name, func(t *testing.T) {
			for seed := range uint64(3) {
				newBench(t, p, seed).check(t)
			}
		})
	}
}

// bench is a probe ready to run.
type bench struct {
	prog  *program.Program
	xs    []*program.Value
	grads []*program.Value // of xs, nil where it is only in the sum
	y     *program.Value
	rank  *Rank
}

func newBench(t *testing.T, p probe, seed uint64) *bench {
	t.Helper()
	b := program.New(p.name, program.Layout{})
	k := &bench{}
	for i, shape := range p.shapes {
		k.xs = append(k.xs, b.Param(string(rune('a'+i)), half.F64, program.Same, shape...))
	}
	k.y = p.build(b, k.xs)
	var outs []*program.Value
	if k.y != nil {
		b.Seed(k.y, b.Input("dy", half.F64, k.y.Shape...))
		outs = append(outs, k.y)
	}
	b.Backward()
	for _, x := range k.xs {
		g := b.Grad(x)
		k.grads = append(k.grads, g)
		if g != nil {
			outs = append(outs, g)
		}
	}
	var err error
	if k.prog, err = b.Build(outs...); err != nil {
		t.Fatal(err)
	}
	k.rank = &Rank{World: NewWorld(k.prog.Mesh, 1), Mem: maps.Clone(probeInputs)}
	rng := rand.New(rand.NewPCG(seed, 5))
	for _, v := range k.prog.Values {
		if v.Role != program.Temp && k.rank.Mem[v.Name] == nil {
			k.rank.Mem[v.Name] = normal(rng, v.Len()) // sums too: gradient ops must add
		}
	}
	return k
}

func normal(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

// value is f at the present weights.
func (k *bench) value() float64 {
	tally := []float64{0, 0}
	k.rank.Mem["tally"] = tally
	f := Heap{}
	k.rank.Run(k.prog, program.Fore, f)
	if k.y == nil {
		return tally[0]
	}
	return dot(f.At(k.y), k.rank.Mem["dy"])
}

func (k *bench) check(t *testing.T) {
	t.Helper()
	before := map[string][]float64{}
	for name, x := range k.rank.Mem {
		before[name] = slices.Clone(x)
	}
	f := Heap{}
	k.rank.Run(k.prog, program.Whole, f)
	for i, x := range k.xs {
		got := make([]float64, x.Len())
		if k.grads[i] != nil {
			copy(got, k.rank.slice(k.grads[i], f)) // may be the input dy
		}
		for e := range k.rank.Mem["d"+x.Name] {
			for _, sum := range []string{"d" + x.Name, "d" + x.Name + program.HeadSum} {
				if k.rank.Mem[sum] != nil {
					got[e] += k.rank.Mem[sum][e] - before[sum][e]
				}
			}
		}
		for e, g := range got {
			want := slope(k.value, &k.rank.Mem[x.Name][e])
			if !(math.Abs(g-want) <= 1e-7*(1+math.Abs(want))) {
				t.Fatalf("d%s[%d] = %.10g, differences give %.10g", x.Name, e, g, want)
			}
		}
	}
}

// slope is df/dx by central differences, extrapolated once: the error is of
// fourth order in the step.
func slope(f func() float64, x *float64) float64 {
	at := *x
	central := func(h float64) float64 {
		*x = at + h
		hi := f()
		*x = at - h
		lo := f()
		return (hi - lo) / (2 * h)
	}
	wide, close := central(2e-3), central(1e-3)
	*x = at
	return (4*close - wide) / 3
}

// TestInPlace: on planned memory, where outputs take over operands that die,
// every op gives the bits that it gives in memory of its own.
func TestInPlace(t *testing.T) {
	seen := map[program.Kind]bool{}
	for _, p := range probes() {
		if slices.Contains([]string{"embed", "linear", "linear, bias", "scale, cast", "head", "tied"}, p.name) {
			continue // none of theirs works in place; an Arena is all float64
		}
		build := p.build
		p.build = func(b *program.Builder, x []*program.Value) *program.Value {
			temps := slices.Clone(x)
			for i, v := range x {
				if len(v.Shape) == 2 { // not weights: something that can die, and is made in place
					temps[i] = b.Scale(b.Scale(v, 0.5), 2)
				}
			}
			return build(b, temps)
		}
		apart, planned := newBench(t, p, 1), newBench(t, p, 1)
		plan := program.MakePlan(planned.prog, 1)
		h, a := Heap{}, NewArena(plan).Slot(0)
		apart.rank.Run(apart.prog, program.Whole, h)
		planned.rank.Run(planned.prog, program.Whole, a)
		for i, v := range apart.prog.Outputs {
			if v.Role == program.Temp && !slices.Equal(h.At(v), a.At(planned.prog.Outputs[i])) {
				t.Errorf("%s: %s differs in place", p.name, v.Name)
			}
		}
		for name, x := range apart.rank.Mem {
			if !slices.Equal(x, planned.rank.Mem[name]) {
				t.Errorf("%s: %s differs in place", p.name, name)
			}
		}
		for _, op := range planned.prog.Ops {
			for _, x := range op.In {
				if y := op.Out[0]; x != y && x.Role == program.Temp && y.Role == program.Temp && plan.Spots[x] == plan.Spots[y] {
					seen[op.Kind] = true
				}
			}
		}
	}
	// Not rmsnorm, whose gradient reads x; it works in place in model's Score.
	for _, k := range []program.Kind{
		program.OpBias, program.OpRMSNormGrad, program.OpRoPE, program.OpSwiGLUGrad, program.OpAdd, program.OpScale,
	} {
		if !seen[k] {
			t.Errorf("%v never works in place here", k)
		}
	}
}
