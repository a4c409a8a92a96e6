// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"fmt"
	"slices"
	"testing"

	"pleach/half"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
)

// small is a model with everything; llama7b is Llama 2 7B.
var (
	small = model.Spec{
		L: 3, D: 24, H: 8, G: 2, K: 4, F: 40, V: 48, MaxT: 8, Eps: 1e-5,
		Rope: program.Rope{Theta: 100}, AttnBias: true, MLPBias: true,
	}
	llama7b = model.Spec{
		L: 32, D: 4096, H: 32, G: 32, K: 128, F: 11008, V: 32000, MaxT: 4096, Eps: 1e-5,
		Rope: program.Rope{Theta: 1e4},
	}
)

// stagePrograms are the programs of all stages of the small model: accumulate,
// update, score and decode.
func stagePrograms(t *testing.T, l program.Layout) (ps []*program.Program) {
	t.Helper()
	keep := func(p *program.Program, err error) *program.Program {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
		return p
	}
	stages, tensor := l.Mesh.Size(program.Pipe), l.Mesh.Size(program.Tensor)
	a := optim.AdamW{Clip: 1, Master: l.Compute != l.Sum}
	for at := range stages {
		acc := keep(model.Accumulate(small, l, at, model.Batch{B: 2, T: 8}))
		keep(optim.Update(a, l, small.Params(at, stages, tensor), small.L+2, acc))
		keep(model.Score(small, l, at, model.Batch{B: 1, T: 8}, 4))
		keep(model.Extend("decode", small, l, at, model.Window{N: 2, M: 2, Slots: 2, T: 8}))
	}
	return ps
}

// planLayouts cover every kind of op and policy.
func planLayouts() (ls []program.Layout) {
	for _, m := range []program.Mesh{{}, {Tensor: 2}, {Tensor: 4, Pipe: 2}, {Data: 2, Pipe: 3}, {Data: 3}} {
		for policy := program.KeepAll; policy <= program.Full; policy++ {
			for _, sequence := range []bool{false, m.Tensor > 1} {
				ls = append(ls, program.Layout{
					Mesh: m, Sequence: sequence, Zero: m.Data > 1, Recompute: policy, Compute: half.BF16, Sum: half.F32,
				})
			}
		}
	}
	return ls
}

// mayShare lists for each kind which output may lie where which operand lies,
// if that dies there: spec, not code.
var mayShare = map[program.Kind][][2]int{
	program.OpBias:        {{0, 0}},
	program.OpRMSNorm:     {{0, 0}},
	program.OpRMSNormGrad: {{0, 2}, {0, 0}},
	program.OpRoPE:        {{0, 0}},
	program.OpSwiGLUGrad:  {{0, 0}},
	program.OpAdd:         {{0, 0}, {0, 1}},
	program.OpScale:       {{0, 0}},
	program.OpAllReduce:   {{0, 0}},
}

// life is when a temporary is in use: from the op that first touches it to the
// one that last does.
type life struct{ from, to int }

func lives(p *program.Program) map[*program.Value]life {
	out := map[*program.Value]life{}
	for i, op := range p.Ops {
		for _, v := range slices.Concat(op.In, op.Out) {
			if v.Role != program.Temp {
				continue
			}
			l, ok := out[v]
			if !ok {
				l.from = i
			}
			l.to = i
			out[v] = l
		}
	}
	for _, v := range p.Outputs {
		if l, ok := out[v]; ok {
			l.to = len(p.Ops)
			out[v] = l
		}
	}
	return out
}

// TestPlan: no two values that live together overlap, but for an output that
// may take over what dies at its op; every value lies aligned within its area;
// what lives across the cut lies in the slot.
func TestPlan(t *testing.T) {
	shared := 0
	for _, l := range planLayouts() {
		for _, p := range stagePrograms(t, l) {
			for _, slots := range []int{1, 2, 4} {
				if slots > 1 && p.Cut == 0 {
					continue
				}
				shared += checkPlan(t, fmt.Sprintf("%+v %s, %d slots", l, p.Name, slots), p, slots)
			}
		}
	}
	if shared == 0 {
		t.Error("no two values ever share memory")
	}
}

