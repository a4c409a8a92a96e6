// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/engine/oracle"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
)

// odd is a small model in which no size is a multiple of a tile.
var odd = model.Spec{
	L: 2, D: 42, H: 6, G: 3, K: 14, F: 50, V: 131, MaxT: 67, Eps: 1e-5,
	Rope: program.Rope{Theta: 10_000}, Tied: true, AttnBias: true, MLPBias: true,
}

// fast is how programs of float32 are laid out.
var fast = optim.F32.Layout()

// precisions are those with programs of their own: float32, a master copy, and
// stochastic rounding. Plain bf16 is the last of them with another attribute.
var precisions = []optim.Precision{optim.F32, optim.Mixed, optim.BF16SR}

// laidOut is a precision with a policy of recomputation.
type laidOut struct {
	in     optim.Precision
	policy program.Policy
}

func (o laidOut) layout() program.Layout {
	l := o.in.Layout()
	l.Recompute = o.policy
	return l
}

var adam = optim.AdamW{
	Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Clip: 0.7,
	Except: []program.Class{program.Norm, program.Bias},
}

// trainer is the programs of a step on an engine.
type trainer struct {
	t          testing.TB
	floats     *engine.Floats
	spec       model.Spec
	batch      model.Batch
	rate       float64
	accumulate engine.Executable
	update     engine.Executable
	acc, upd   *engine.Call
}

func newTrainer(t testing.TB, e engine.Engine, s model.Spec, o laidOut, b model.Batch) *trainer {
	t.Helper()
	tr := newPrograms(t, e, s, o, b)
	start(t, tr.floats, s, 0.2)
	return tr
}

// newPrograms leaves all weights zero.
func newPrograms(t testing.TB, e engine.Engine, s model.Spec, o laidOut, b model.Batch) *trainer {
	t.Helper()
	tr := &trainer{t: t, spec: s, batch: b, rate: 0.01}
	p, err := model.Accumulate(s, o.layout(), 0, b)
	must(t, err)
	u, err := optim.Update(o.in.Apply(adam), o.layout(), s.Whole(), s.L+2, p)
	must(t, err)
	tr.floats = engine.NewFloats(e, p, u)
	tr.accumulate, tr.acc = compile(t, e, p)
	tr.update, tr.upd = compile(t, e, u)
	return tr
}

func compile(t testing.TB, e engine.Engine, p *program.Program) (engine.Executable, *engine.Call) {
	t.Helper()
	x, err := e.Compile(p, 1)
	must(t, err)
	return x, engine.NewCall(p)
}

// start writes the initial weights of s: uniform around 0, or around 1 in norms,
// with a standard deviation. They are the same on every host.
func start(t testing.TB, f *engine.Floats, s model.Spec, std float64) {
	t.Helper()
	for i, p := range s.Whole() {
		rng, w := rand.New(rand.NewPCG(uint64(i), 7)), make([]float32, p.Len())
		for j := range w {
			w[j] = float32(float64(std*3.4641016) * (rng.Float64() - 0.5))
			if p.Class == program.Norm {
				w[j]++
			}
		}
		must(t, f.Write(p.Name, 0, w))
		if master := "master." + p.Name; knows(f, master) {
			must(t, f.Write(master, 0, w))
		}
	}
}

func knows(f *engine.Floats, name string) bool {
	_, ok := f.Type(name)
	return ok
}

// feed writes rows from one on into a call: documents begin anew at random, and
// some labels are masked. A row is a function of its number alone.
func feed(p *program.Program, c *engine.Call, s model.Spec, b model.Batch, row int) {
	for i := range b.B {
		rng := rand.New(rand.NewPCG(uint64(row+i), 3))
		position := int32(0)
		for n := i * b.T; n < (i+1)*b.T; n++ {
			if rng.IntN(20) == 0 {
				position = 0
			}
			label := int32(rng.IntN(s.V))
			if rng.IntN(6) == 0 {
				label = -1
			}
			program.View[int32](c.Input(p, "tokens"))[n] = int32(rng.IntN(s.V))
			program.View[int32](c.Input(p, "labels"))[n] = label
			program.View[int32](c.Input(p, "positions"))[n] = position
			position++
		}
	}
}

// step takes rows from one on, and returns the report.
func (tr *trainer) step(n, row, rows int) []float64 {
	tr.t.Helper()
	for r := row; r < row+rows; r += tr.batch.B {
		feed(tr.accumulate.Program(), tr.acc, tr.spec, tr.batch, r)
		must(tr.t, tr.accumulate.Run(tr.acc).Wait())
	}
	return tr.finish(n)
}

