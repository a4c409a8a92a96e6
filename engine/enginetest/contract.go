// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pleach/engine"
	"pleach/engine/oracle"
	"pleach/half"
	"pleach/program"
)

var contractCases = []struct {
	name        string
	explanation string
	run         func(s *suite, t *testing.T)
}{
	{"numbers of rounding", "stochastic rounding adds the stated random numbers: those of seed, name, step and element", (*suite).roundingNumbers},
	{"mean of rounding", "the mean of what is rounded stochastically is the number; a second run has the same bits", (*suite).roundingMean},
	{"ends of rounding", "no finite number becomes infinite; infinities and NaN stay", (*suite).roundingLargest},
	{"slots", "halves of several micro-batches in the order of a pipeline give the bits of one after the other", (*suite).slots},
	{"recompute", "what is computed again has the bits it had, so the policy changes none", (*suite).recompute},
	{"step", "two micro-batches and an update are those of the oracle", (*suite).wholeStep},
	{"masked", "a micro-batch without targets adds nothing; a step without any changes no weight", (*suite).masked},
	{"nan", "a NaN in a weight reaches the report, and the update is not applied", (*suite).nan},
	{"apply", "an update with apply zero changes no weight and no moment", (*suite).apply},
	{"names", "programs share weights and states by name; they are zero at first; type and shape must agree", (*suite).names},
	{"ranges", "Read and Write take ranges of elements, and refuse what is not there", (*suite).ranges},
	{"call", "a call that does not fit the program is refused", (*suite).call},
	{"numbers", "ids, labels, slots and positions out of range are refused by input and index, and nothing is written", (*suite).numbers},
	{"outputs", "outputs without bytes, or none at all, are skipped", (*suite).outputs},
	{"refused", "ops and meshes that the engine cannot run are refused when compiled, by name", (*suite).refused},
	{"close", "a closed engine compiles and runs nothing, and may be closed again", (*suite).closed},
}

func (s *suite) contract(t *testing.T) {
	for _, c := range contractCases {
		t.Run(c.name, func(t *testing.T) {
			c.run(s, t)
			if t.Failed() {
				t.Log("rule: " + c.explanation)
			}
		})
	}
}

func (s *suite) slots(t *testing.T) {
	const micros = 5
	d := s.step(t, program.Selective).accumulate
	want := d.wholes(t, s.engine(t), micros)
	for stages := 1; stages <= 3; stages++ {
		e := s.engine(t)
		x, c := d.compile(t, e, program.Slots(0, stages, micros))
		var got results
		for _, turn := range program.Schedule(0, stages, micros) {
			d.feed(c, turn.Micro)
			c.Half, c.Slot = turn.Half, turn.Slot
			d.exec(t, x, c)
			if turn.Half == program.Back {
				got = append(got, d.losses(c)...)
			}
		}
		sameBits(t, "slots", append(got, d.read(t, e)...), want)
	}
}

func (s *suite) recompute(t *testing.T) {
	want := s.step(t, program.KeepAll).accumulate.wholes(t, s.engine(t), 2)
	for _, p := range []program.Policy{program.Selective, program.Full} {
		sameBits(t, p.String(), s.step(t, p).accumulate.wholes(t, s.engine(t), 2), want)
	}
}

func (s *suite) wholeStep(t *testing.T) {
	st := s.step(t, program.KeepAll)
	st.clearSums()
	got, gotHeld := st.run(t, s.engine(t), 1)
	want, wantHeld := st.run(t, oracle.New(), 1)
	report, held := s.stepTolerance()
	for i, w := range want {
		if r := distance([]float64{w}, got[i:i+1], 0); !(r <= report) {
			t.Errorf("report[%d]: got %g, want %g", i, got[i], w)
		}
	}
	for i, w := range wantHeld {
		if r := distance(wide(w.Array), wide(gotHeld[i].Array), 1e-3); !(r <= held) {
			t.Errorf("%s: relative error %g", w.name, r)
		}
	}
}

// stepTolerance is the relative error of the report of a whole step, and of what
// is held after it. The update divides by the root of squares. In bf16 losses and
// norms are those of activations that may be off by a place here and there, and
// an element of a gradient that is nearly zero may have the other sign: its
// weight moves by the learning rate of 0.01 in the other direction, which is a
// twentieth of the largest weight.
func (s *suite) stepTolerance() (report, held float64) {
	if s.kind == half.BF16 && s.Tolerance > 0 {
		return 2 * place, 0.06
	}
	return s.Tolerance, 1e3 * s.Tolerance
}

