// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
)

// drawn is a model and a batch of random sizes.
func drawn(rng *rand.Rand) (model.Spec, model.Batch) {
	flip := func() bool { return rng.IntN(2) == 0 }
	s := model.Spec{
		L: 1 + rng.IntN(2), G: 1 + rng.IntN(3), K: 2 * (1 + rng.IntN(20)), F: 1 + rng.IntN(300), V: 2 + rng.IntN(500),
		D: 1 + rng.IntN(70), Eps: 1e-5, Rope: program.Rope{Theta: 10_000}, Tied: flip(), AttnBias: flip(), MLPBias: flip(),
	}
	s.H = s.G * (1 + rng.IntN(3))
	if flip() {
		s.F, s.K, s.G, s.H = 192, 16, 6, 12 // whole panels, heads and columns of several cells
	}
	b := model.Batch{B: 1 + rng.IntN(3), T: 1 + rng.IntN(60)}
	s.MaxT = b.T
	return s, b
}

// outcome is what two steps, a score and a prompt leave behind.
type outcome struct {
	run
	scored [][]byte
}

// TestFused wants steps of several ops to have the bits of single ops: in random
// models, for any number of threads, size of buffers, policy of recomputation and
// number of micro-batches between their halves.
func TestFused(t *testing.T) {
	for _, k := range levels() {
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 11))
			s, b := drawn(rng)
			in := precisions[rng.IntN(len(precisions))]
			want := outcomeOf(t, cpu.Unfused(cpu.Options{Level: k, Threads: 1}), s, b, laidOut{in: in}, 1)
			for policy := program.KeepAll; policy <= program.Full; policy++ {
				threads, slots := 1+rng.IntN(3), 1+rng.IntN(2)
				o := cpu.Options{Level: k, Threads: threads}
				e := cpu.New(o)
				if rng.IntN(2) == 0 {
					e = cpu.Bounded(o, 1+rng.IntN(5000), 1+rng.IntN(40_000))
				}
				what := fmt.Sprintf("seed %d, %v, %v, %v, %d threads, %d slots, %+v, %+v", seed, in, k, policy, threads, slots, s, b)
				got := outcomeOf(t, e, s, b, laidOut{in, policy}, slots)
				sameHistory(t, what, got.run, want.run)
				if !slices.EqualFunc(got.scored, want.scored, slices.Equal) {
					t.Errorf("%s: scores differ", what)
				}
			}
		}
	}
}

func outcomeOf(t *testing.T, e *cpu.Engine, s model.Spec, b model.Batch, o laidOut, slots int) (r outcome) {
	t.Helper()
	defer e.Close()
	l := o.layout()
	tr := newTrainer(t, e, s, o, b)
	x, err := e.Compile(tr.accumulate.Program(), slots)
	must(t, err)
	for n := range 2 {
		inSlots(t, x, tr, slots, 4*b.B*n)
		r.reports = append(r.reports, slices.Clone(tr.finish(n+1)))
	}
	r.weights = tr.weights()
	p, err := model.Score(s, l, 0, b, min(3, s.V))
	must(t, err)
	score, c := compile(t, e, p)
	feed(p, c, s, b, 3)
	must(t, score.Run(c).Wait())
	p, err = model.Extend("extend", s, l, 0, model.Window{N: b.T, M: 1, Slots: 1, T: b.T})
	must(t, err)
	extend, d := compile(t, e, p)
	for n := range b.T {
		program.View[int32](d.Input(p, "tokens"))[n] = int32(n % s.V)
		program.View[int32](d.Input(p, "positions"))[n] = int32(n)
	}
	must(t, extend.Run(d).Wait())
	for _, a := range slices.Concat(c.Out, d.Out) {
		r.scored = append(r.scored, a.Bytes)
	}
	return r
}

// inSlots runs four micro-batches, so many of them between their halves.
func inSlots(t *testing.T, x engine.Executable, tr *trainer, slots, row int) {
	t.Helper()
	p := x.Program()
	calls := make([]*engine.Call, slots)
	for i := range calls {
		calls[i] = engine.NewCall(p)
	}
	for _, turn := range program.Schedule(0, slots, 4) {
		c := calls[turn.Slot]
		if c.Half, c.Slot = turn.Half, turn.Slot; turn.Half == program.Fore {
			feed(p, c, tr.spec, tr.batch, row+turn.Micro*tr.batch.B)
		}
		must(t, x.Run(c).Wait())
	}
}

// TestPasses wants every pass to find what it is for in the programs of a model,
// and no op to be lost or run twice.
func TestPasses(t *testing.T) {
	for _, in := range precisions {
		testPasses(t, in)
	}
}

func testPasses(t *testing.T, in optim.Precision) {
	o := laidOut{in, program.Selective}
	tr := newPrograms(t, cpu.New(cpu.Options{Threads: 1}), odd, o, model.Batch{B: 2, T: 67})
	want := map[string]int{
		"head": 1, "bias": 4 * odd.L, "rope": odd.L, "swiglu": odd.L, "residual": 2 * odd.L, "swiglu.grad": odd.L,
		"norm.add": 2 * odd.L, "unrope": odd.L, "clear": len(odd.Whole()),
		"publish": 0,
	}
	if in == optim.Mixed {
		want["publish"] = len(odd.Whole())
	}
	got := map[string]int{}
	for _, x := range []engine.Executable{tr.accumulate, tr.update} {
		for name, n := range cpu.Changes(x) {
			got[name] += n
		}
		count := map[*program.Op]int{}
		for _, st := range cpu.Steps(x) {
			for _, op := range st.Ops {
				count[op]++
			}
		}
		for _, op := range x.Program().Ops {
			if count[op] != 1 {
				t.Errorf("%s: %v stands in %d steps", x.Program().Name, op.Kind, count[op])
			}
		}
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%v: pass %s: changes %d steps, want %d", in, name, got[name], n)
		}
	}
}
