// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pleach/engine/oracle"
	"pleach/half"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
)

// job is a small training run in float64: the same rows and the same initial
// weights, however it is laid out.
type job struct {
	spec   model.Spec
	layout program.Layout
	T      int  // tokens of a row
	B      int  // rows of a micro-batch
	rows   int  // rows of a step, over all data ranks
	steps  int  // how many steps
	repeat bool // every step sees the same rows
	adam   optim.AdamW
	memory memory
	plan   func(stage int, p *program.Program, slots int) *program.Plan // program.MakePlan if nil
	source func(s model.Spec, T, row int) sample                        // randomRow if nil
}

// memory says where temporaries live.
type memory int

const (
	apart   memory = iota // every value has memory of its own
	planned               // in an arena whose free memory is NaN
	halved                // apart, and only Crossing survives the cut
)

// sample is one row of input.
type sample struct{ tokens, labels, positions []float64 }

// record is what must not depend on the layout.
type record struct {
	loss, norm, weightNorm, count []float64
	weights                       map[string][]float64 // whole parameters
	grads                         map[string][]float64 // whole sums of the first step; one rank only
}

var testAdam = optim.AdamW{
	Beta1: 0.9, Beta2: 0.95, Eps: 1e-6, Decay: 0.1, Clip: 0.8,
	Except: []program.Class{program.Norm, program.Bias},
}

// member is one rank at work.
type member struct {
	job
	*oracle.Rank
	params                    []program.Param
	accumulate, update, carry *program.Program
	older                     []map[string][]float64 // sums of finished subtrees, by level
	arena, updateArena        *oracle.Arena
	out                       record
}

// run trains on a goroutine for each rank and joins what the ranks hold.
func run(t testing.TB, j job) record {
	t.Helper()
	ms := crew(t, j)
	together(ms, (*member).train)
	return joined(t, ms)
}

func together(ms []*member, do func(*member)) {
	var all sync.WaitGroup
	for _, m := range ms {
		all.Go(func() { do(m) })
	}
	all.Wait()
}

// crew makes the ranks of a job, ready to start.
func crew(t testing.TB, j job) []*member {
	t.Helper()
	world := oracle.NewWorld(j.layout.Mesh, 1)
	var ms []*member
	for p := range j.layout.Mesh.Size(program.Pipe) {
		first := newMember(t, j, p)
		for d := range j.layout.Mesh.Size(program.Data) {
			for i := range j.layout.Mesh.Size(program.Tensor) {
				m := *first
				at := program.Place{Data: d, Pipe: p, Tensor: i}
				m.Rank = &oracle.Rank{World: world, At: at, Mem: map[string][]float64{}}
				m.allocate()
				ms = append(ms, &m)
			}
		}
	}
	return ms
}