// clearSums starts the step from sums of zero.
func (s step) clearSums() {
	for _, v := range s.accumulate.p.Held(program.State) {
		clear(s.accumulate.data[v.Name].Bytes)
	}
}

func (s *suite) masked(t *testing.T) {
	st := s.step(t, program.KeepAll)
	d, e := st.accumulate, s.engine(t)
	x, c := d.compile(t, e, 1)
	for i := range program.View[int32](c.Input(d.p, "labels")) {
		program.View[int32](c.Input(d.p, "labels"))[i] = -1
	}
	before := d.read(t, e)
	d.exec(t, x, c)
	sameNumbers(t, "states after a micro-batch without targets", d.read(t, e), before)
	for i, v := range wide(c.Out[0]) {
		if v != 0 {
			t.Fatalf("loss[%d] of a masked token: got %g, want 0", i, v)
		}
	}
	u := st.update
	x, c = u.compile(t, e, 1)
	if err := e.Write(program.Place{}, "tally", 0, program.ArrayOf([]float64{0, 0})); err != nil {
		t.Fatal(err)
	}
	u.exec(t, x, c)
	for i, v := range program.View[float64](c.Out[0]) {
		if v != 0 && i != program.ReportWeightNorm {
			t.Errorf("report[%d] of no targets: got %g, want 0", i, v)
		}
	}
	u.wantUnchanged(t, e)
}

// wantUnchanged wants the weights and moments that write has written.
func (d *draw) wantUnchanged(t *testing.T, e engine.Engine) {
	t.Helper()
	for _, r := range d.read(t, e) {
		if v := d.p.Named(r.name); v.Role == program.Weight || strings.HasPrefix(r.name, "m.") || strings.HasPrefix(r.name, "v.") {
			sameBits(t, "not applied", results{r}, results{{r.name, d.data[r.name]}})
		}
	}
}

// sameNumbers wants equal numbers; −0 equals 0.
func sameNumbers(t *testing.T, what string, got, want results) {
	t.Helper()
	for i, w := range want {
		if !slices.Equal(wide(got[i].Array), wide(w.Array)) {
			t.Errorf("%s: %s differs", what, w.name)
		}
	}
}

func (s *suite) nan(t *testing.T) {
	st := s.step(t, program.KeepAll)
	st.clearSums()
	st.accumulate.nanIn("gateup", 17)
	e := s.engine(t)
	report, _ := st.run(t, e, 1)
	if report[program.ReportApply] != 0 || report[program.ReportNorm] == report[program.ReportNorm] {
		t.Errorf("report: got %v, want norm NaN and apply 0", report)
	}
	st.update.wantUnchanged(t, e)
}

// nanIn sets an element to NaN.
func (d *draw) nanIn(name string, at int) {
	a := d.data[name]
	for i := range a.Type.Size() { // all ones is NaN in every type of float
		a.Bytes[at*a.Type.Size()+i] = 0xff
	}
}

func (s *suite) apply(t *testing.T) {
	st := s.step(t, program.KeepAll)
	e := s.engine(t)
	report, _ := st.run(t, e, 0)
	if report[program.ReportApply] != 0 || report[program.ReportCount] == 0 {
		t.Errorf("report: got %v, want a count and apply 0", report)
	}
	st.update.wantUnchanged(t, e)
}

