// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pleach/engine"
	"pleach/half"
	"pleach/program"
)

// draw is one program with random shapes, and what is in its inputs, weights
// and states before a run.
type draw struct {
	*rand.Rand
	b      *program.Builder
	p      *program.Program
	kind   half.DType
	n      int // number of the draw
	data   map[string]program.Array
	outs   []*program.Value
	policy program.Policy
}

// draw makes the program of a case.
func (s *suite) draw(t *testing.T, c opCase, n uint64) *draw {
	t.Helper()
	d := s.begin(c.name, n, program.KeepAll)
	c.build(d)
	p, err := d.b.Build(d.outs...)
	if err != nil {
		t.Fatal(err)
	}
	d.p = p
	d.complete()
	return d
}

func (s *suite) begin(name string, n uint64, policy program.Policy) *draw {
	return &draw{
		Rand: rand.New(rand.NewPCG(s.seed, n)), kind: s.kind, n: int(n % 100), policy: policy,
		b:    program.New(name, program.Layout{Compute: s.kind, Sum: half.F32, Recompute: policy}),
		data: map[string]program.Array{},
	}
}

// complete puts noise into the weights and states that the case has not filled,
// so that an op which writes where it should add is seen.
func (d *draw) complete() {
	for _, r := range []program.Role{program.Weight, program.State} {
		for _, v := range d.p.Held(r) {
			if _, ok := d.data[v.Name]; !ok {
				d.noise(v)
			}
		}
	}
}

// size is a dimension: the largest in the first draw, one in the second.
func (d *draw) size() int { return d.upTo(130) }

func (d *draw) upTo(most int) int {
	switch d.n {
	case 0:
		return most
	case 1:
		return 1
	}
	all := []int{1, 2, 3, 4, 5, 7, 11, 16, 17, 31, 33, 61, 64, 65, 67, 127, 128, 130}
	for {
		if n := all[d.IntN(len(all))]; n <= most {
			return n
		}
	}
}

// words is the size of a vocabulary, width that of a row.
func (d *draw) words() int { return []int{700, 2, 1, 257, 512, 61, 300, 699}[d.n%8] }
func (d *draw) width() int { return d.upTo(65) }

// noise fills v with normal numbers.
func (d *draw) noise(v *program.Value) {
	a := program.NewArray(v)
	d.fill(a, func(int) float64 { return d.NormFloat64() })
	d.data[v.Name] = a
}

func (d *draw) fill(a program.Array, f func(i int) float64) {
	switch a.Type {
	case half.F32:
		for i := range program.View[float32](a) {
			program.View[float32](a)[i] = float32(f(i))
		}
	case half.I32:
		for i := range program.View[int32](a) {
			program.View[int32](a)[i] = int32(f(i))
		}
	case half.BF16:
		x := program.View[uint16](a)
		for i := range x {
			half.FromF32(a.Bytes[2*i:2*i+2], half.BF16, []float32{float32(f(i))})
		}
	case half.I8:
		for i := range program.View[int8](a) {
			program.View[int8](a)[i] = int8(f(i))
		}
	default:
		for i := range program.View[float64](a) {
			program.View[float64](a)[i] = f(i)
		}
	}
}

// values fills v with f of the index.
func (d *draw) values(v *program.Value, f func(i int) float64) *program.Value {
	a := program.NewArray(v)
	d.fill(a, f)
	d.data[v.Name] = a
	return v
}

// input is noise that comes from outside.
func (d *draw) input(name string, shape ...int) *program.Value {
	v := d.b.Input(name, d.kind, shape...)
	d.noise(v)
	return v
}

// temp is noise in a temporary, whose gradient can be asked for.
func (d *draw) temp(name string, shape ...int) *program.Value {
	return d.b.Scale(d.input(name, shape...), 1)
}

func (d *draw) weight(name string, shape ...int) *program.Value {
	return d.b.Param(name, d.kind, program.Same, shape...)
}

// weight8 is weights of int8: all numbers, with scales that make them as large as
// noise.
func (d *draw) weight8(name string, O, I int) *program.Value {
	w := d.b.Int8(name, program.Same, O, I)
	a := program.NewArray(w)
	d.fill(a, func(int) float64 { return float64(d.IntN(255) - 127) })
	s := program.NewArray(&program.Value{Type: half.F32, Shape: []int{O}})
	d.fill(s, func(int) float64 { return d.NormFloat64() / 64 })
	d.data[name], d.data[name+program.Scale] = a, s
	return w
}

// sum is a state in the type of sums.
func (d *draw) sum(name string, shape ...int) *program.Value {
	return d.b.State(name, half.F32, program.Same, shape...)
}

