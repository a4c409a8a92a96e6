// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"pleach/internal/golden"
	"pleach/program"
	"pleach/train"
)

// TestGolden: twenty steps of every golden case are PyTorch's: loss within 1e-5
// and gradient norm within 1e-4 relative at every step, the learning rate
// within 1e-15. The command is tested against the same numbers; here are the
// bounds that this loop in fact keeps.
func TestGolden(t *testing.T) {
	for _, dir := range golden.Cases(t, "train") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			want := golden.ReadLines[golden.Step](t, filepath.Join(dir, "want.jsonl"))
			_, log := goldenTrial(dir).must(t)
			got := steps(log)
			if len(got) != len(want) {
				t.Fatalf("got %d steps, want %d", len(got), len(want))
			}
			for _, w := range want {
				g := got[int64(w.Step)]
				for _, c := range []struct {
					name      string
					got, want float64
					tol       float64
				}{
					{"loss", g.LossNats, w.Loss, 1e-5},
					{"norm", g.GradNorm, w.GradNorm, 1e-4},
					{"loss in float64", g.LossNats, w.Loss64, 1e-6},
					{"norm in float64", g.GradNorm, w.GradNorm64, 2e-6},
					{"rate", g.LR, w.LR, 1e-15},
					{"targets", float64(g.Targets), float64(w.Targets), 0},
				} {
					if err := golden.Near(c.got, c.want, golden.Tol{Rel: c.tol}); err != nil {
						t.Errorf("step %d: %s: %v", w.Step, c.name, err)
					}
				}
			}
		})
	}
}

// goldenTrial follows the recipe of a case.
func goldenTrial(dir string) trial {
	x := trial{dir: dir}
	if filepath.Base(dir) != "constant" {
		return x
	}
	return x.with(func(j *train.Job) {
		j.AdamW.Clip = 0
		j.Schedule.Shape, j.Schedule.Warmup, j.Schedule.Floor = "constant", 0, 0
	})
}

// TestBits: how a step is cut and computed changes no bit: micro-batches,
// threads, recomputation; nor does how often a run is saved or evaluated, or
// whether its checkpoints are rounded.
func TestBits(t *testing.T) {
	for _, name := range []string{"masked", "bias"} {
		dir := golden.Dir("train/" + name)
		first := trial{dir: dir, store: memory()}
		r, log := first.must(t)
		want, events := final(t, first, r), steps(log)
		for _, x := range []trial{
			{micro: 1},
			{micro: 2, threads: 2},
			{micro: 1, threads: 2, policy: program.Full},
			{micro: 4, threads: 2, policy: program.Selective},
			{micro: 2, policy: program.Full},
			trial{texts: heldOut(t, dir), alarm: 0.01}.with(func(j *train.Job) { j.Save.Every.Steps = 1 }),
			trial{}.with(func(j *train.Job) { j.Save.Every.Steps, j.Save.Keep = 7, 9 }),
		} {
			what := fmt.Sprintf("micro-batches of %d, %d threads, recomputation %v, evaluated %v",
				x.micro, x.threads, x.policy, x.texts != nil)
			x.dir, x.store = dir, memory()
			r, log := x.must(t)
			but := []string{}
			if x.texts != nil { // the state has the perplexities of the start
				but = []string{"training/state.json", "manifest.json"}
			}
			same(t, what, final(t, x, r), want, but...)
			for s, e := range steps(log) {
				if e != events[s] {
					t.Errorf("%s: step %d: got %+v, want %+v", what, s, e, events[s])
				}
			}
		}
	}
}