func checkPlan(t *testing.T, name string, p *program.Program, slots int) (shared int) {
	t.Helper()
	plan, alive := program.MakePlan(p, slots), lives(p)
	if len(plan.Spots) != len(alive) {
		t.Errorf("%s: %d places for %d values", name, len(plan.Spots), len(alive))
	}
	if plan.Bytes != slots*plan.Slot+plan.Work || slots == 1 && plan.Slot != 0 {
		t.Errorf("%s: arena of %d bytes: %d slots of %d and %d", name, plan.Bytes, slots, plan.Slot, plan.Work)
	}
	for v, l := range alive {
		s := plan.Spots[v]
		area, base := plan.Work, slots*plan.Slot
		if s.Saved {
			area, base = plan.Slot, (slots-1)*plan.Slot
		}
		if s.Offset < 0 || s.Offset+v.Bytes() > area || s.Offset%program.Align != 0 || plan.Offset(v, slots-1) != base+s.Offset {
			t.Errorf("%s: %v at %+v, area of %d", name, v, s, area)
		}
		if across := l.from < p.Cut && p.Cut <= l.to; slots > 1 && across && !s.Saved {
			t.Errorf("%s: %v crosses the cut outside of a slot", name, v)
		}
	}
	return checkOverlaps(t, name, p, plan, alive)
}

func checkOverlaps(t *testing.T, name string, p *program.Program, plan *program.Plan, alive map[*program.Value]life) (shared int) {
	t.Helper()
	vs := slices.SortedFunc(func(yield func(*program.Value) bool) {
		for v := range alive {
			if !yield(v) {
				return
			}
		}
	}, func(a, b *program.Value) int { return alive[a].from - alive[b].from })
	for i, v := range vs {
		for _, w := range vs[i+1:] {
			if alive[w].from > alive[v].to {
				break
			}
			a, b := plan.Spots[v], plan.Spots[w]
			if a.Saved != b.Saved || a.Offset+v.Bytes() <= b.Offset || b.Offset+w.Bytes() <= a.Offset {
				continue
			}
			if a.Offset != b.Offset || !takesOver(p.Ops[alive[w].from], v, w, alive[v].to == alive[w].from) {
				t.Errorf("%s: %v %+v and %v %+v overlap", name, v, alive[v], w, alive[w])
			}
			shared++
		}
	}
	return shared
}

// takesOver reports whether op may write w where v, which dies there, lies.
func takesOver(op *program.Op, v, w *program.Value, dies bool) bool {
	for _, pair := range mayShare[op.Kind] {
		if pair[0] < len(op.Out) && op.Out[pair[0]] == w && op.In[pair[1]] == v {
			return dies && v.Bytes() == w.Bytes() && !slices.Contains(op.Out, v)
		}
	}
	return false
}

// TestLive: Live is the bytes that are covered while an op runs, Frees names
// what ends then, each piece of memory once.
func TestLive(t *testing.T) {
	for _, l := range planLayouts() {
		for _, p := range stagePrograms(t, l) {
			plan, alive := program.MakePlan(p, 1), lives(p)
			for i := range p.Ops {
				covered := map[int]int{}
				for v, l := range alive {
					if l.from <= i && i <= l.to {
						size := (v.Bytes() + program.Align - 1) / program.Align * program.Align
						covered[plan.Spots[v].Offset] = max(covered[plan.Spots[v].Offset], size)
					}
				}
				bytes := 0
				for _, n := range covered {
					bytes += n
				}
				if plan.Live[i] != bytes {
					t.Fatalf("%+v %s op %d: %d bytes alive, want %d", l, p.Name, i, plan.Live[i], bytes)
				}
				for _, v := range plan.Frees[i] {
					if alive[v].to != i {
						t.Errorf("%+v %s op %d: frees %v, which lives until %d", l, p.Name, i, v, alive[v].to)
					}
				}
			}
			if plan.Peak != slices.Max(plan.Live) || plan.Peak > plan.Bytes {
				t.Errorf("%+v %s: peak %d, arena %d", l, p.Name, plan.Peak, plan.Bytes)
			}
		}
	}
}