func (s *suite) names(t *testing.T) {
	e := s.engine(t)
	p := scalars(t, half.F32, 2, 3)
	if err := e.Read(program.Place{}, "y", 0, program.ArrayOf(make([]float32, 1))); err == nil {
		t.Error("reading before a program names it: got no error")
	}
	for range 2 { // the same program twice is no conflict
		if _, err := e.Compile(p, 1); err != nil {
			t.Fatal(err)
		}
	}
	x := []float32{1, 2, 3, 4, 5, 6}
	if err := e.Read(program.Place{}, "y", 0, program.ArrayOf(x)); err != nil || slices.Max(x) != 0 || slices.Min(x) != 0 {
		t.Errorf("a state at first: got %v, %v, want zeros", x, err)
	}
	b := program.New("conflict", program.Layout{Compute: half.F32, Sum: half.F32})
	b.UpdatePhase()
	b.Clear(b.State("fresh", half.F32, program.Same, 3))
	b.Clear(b.State("y", half.F32, program.Same, 3, 2))
	q, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []*program.Program{q, scalars(t, half.F64, 2, 3)} {
		if _, err := e.Compile(q, 1); err == nil || !strings.Contains(err.Error(), "y ") && !strings.Contains(err.Error(), "new ") {
			t.Errorf("another type or shape: got %v, want an error that names it", err)
		}
	}
	if err := e.Read(program.Place{}, "fresh", 0, program.ArrayOf(make([]float32, 1))); err == nil {
		t.Error("a program that was refused has left a state")
	}
}

func (s *suite) ranges(t *testing.T) {
	e := s.engine(t)
	if _, err := e.Compile(scalars(t, half.F32, 2, 3), 1); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(program.Place{}, "y", 2, program.ArrayOf([]float32{7, 8, 9})); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 4)
	if err := e.Read(program.Place{}, "y", 1, program.ArrayOf(got)); err != nil || !slices.Equal(got, []float32{0, 7, 8, 9}) {
		t.Errorf("reading from 1 on: got %v, %v, want 0 7 8 9", got, err)
	}
	four := program.ArrayOf(make([]float32, 4))
	for _, c := range []struct {
		what string
		at   program.Place
		name string
		lo   int
		a    program.Array
	}{
		{"before the beginning", program.Place{}, "y", -1, four},
		{"after the end", program.Place{}, "y", 3, four},
		{"far after the end", program.Place{}, "y", 1 << 62, four},
		{"more than there is", program.Place{}, "y", 0, program.ArrayOf(make([]float32, 7))},
		{"another type", program.Place{}, "y", 0, program.ArrayOf([]float64{1})},
		{"another name", program.Place{}, "z", 0, four},
		{"another rank", program.Place{Data: 1}, "y", 0, four},
	} {
		for _, do := range []func(program.Place, string, int, program.Array) error{e.Read, e.Write} {
			if err := do(c.at, c.name, c.lo, c.a); err == nil || !strings.Contains(err.Error(), c.name) {
				t.Errorf("%s: got %v, want an error that names %s", c.what, err, c.name)
			}
		}
	}
	all := make([]float32, 6)
	if err := e.Read(program.Place{}, "y", 0, program.ArrayOf(all)); err != nil || !slices.Equal(all, []float32{0, 0, 7, 8, 9, 0}) {
		t.Errorf("after the refused: got %v, %v", all, err)
	}
}