// finish is the update at the end of step n.
func (tr *trainer) finish(n int) []float64 {
	tr.t.Helper()
	u := tr.update.Program()
	program.View[float64](tr.upd.Input(u, "lr"))[0] = tr.rate
	program.View[float64](tr.upd.Input(u, "t"))[0] = float64(n)
	program.View[float64](tr.upd.Input(u, "apply"))[0] = 1
	must(tr.t, tr.update.Run(tr.upd).Wait())
	return program.View[float64](tr.upd.Out[0])
}

// weights reads all parameters.
func (tr *trainer) weights() map[string][]float32 {
	tr.t.Helper()
	all := map[string][]float32{}
	for _, p := range tr.spec.Whole() {
		all[p.Name] = make([]float32, p.Len())
		must(tr.t, tr.floats.Read(p.Name, 0, all[p.Name]))
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// near compares with a tolerance relative to the largest element.
func near[E float32 | float64](t testing.TB, what string, got, want []E, tol float64) {
	t.Helper()
	top := 0.0
	for _, v := range want {
		top = max(top, math.Abs(float64(v)))
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tol*top) && got[i] != want[i] {
			t.Fatalf("%s[%d]: got %g, want %g within %g of %g", what, i, got[i], want[i], tol, top)
		}
	}
}

// TestOracle wants a training run to be that of the oracle.
func TestOracle(t *testing.T) {
	e := cpu.New(cpu.Options{Threads: 2})
	defer e.Close()
	b := model.Batch{B: 2, T: 67}
	got, want := newTrainer(t, e, odd, laidOut{}, b), newTrainer(t, oracle.New(), odd, laidOut{}, b)
	for n := range 3 {
		near(t, fmt.Sprintf("report of step %d", n+1), got.step(n+1, 4*n, 4), want.step(n+1, 4*n, 4), 1e-5)
	}
	w := want.weights()
	for name, x := range got.weights() {
		near(t, name, x, w[name], 1e-3) // Adam divides by the root of squares: noise is amplified
	}
}

// TestScore wants losses and top words to be the oracle's.
func TestScore(t *testing.T) {
	e := cpu.New(cpu.Options{Threads: 2})
	defer e.Close()
	b := model.Batch{B: 3, T: 67}
	p, err := model.Score(odd, fast, 0, b, 5)
	must(t, err)
	var out [2]*engine.Call
	for i, e := range []engine.Engine{e, oracle.New()} {
		x, c := compile(t, e, p)
		start(t, engine.NewFloats(e, p), odd, 0.2)
		feed(p, c, odd, b, 11)
		must(t, x.Run(c).Wait())
		out[i] = c
	}
	for i := range p.Outputs {
		near(t, p.Outputs[i].Name, program.View[float32](out[0].Out[i]), program.View[float32](out[1].Out[i]), 1e-5)
	}
}

// TestExtend wants a prompt and then single tokens to give the oracle's logits.
func TestExtend(t *testing.T) {
	e := cpu.New(cpu.Options{Threads: 2})
	defer e.Close()
	got, want := extend(t, e), extend(t, oracle.New())
	for i := range want {
		near(t, fmt.Sprintf("logits %d", i), got[i], want[i], 1e-5)
	}
}

// extend is the logits of two sequences: two prompts at once, a token for each,
// a token for one.
func extend(t *testing.T, e engine.Engine) (logits [][]float32) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	used := []int32{0, 0}
	for i, w := range []model.Window{{N: 37, M: 2}, {N: 2, M: 2}, {N: 1, M: 1}} {
		w.Slots, w.T = 2, 70
		p, err := model.Extend("extend", odd, fast, 0, w)
		must(t, err)
		x, c := compile(t, e, p)
		if i == 0 {
			start(t, engine.NewFloats(e, p), odd, 0.2)
		}
		ints := func(name string) []int32 { return program.View[int32](c.Input(p, name)) }
		for n := range w.N {
			s := n * w.M / w.N
			ints("tokens")[n], ints("slots")[n], ints("positions")[n] = int32(rng.IntN(odd.V)), int32(s), used[s]
			ints("pick")[s] = int32(n)
			used[s]++
		}
		must(t, x.Run(c).Wait())
		logits = append(logits, program.View[float32](c.Out[0]))
	}
	return logits
}