// ints is n integers in [lo,hi).
func (d *draw) ints(name string, n, lo, hi int) *program.Value {
	return d.values(d.b.Input(name, half.I32, n), func(int) float64 { return float64(lo + d.IntN(hi-lo)) })
}

// labels is n words below V, some masked: all of them in the third draw.
func (d *draw) labels(n, V int) *program.Value {
	return d.values(d.b.Input("labels", half.I32, n), func(int) float64 {
		if d.n == 2 || d.IntN(5) == 0 {
			return float64(-1 - d.IntN(2)*99)
		}
		return float64(d.IntN(V))
	})
}

// documents is positions in B rows of T tokens that restart at random; in the
// first draw never.
func (d *draw) documents(B, T int) *program.Value {
	p := 0
	return d.values(d.b.Input("positions", half.I32, B*T), func(i int) float64 {
		if i%T == 0 || d.n > 0 && d.IntN(9) == 0 {
			p = -1
		}
		p++
		return float64(p)
	})
}

// heads is a random grouping of heads.
func (d *draw) heads(T int) program.Heads {
	G, K := []int{1, 2, 3}[d.IntN(3)], []int{2, 6, 8, 16, 34, 64}[d.IntN(6)]
	return program.Heads{H: G * []int{1, 2, 4}[d.IntN(3)], G: G, K: K, T: T}
}

// scalar is an input of one float64.
func (d *draw) scalar(name string, x float64) *program.Value {
	return d.values(d.b.Input(name, half.F64, 1), func(int) float64 { return x })
}

// out makes values outputs of the program.
func (d *draw) out(vs ...*program.Value) { d.outs = append(d.outs, vs...) }

// backward seeds the gradient of y with noise, and makes the gradients of xs
// outputs. y itself is one in half of the draws: where it is not, it may be
// written over.
func (d *draw) backward(y *program.Value, xs ...*program.Value) {
	if d.n%2 == 0 {
		d.out(y)
	}
	d.b.Seed(y, d.input("seed", y.Shape...))
	d.b.Backward()
	for _, x := range xs {
		d.out(d.b.Grad(x))
	}
}

// shapes describes the program's operands for a message.
func (d *draw) shapes() (s []string) {
	for _, v := range d.p.Values {
		if v.Role != program.Temp {
			s = append(s, v.String())
		}
	}
	return s
}

// run compiles the program, sets all states and runs it whole.
func (d *draw) run(t *testing.T, e engine.Engine) results {
	t.Helper()
	x, err := e.Compile(d.p, 1)
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, e)
	c := d.call()
	d.exec(t, x, c)
	return append(d.outputs(c), d.read(t, e)...)
}

func (d *draw) exec(t *testing.T, x engine.Executable, c *engine.Call) {
	t.Helper()
	if p, ok := x.(interface{ Poison(c *engine.Call) }); ok {
		p.Poison(c)
	}
	if err := x.Run(c).Wait(); err != nil {
		t.Fatalf("%v: %v", d.shapes(), err)
	}
}

// call is a call with the drawn inputs. Outputs start as garbage.
func (d *draw) call() *engine.Call {
	c := engine.NewCall(d.p)
	for i, v := range d.p.Held(program.Input) {
		copy(c.In[i].Bytes, d.data[v.Name].Bytes)
	}
	for _, a := range c.Out {
		garbage(a)
	}
	return c
}

func garbage(a program.Array) {
	for i := range a.Bytes {
		a.Bytes[i] = 0xa5
	}
}

// write sets all weights and states to the drawn ones.
func (d *draw) write(t *testing.T, e engine.Engine) {
	t.Helper()
	for _, v := range d.held() {
		if err := e.Write(program.Place{}, v.Name, 0, d.data[v.Name]); err != nil {
			t.Fatal(err)
		}
	}
}

// read is all weights and states.
func (d *draw) read(t *testing.T, e engine.Engine) (r results) {
	t.Helper()
	for _, v := range d.held() {
		a := program.NewArray(v)
		garbage(a)
		if err := e.Read(program.Place{}, v.Name, 0, a); err != nil {
			t.Fatal(err)
		}
		r = append(r, result{v.Name, a})
	}
	return r
}

func (d *draw) held() []*program.Value {
	return append(d.p.Held(program.Weight), d.p.Held(program.State)...)
}

func (d *draw) outputs(c *engine.Call) (r results) {
	for i, a := range c.Out {
		r = append(r, result{fmt.Sprintf("output %d, %s", i, d.p.Outputs[i].Name), a})
	}
	return r
}