func (s *suite) call(t *testing.T) {
	d, e := s.step(t, program.KeepAll).accumulate, s.engine(t)
	x, _ := d.compile(t, e, 1)
	before := d.read(t, e)
	short := program.ArrayOf([]int32{1})
	for what, spoil := range map[string]func(c *engine.Call){
		"an input missing":      func(c *engine.Call) { c.In = c.In[1:] },
		"a short input":         func(c *engine.Call) { c.In[0] = short },
		"an input without data": func(c *engine.Call) { c.In[0] = program.Array{} },
		"another type of input": func(c *engine.Call) { c.In[0].Type = half.F32 },
		"an output too many":    func(c *engine.Call) { c.Out = append(c.Out, c.Out[0]) },
		"a short output":        func(c *engine.Call) { c.Out[0] = program.ArrayOf([]float32{1}) },
		"another rank":          func(c *engine.Call) { c.At.Pipe = 1 },
		"a slot too many":       func(c *engine.Call) { c.Slot = 1 },
		"a slot below zero":     func(c *engine.Call) { c.Slot = -1 },
	} {
		c := d.call()
		spoil(c)
		if err := x.Run(c).Wait(); err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
	sameBits(t, "states after refused calls", d.read(t, e), before)
}

func (s *suite) numbers(t *testing.T) {
	d := s.step(t, program.KeepAll).accumulate
	last := tiny.B*tiny.T - 1
	s.spoil(t, d, []spoilt{
		{"tokens", last, int32(tiny.V)},
		{"tokens", 3, -1},
		{"labels", last, int32(tiny.V)},
		{"positions", last, int32(tiny.T)},
		{"positions", 5, -1},
		{"positions", 2, 3},                    // reaches out of the first row
		{"positions", tiny.T + 2, 3},           // reaches into the first row
		{"positions", last, 1<<31 - 1},         // far beyond any table
		{"labels", 0, int32(1<<31 - 1)},        // far beyond the vocabulary
		{"tokens", 0, -1 << 31},                // far below
		{"positions", last, int32(1<<31 - 50)}, // overflows an index
	})
	d = s.draw(t, opCase{name: "cached", build: cachedAttention}, 3)
	cache := d.p.Named("cache")
	s.spoil(t, d, []spoilt{
		{"slots", 0, -1},
		{"slots", 0, int32(cache.Dim(0))},
		{"positions", 0, -1},
		{"positions", 0, int32(cache.Dim(1))},
	})
	d = s.draw(t, opCase{name: "rows", build: embedRows}, 4)
	s.spoil(t, d, []spoilt{{"pick", 0, int32(d.p.Named("x").Dim(0))}, {"pick", 0, -1}})
}

// spoilt is an element of an input that must be refused.
type spoilt struct {
	input string
	at    int
	value int32
}

func indexed(name string, at int) string { return fmt.Sprintf("%s[%d]", name, at) }

func (s *suite) spoil(t *testing.T, d *draw, all []spoilt) {
	t.Helper()
	e := s.engine(t)
	x, c := d.compile(t, e, 1)
	before, out := d.read(t, e), d.losses(c)
	for _, bad := range all {
		v := &program.View[int32](c.Input(d.p, bad.input))[bad.at]
		old := *v
		*v = bad.value
		err := x.Run(c).Wait()
		if name := indexed(bad.input, bad.at); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s = %d: got error %v, want one that names it", name, bad.value, err)
		}
		*v = old
		sameBits(t, "states after "+indexed(bad.input, bad.at), d.read(t, e), before)
		sameBits(t, "outputs after "+indexed(bad.input, bad.at), d.outputs(c), out)
	}
	d.exec(t, x, c)
}

func (s *suite) outputs(t *testing.T) {
	d, e := s.step(t, program.KeepAll).accumulate, s.engine(t)
	x, c := d.compile(t, e, 1)
	d.exec(t, x, c)
	want := d.read(t, e)
	for _, out := range [][]program.Array{{{}}, nil} {
		d.write(t, e)
		c.Out = out
		d.exec(t, x, c)
		sameBits(t, "states without outputs", d.read(t, e), want)
	}
}

func (s *suite) refused(t *testing.T) {
	e := s.engine(t)
	b := program.New("send", program.Layout{Compute: s.kind, Sum: half.F32})
	b.Send(b.Scale(b.Input("x", s.kind, 2, 2), 2))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Compile(p, 1); err == nil || !strings.Contains(err.Error(), "send") {
		t.Errorf("a send on one rank: got %v, want an error that names it", err)
	}
	b = program.New("ranks", program.Layout{Mesh: program.Mesh{Tensor: 2}, Compute: s.kind, Sum: half.F32})
	if p, err = b.Build(b.Scale(b.Input("x", s.kind, 2, 2), 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Compile(p, 1); err == nil {
		t.Error("two ranks: got no error")
	}
	if _, err := e.Compile(scalars(t, half.F32, 1), 0); err == nil {
		t.Error("no slots: got no error")
	}
}

func (s *suite) closed(t *testing.T) {
	e := s.open(t)
	d := s.step(t, program.KeepAll).accumulate
	x, c := d.compile(t, e, 1)
	if m := e.Memory(); m.State <= 0 || m.Input <= 0 || m.Total() < m.State+m.Input {
		t.Errorf("memory: got %+v", m)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Run(c).Wait(); err == nil {
		t.Error("running after Close: got no error")
	}
	if _, err := e.Compile(d.p, 1); err == nil {
		t.Error("compiling after Close: got no error")
	}
	if err := e.Read(program.Place{}, "tally", 0, program.ArrayOf(make([]float64, 2))); err == nil {
		t.Error("reading after Close: got no error")
	}
	if m := e.Memory(); m.Total() != 0 {
		t.Errorf("memory after Close: got %+v, want none", m)
	}
}
