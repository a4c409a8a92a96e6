// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"pleach/blob"
	"pleach/ckpt"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/golden"
	"pleach/kernel"
	"pleach/optim"
	"pleach/program"
	"pleach/train"
)

// mode is a precision as a recipe may have it.
type mode struct {
	optim.Precision
	halfMoments bool
	band        float64 // most relative difference of a step's loss to that in f32
}

func (m mode) String() string {
	if m.halfMoments {
		return m.Precision.String() + " with moments in bf16"
	}
	return m.Precision.String()
}

// modes are all but f32. The golden model is small and its loss falls from 4.6 to
// 4.2 in 20 steps; activations of 8 bits move it by a part in a thousand, and what
// plain bf16 loses of its updates by ten.
var modes = []mode{
	{optim.Mixed, false, 2e-3}, {optim.BF16SR, false, 3e-3}, {optim.BF16SR, true, 3e-3}, {optim.BF16, false, 2e-2},
}

// in is a trial in a precision, as the command sets it up.
func (x trial) in(m mode) trial {
	return x.with(func(j *train.Job) {
		policy := j.Layout.Recompute
		j.Layout, j.AdamW = m.Layout(), m.Apply(j.AdamW)
		j.Layout.Recompute, j.AdamW.Seed, j.AdamW.HalfMoments = policy, 11, m.halfMoments
		j.Save.DType = m.Weights()
		j.Config.DType = m.Weights()
	})
}

// TestPrecisions: on every level, twenty steps in every precision stay in a band
// around PyTorch's float64. Plain bf16 is several times as far off as the others.
func TestPrecisions(t *testing.T) {
	for _, level := range kernel.Levels() {
		far := map[optim.Precision]float64{}
		for _, m := range modes {
			worst := worstLoss(t, trial{level: level}.in(m))
			t.Logf("%v, %v: losses differ by %.2g at most", level, m, worst)
			if !(worst <= m.band) {
				t.Errorf("%v, %v: losses differ by %g, want at most %g", level, m, worst, m.band)
			}
			far[m.Precision] = max(far[m.Precision], worst)
		}
		if other := max(far[optim.Mixed], far[optim.BF16SR]); far[optim.BF16] < 3*other {
			t.Errorf("%v: plain bf16 is off by %g, the others by %g: want 3 times as much", level, far[optim.BF16], other)
		}
	}
}

// worstLoss is the largest relative difference of the loss of a step to PyTorch's.
func worstLoss(t *testing.T, x trial) (worst float64) {
	t.Helper()
	_, log := x.must(t)
	got := steps(log)
	for _, w := range golden.ReadLines[golden.Step](t, filepath.Join(plain(), "want.jsonl")) {
		worst = max(worst, math.Abs(got[int64(w.Step)].LossNats/w.Loss64-1))
	}
	return worst
}

// TestPrecisionBits: in every precision micro-batches, threads and recomputation
// change no bit, nor does being stopped and going on at any step.
func TestPrecisionBits(t *testing.T) {
	for _, m := range modes {
		first := trial{steps: 6, store: memory()}.in(m)
		r, log := first.must(t)
		want, events := final(t, first, r), quiet(log)
		for _, x := range []trial{
			{micro: 2, threads: 2}, // of 96 ids: some products of bf16 take 32 at once
			{micro: 2, policy: program.Selective},
			{micro: 4, threads: 2, policy: program.Full},
		} {
			what := fmt.Sprintf("%v: micro-batches of %d, %d threads, recomputation %v", m, x.micro, x.threads, x.policy)
			x.steps, x.store = 6, memory()
			x = x.in(m)
			r, _ := x.must(t)
			same(t, what, final(t, x, r), want)
		}
		x, logs := trial{steps: 6, store: memory()}.in(m), []*record{}
		for x.stop = 1; x.stop < 6; x.stop++ {
			x.threads = 1 + int(x.stop)%2
			_, log, err := x.run(t)
			if !errors.Is(err, train.ErrStopped) {
				t.Fatalf("%v: stop at %d: %v", m, x.stop, err)
			}
			logs = append(logs, log)
		}
		x.stop = 0
		r, log = x.must(t)
		same(t, m.String()+": stopped at each step", final(t, x, r), want)
		if got := quiet(append(logs, log)...); strings.Join(got, "\n") != strings.Join(events, "\n") {
			t.Errorf("%v: events of the stopped run differ", m)
		}
	}
}