// newMember builds the programs of a stage.
func newMember(t testing.TB, j job, stage int) *member {
	t.Helper()
	mesh := j.layout.Mesh
	m := &member{job: j, params: j.spec.Params(stage, mesh.Size(program.Pipe), mesh.Size(program.Tensor))}
	acc, err := model.Accumulate(j.spec, j.layout, stage, model.Batch{B: j.B, T: j.T})
	must(t, err)
	upd, err := optim.Update(j.adam, j.layout, m.params, j.spec.L+2, acc)
	must(t, err)
	carry, err := optim.Carry(j.layout, acc)
	must(t, err)
	m.accumulate, m.update, m.carry = acc, upd, carry
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// allocate cuts the rank's weights out of the whole ones and clears the rest.
func (m *member) allocate() {
	for _, p := range []*program.Program{m.accumulate, m.update} {
		for _, v := range p.Held(program.State) {
			m.Mem[v.Name] = make([]float64, v.Len())
		}
	}
	t := m.layout.Mesh.Size(program.Tensor)
	for _, p := range m.params {
		w := piece(p, m.spec, m.At.Tensor, t)
		m.Mem[p.Name] = w
		if master := m.Mem["master."+p.Name]; master != nil {
			lo := 0
			if m.layout.Sharded() {
				lo = min(m.At.Data*len(master), len(w))
			}
			copy(master, w[lo:])
		}
		if m.layout.Compute == half.BF16 {
			for i, x := range w {
				w[i] = float64(half.FromBF16(half.ToBF16(float32(x))))
			}
		}
	}
	for n := m.chunks(); n > 1; n /= 2 {
		level := map[string][]float64{}
		for _, v := range m.accumulate.Held(program.State) {
			level[v.Name] = make([]float64, v.Len())
		}
		m.older = append(m.older, level)
	}
	if m.memory == planned {
		plan := m.plan
		if plan == nil {
			plan = func(_ int, p *program.Program, slots int) *program.Plan { return program.MakePlan(p, slots) }
		}
		stages := m.layout.Mesh.Size(program.Pipe)
		m.arena = oracle.NewArena(plan(m.At.Pipe, m.accumulate, program.Slots(m.At.Pipe, stages, m.micros())))
		m.updateArena = oracle.NewArena(plan(m.At.Pipe, m.update, 1))
	}
}

// chunks is the number of leaves of the summation tree that the rank owns.
func (m *member) chunks() int { return m.layout.Leaves() / m.layout.Mesh.Size(program.Data) }

// micros is the number of micro-batches of a chunk.
func (m *member) micros() int { return m.rows / m.layout.Leaves() / m.B }

func (m *member) train() {
	for step := 1; step <= m.steps; step++ {
		m.sum(step)
		if step == 1 {
			m.out.grads = map[string][]float64{}
			for _, p := range m.params {
				m.out.grads[p.Name] = m.gradient(p.Name)
			}
		}
		m.finish(step, 1)
	}
}

// sum accumulates a step. The rank owns chunks r, r+d, r+2d, …, of which
// neighbours in the tree are far apart: it takes them in bit-reversed order and
// folds them like a binary counter.
func (m *member) sum(step int) {
	first, d := 0, m.layout.Mesh.Size(program.Data)
	if !m.repeat {
		first = (step - 1) * m.rows
	}
	for i := range m.chunks() {
		chunk := m.At.Data + bitsReversed(i, m.chunks())*d
		m.runChunk(first + chunk*m.rows/m.layout.Leaves())
		m.fold(i)
	}
}

// bitsReversed is i below n, a power of two, with its bits in reverse.
func bitsReversed(i, n int) (r int) {
	for ; n > 1; n, i = n/2, i/2 {
		r = 2*r + i%2
	}
	return r
}

// runChunk accumulates the rows from one on, in the order of the schedule.
func (m *member) runChunk(row int) {
	stages := m.layout.Mesh.Size(program.Pipe)
	frames := map[int]oracle.Frame{}
	for _, turn := range program.Schedule(m.At.Pipe, stages, m.micros()) {
		m.feed(row + turn.Micro*m.B)
		if turn.Half == program.Fore {
			frames[turn.Micro] = oracle.Heap{}
			if m.memory == planned {
				frames[turn.Micro] = m.arena.Slot(turn.Slot)
			}
		} else if m.memory == halved {
			frames[turn.Micro] = m.crossed(frames[turn.Micro])
		}
		m.Run(m.accumulate, turn.Half, frames[turn.Micro])
	}
}

// crossed is a fresh frame with what crosses the cut.
func (m *member) crossed(f oracle.Frame) oracle.Frame {
	h := oracle.Heap{}
	for _, v := range m.accumulate.Crossing() {
		copy(h.At(v), f.At(v))
	}
	return h
}

// feed writes the inputs of a micro-batch.
func (m *member) feed(row int) {
	source := m.source
	if source == nil {
		source = randomRow
	}
	var all sample
	for r := row; r < row+m.B; r++ {
		s := source(m.spec, m.T, r)
		all.tokens = append(all.tokens, s.tokens...)
		all.labels = append(all.labels, s.labels...)
		all.positions = append(all.positions, s.positions...)
	}
	m.Mem["tokens"], m.Mem["labels"], m.Mem["positions"] = all.tokens, all.labels, all.positions
}

// fold adds the sums of the i-th chunk to the tree. After the last chunk the
// root lies in the working sums again.
func (m *member) fold(i int) {
	newer, level := m.Mem, 0
	for ; i>>level&1 == 1; level++ {
		mem := map[string][]float64{}
		for name, x := range m.older[level] {
			mem[name], mem["older."+name] = newer[name], x
		}
		r := oracle.Rank{World: m.World, At: m.At, Mem: mem}
		r.Run(m.carry, program.Whole, oracle.Heap{})
		newer = m.older[level]
	}
	to := m.Mem
	if i < m.chunks()-1 {
		to = m.older[level]
	}
	for _, v := range m.accumulate.Held(program.State) {
		newer[v.Name], to[v.Name] = to[v.Name], newer[v.Name]
	}
}

// finish runs the update and returns its report.
func (m *member) finish(step int, apply float64) []float64 {
	m.Mem["lr"] = []float64{0.01 * float64(step)}
	m.Mem["t"] = []float64{float64(step)}
	m.Mem["apply"] = []float64{apply}
	var f oracle.Frame = oracle.Heap{}
	if m.updateArena != nil {
		f = m.updateArena.Slot(0)
	}
	m.Run(m.update, program.Whole, f)
	report := slices.Clone(f.At(m.update.Outputs[0]))
	m.out.loss = append(m.out.loss, report[program.ReportLoss])
	m.out.norm = append(m.out.norm, report[program.ReportNorm])
	m.out.weightNorm = append(m.out.weightNorm, report[program.ReportWeightNorm])
	m.out.count = append(m.out.count, report[program.ReportCount])
	return report
}

// randomRow makes up a row: some labels masked, positions that restart.
func randomRow(s model.Spec, T, row int) (x sample) {
	rng := rand.New(rand.NewPCG(uint64(row), 41))
	position := 0
	for range T {
		if rng.IntN(4) == 0 {
			position = 0
		}
		label := float64(rng.IntN(s.V))
		if rng.IntN(5) == 0 {
			label = -1
		}
		x.tokens = append(x.tokens, float64(rng.IntN(s.V)))
		x.labels = append(x.labels, label)
		x.positions = append(x.positions, float64(position))
		position++
	}
	return x
}

// initial is the whole of a parameter at the start, put together from the
// tensors of a model file.
func initial(s model.Spec, name string) (x []float64) {
	for _, q := range s.Tensors() {
		if q.Param == name {
			x = append(x, spun(q)...)
		}
	}
	return x
}

// spun is the initial value of a tensor, the formula of testdata/golden.py.
func spun(q model.Tensor) []float64 {
	h := 0
	for _, c := range []byte(q.Name) {
		h = (h*31 + int(c)) % 1009
	}
	x := make([]float64, q.Len())
	for i := range x {
		n := float64((i+h+1)*(i+h+1)%100003) * 0.6180339887498949
		x[i] = n - math.Floor(n) - 0.5
		switch q.Class {
		case program.Norm:
			x[i] = 1 + float64(0.5*x[i])
		case program.Bias:
			x[i] *= 0.5
		}
	}
	return x
}

// piece is what rank i of t holds of a parameter.
func piece(p program.Param, s model.Spec, i, t int) []float64 {
	whole, n := initial(s, p.Name), 1
	for _, d := range p.Local() {
		n *= d
	}
	x := make([]float64, n)
	p.Slice(i, t, func(w, at, n int) { copy(x[at:at+n], whole[w:w+n]) })
	return x
}

// joined puts the pieces of all ranks together and wants copies to be equal,
// bit for bit.
func joined(t testing.TB, ms []*member) record {
	t.Helper()
	out := ms[0].out
	out.weights, out.grads = map[string][]float64{}, map[string][]float64{}
	for _, m := range ms {
		for i, x := range [][]float64{m.out.loss, m.out.norm, m.out.weightNorm} {
			want := [][]float64{out.loss, out.norm, out.weightNorm}[i]
			if !slices.EqualFunc(x, want, alike) {
				t.Fatalf("%+v: report %d: %v, the first rank has %v", m.At, i, x, want)
			}
		}
		for _, p := range m.params {
			m.merge(t, p, m.Mem[p.Name], out.weights)
			if len(ms) == 1 {
				m.merge(t, p, m.out.grads[p.Name], out.grads)
			}
		}
	}
	return out
}

// alike is equality that a skipped step's NaN has with itself.
func alike(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func (m *member) merge(t testing.TB, p program.Param, x []float64, into map[string][]float64) {
	t.Helper()
	w := into[p.Name]
	if w == nil {
		w = slices.Repeat([]float64{math.NaN()}, p.Len())
		into[p.Name] = w
	}
	p.Slice(m.At.Tensor, m.layout.Mesh.Size(program.Tensor), func(whole, at, n int) {
		for i := range n {
			if old := w[whole+i]; !math.IsNaN(old) && old != x[at+i] {
				t.Fatalf("%+v: %s: copies differ: %v and %v", m.At, p.Name, old, x[at+i])
			}
			w[whole+i] = x[at+i]
		}
	})
}

// near compares with tolerance tol, relative to the largest element; 0 wants
// equal numbers.
func near(t testing.TB, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	top := 0.0
	for _, x := range want {
		top = max(top, math.Abs(x))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol*top) {
			t.Fatalf("%s[%d] = %.17g, want %.17g", what, i, got[i], want[i])
		}
	}
}

func compare(t testing.TB, got, want record, tol float64) {
	t.Helper()
	near(t, "loss", got.loss, want.loss, tol)
	near(t, "norm", got.norm, want.norm, tol)
	near(t, "weight norm", got.weightNorm, want.weightNorm, tol)
	near(t, "count", got.count, want.count, 0)
	if len(got.weights) != len(want.weights) {
		t.Fatalf("%d parameters, want %d", len(got.weights), len(want.weights))
	}
	for name := range want.weights {
		near(t, name, got.weights[name], want.weights[name], tol)
	}
}

// sameBits reports whether norms and weights are equal.
func sameBits(a, b record) bool {
	return slices.Equal(a.norm, b.norm) && slices.Equal(a.loss, b.loss) &&
		maps.EqualFunc(a.weights, b.weights, slices.Equal)
}

// layoutName tells a layout apart in the name of a test.
func layoutName(l program.Layout) string {
	return fmt.Sprintf("t%d_p%d_d%d_seq=%v_zero=%v_%v", l.Mesh.Size(program.Tensor), l.Mesh.Size(program.Pipe),
		l.Mesh.Size(program.Data), l.Sequence, l.Zero, l.Recompute)
}

// gradient is the gradient sum of a parameter, with what the head made of it
// where the embedding is tied.
func (m *member) gradient(param string) []float64 {
	g := slices.Clone(m.Mem["d"+param])
	for i, x := range m.Mem["d"+param+program.HeadSum] {
		g[i] += x
	}
	return g
}