// TestPeaks: recomputation buys memory, and the arena of Llama 2 7B is within
// 5 % of the least that any plan could need.
func TestPeaks(t *testing.T) {
	for _, m := range []program.Mesh{{Tensor: 1}, {Tensor: 8}, {Pipe: 4, Tensor: 8}} {
		for _, sequence := range []bool{false, m.Tensor > 1} {
			before := 0
			for policy := program.KeepAll; policy <= program.Full; policy++ {
				l := program.Layout{Mesh: m, Sequence: sequence, Recompute: policy, Compute: half.BF16, Sum: half.F32}
				p, err := model.Accumulate(llama7b, l, 0, model.Batch{B: 1, T: 4096})
				if err != nil {
					t.Fatal(err)
				}
				one := program.MakePlan(p, 1)
				if float64(one.Bytes) > 1.05*float64(one.Peak) {
					t.Errorf("%+v: arena %d bytes, live peak %d", l, one.Bytes, one.Peak)
				}
				plan := program.MakePlan(p, program.Slots(0, m.Size(program.Pipe), 16))
				if before > 0 && plan.Bytes >= before {
					t.Errorf("%+v: arena %d bytes, not below %d of the policy before", l, plan.Bytes, before)
				}
				before = plan.Bytes
				t.Logf("t%d p%d seq=%-5v %-9v %4d ops, arena %6d MiB = %d × %d + %d, one-slot peak %6d MiB", m.Tensor,
					m.Size(program.Pipe), sequence, policy, len(p.Ops), plan.Bytes>>20, plan.Slots, plan.Slot>>20,
					plan.Work>>20, one.Peak>>20)
			}
		}
	}
}

// TestKept: what a layer leaves for the backward half, by the table of what
// each policy keeps; the middle layers of a deep model differ only by it.
func TestKept(t *testing.T) {
	const T, size = 64, 2
	s := with(llama7b, func(s *model.Spec) { s.D, s.H, s.G, s.K, s.F, s.V = 64, 8, 4, 8, 160, 128 })
	N, D, H, G, K, F := T, s.D, s.H, s.G, s.K, s.F
	for _, tensor := range []int{1, 2, 4} {
		for _, sequence := range []bool{false, true} {
			if sequence && tensor == 1 {
				continue
			}
			lse := 2 * N * H / tensor // f32 statistics, in elements of bf16
			body := N*((2*H+2*G)*K+3*F)/tensor + lse
			stream := 2 * N * D // two residuals
			if sequence {
				stream /= tensor
			}
			none := 2*N*D + stream + body // two norms, gathered
			want := map[program.Policy]int{
				program.KeepAll: none, program.Selective: stream + body - N*F/tensor, program.Full: stream / 2,
			}
			for policy, elements := range want {
				bytes := func(L int) (n int) {
					l := program.Layout{
						Mesh: program.Mesh{Tensor: tensor}, Sequence: sequence, Recompute: policy, Compute: half.BF16, Sum: half.F32,
					}
					p, err := model.Accumulate(with(s, func(s *model.Spec) { s.L = L }), l, 0, model.Batch{B: 1, T: T})
					if err != nil {
						t.Fatal(err)
					}
					for _, v := range p.Crossing() {
						n += v.Bytes()
					}
					return n
				}
				if got := bytes(5) - bytes(4); got != size*elements {
					t.Errorf("t %d, sequence %v, %v: a layer keeps %d bytes, want %d", tensor, sequence, policy, got, size*elements)
				}
			}
		}
	}
}

func with(s model.Spec, change func(*model.Spec)) model.Spec {
	change(&s)
	return s
}

// TestPlanSteps: an output goes over an operand only if that dies at the step and
// has its size; what a step alone touches lives while it runs.
func TestPlanSteps(t *testing.T) {
	value := func(n int) *program.Value {
		return &program.Value{Name: "v", Role: program.Temp, Type: half.F32, Shape: []int{n}}
	}
	a, b, c, d, own := value(16), value(16), value(16), value(32), value(64)
	plan := program.PlanSteps([]program.Step{
		{Out: []*program.Value{a}},
		{In: []*program.Value{a}, Out: []*program.Value{b}, Over: [][2]*program.Value{{b, a}}}, // a lives on
		{In: []*program.Value{a, b}, Out: []*program.Value{c, own}, Over: [][2]*program.Value{{c, b}, {own, a}}},
		{In: []*program.Value{c}, Out: []*program.Value{d}, Over: [][2]*program.Value{{d, c}}}, // larger
	}, 2, []*program.Value{d}, 1)
	if plan.Spots[a] == plan.Spots[b] || plan.Spots[b] != plan.Spots[c] || plan.Spots[c] == plan.Spots[d] {
		t.Errorf("places %v, want c over b alone", plan.Spots)
	}
	if want := []int{64, 128, 384, 192}; !slices.Equal(plan.Live, want) || plan.Peak != 384 {
		t.Errorf("alive %v, peak %d, want %v", plan.Live, plan.Peak, want)
	}
	two := program.PlanSteps([]program.Step{{Out: []*program.Value{a}}, {In: []*program.Value{a}}}, 1, nil, 2)
	if !two.Spots[a].Saved || two.Bytes != 2*64 {
		t.Errorf("%+v: want a slot for what crosses the cut", two)
	}
}