// TestPrecisionTypes: a checkpoint keeps every number in the type that the run
// has it in, and an exact copy of weights only where the published ones are
// rounded.
func TestPrecisionTypes(t *testing.T) {
	for _, tt := range []struct {
		mode
		save, master, moments half.DType // F64: there is none
	}{
		{mode{}, half.F32, half.F64, half.F32},
		{mode{}, half.BF16, half.F32, half.F32},
		{modes[0], half.BF16, half.F32, half.F32},
		{modes[0], half.F32, half.F64, half.F32},
		{modes[1], half.BF16, half.F64, half.F32},
		{modes[2], half.BF16, half.F64, half.BF16},
		{modes[2], half.F32, half.F64, half.BF16},
		{modes[3], half.BF16, half.F64, half.F32},
	} {
		what := fmt.Sprintf("%v saved as %v", tt.mode, tt.save)
		saveAs := func(j *train.Job) { j.Save.DType, j.Config.DType = tt.save, tt.save }
		x := trial{steps: 3, store: memory()}.in(tt.mode).with(saveAs)
		r, _ := x.must(t)
		c, err := ckpt.Open(x.store, r.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, w := range c.Weights.Tensors() {
			if w.DType != tt.save {
				t.Errorf("%s: %s is %v", what, w.Name, w.DType)
			}
			got, _, _ := c.Lookup("master." + w.Name)
			if got != tt.master {
				t.Errorf("%s: the exact copy of %s is %v, want %v (f64: none)", what, w.Name, got, tt.master)
			}
			for _, prefix := range []string{"m.", "v."} {
				if got, _, _ := c.Lookup(prefix + w.Name); got != tt.moments {
					t.Errorf("%s: %s%s is %v, want %v", what, prefix, w.Name, got, tt.moments)
				}
			}
		}
		whole := trial{steps: 5, store: memory()}.in(tt.mode).with(saveAs)
		r, _ = whole.must(t)
		x.steps = 5
		again, _ := x.must(t)
		same(t, what+", resumed", final(t, x, again), final(t, whole, r))
	}
}

// TestPrecisionRefused: a run does not go on in another precision; one that
// begins with the state of another converts it, and goes on where that was.
func TestPrecisionRefused(t *testing.T) {
	all := append([]mode{{}}, modes...)
	disk := t.TempDir()
	x := trial{steps: 8, stop: 4, store: blob.Local(disk)}.in(modes[0]).with(func(j *train.Job) { j.Schedule.Shape = "constant" })
	if _, _, err := x.run(t); !errors.Is(err, train.ErrStopped) {
		t.Fatal(err)
	}
	whole := trial{steps: 8, store: memory()}.in(modes[0]).with(func(j *train.Job) { j.Schedule.Shape = "constant" })
	_, log := whole.must(t)
	next := steps(log)[5].LossNats
	for _, m := range all {
		if m == modes[0] {
			continue
		}
		y := x
		y.stop, y.change = 0, nil
		_, _, err := y.in(m).run(t)
		want := fmt.Sprintf("the checkpoint is of a run in mixed, this one is in %v: want the same, or a new run", m)
		if fault.Exit(err) != 4 || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v: got %v (exit %d), want %q", m, err, fault.Exit(err), want)
		}
		z := trial{steps: 1, store: memory()}.in(m).with(keep(t, filepath.Join(disk, filepath.FromSlash(ckpt.Name(4)))))
		_, log := z.must(t)
		if got := steps(log)[1].LossNats; math.Abs(got/next-1) > 2e-3 {
			t.Errorf("%v: with the state of a run in mixed: loss %v, want about %v", m, got, next)
		}
	}
}

// keep begins with the state of a checkpoint, at the row after it.
func keep(t *testing.T, dir string) func(j *train.Job) {
	return func(j *train.Job) {
		c, state, err := train.OpenState(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		for range state.Step {
			if _, err := j.Data.Next(rows); err != nil {
				t.Fatal(err)
			}
		}
		j.Updates = state.Updates
		spec := j.Config.Spec
		j.Begin = func(write func(string, int, []float32) error) error { return train.Restore(c, spec, write) }
	}
}

// TestBeyond: weights that bf16 has no numbers for are counted and refused;
// float32 takes them.
func TestBeyond(t *testing.T) {
	for _, m := range modes {
		x := trial{steps: 1}.in(m).with(func(j *train.Job) {
			begin := j.Begin
			j.Begin = func(write func(string, int, []float32) error) error {
				if err := begin(write); err != nil {
					return err
				}
				return write("embed", 3, []float32{3.39e38, 3.397e38, -3.4e38})
			}
		})
		_, _, err := x.run(t)
		want := "2 numbers are beyond the range of bf16, the first is 3.397e+38 at 4 of embed"
		if fault.Exit(err) != 3 || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v: got %v (exit %d), want %q", m, err, fault.Exit(err), want)
		}
	}
}
