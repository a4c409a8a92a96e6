// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/ckpt"
	"pleach/data"
	"pleach/eval"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/golden"
	"pleach/track"
	"pleach/train"
)

// heldOut are two texts of ids of a case's rows.
func heldOut(t testing.TB, dir string) map[string][]eval.Document {
	t.Helper()
	texts := map[string][]eval.Document{}
	for i, row := range golden.ReadLines[golden.Row](t, filepath.Join(dir, "rows.jsonl")) {
		name := []string{"first", "second"}[i%2]
		texts[name] = append(texts[name], eval.Document{IDs: row.Tokens, Bytes: 3 * len(row.Tokens)})
	}
	return texts
}

// mixture is two sources of documents of ids, so small that a run of a few steps
// begins several epochs of each.
func mixture(t testing.TB) []data.Source {
	t.Helper()
	type doc struct {
		Tokens []int32 `json:"tokens"`
		Name   string  `json:"name"`
	}
	r := rand.New(rand.NewPCG(1, 2))
	var sources []data.Source
	for i, name := range []string{"one", "two"} {
		var docs []doc
		for d := range 6 + 5*i {
			x := doc{Name: fmt.Sprint(name, "-", d)}
			for range 5 + r.IntN(60) {
				x.Tokens = append(x.Tokens, 3+r.Int32N(98))
			}
			docs = append(docs, x)
		}
		path := write(t, filepath.Join(t.TempDir(), name+".jsonl"), docs)
		sources = append(sources, data.Source{
			Paths: []string{path}, Name: name, Field: "tokens", ID: "name", Weight: float64(3 - 2*i),
		})
	}
	return sources
}

// busy is a run with everything on: two sources mixed over several epochs,
// evaluation with an alarm that sounds, spikes.
func busy(t testing.TB, sources []data.Source) trial {
	return trial{
		steps: 9, sources: sources, texts: heldOut(t, plain()), alarm: 1e-6, store: memory(),
	}.with(func(j *train.Job) {
		j.Schedule.Peak = 3e-2 // so that the held-out texts get worse
		j.Spikes = train.Spikes{Window: 2, Above: 0.01}
		j.Save.Every.Steps, j.Save.Keep = 5, 100
	})
}

// quiet are the events that a run and its resumed self must agree in.
func quiet(rs ...*record) []string {
	var out []string
	for _, r := range rs {
		for _, e := range r.events {
			switch e := e.(type) {
			case track.Step:
				e.TokensPerSecond, e.StepSeconds, e.DataWaitSeconds = 0, 0, 0
				out = append(out, fmt.Sprintf("%+v", e))
			case track.Eval, track.Spike, track.Warning:
				out = append(out, fmt.Sprintf("%T %+v", e, e))
			}
		}
	}
	return out
}

// TestResume stops a run at every step and lets it go on: once, and at each.
// Events and checkpoints are those of the run that was never stopped, to the
// last bit and byte.
func TestResume(t *testing.T) {
	sources := mixture(t)
	whole := busy(t, sources)
	r, log := whole.must(t)
	want, events := final(t, whole, r), quiet(log)
	if s := all[track.Source](log); len(s) != 2 || s[0].Epoch < 1 || s[1].Epoch < 1 {
		t.Fatalf("the run is too short for this test: %+v", s)
	}
	if n := len(all[track.Spike](log)); n < 3 {
		t.Fatalf("only %d spikes", n)
	}
	if w := strings.Join(warnings(log), "\n"); !strings.Contains(w, "forgetting") {
		t.Fatalf("no alarm: %s", w)
	}
	for first := int64(0); first < whole.steps; first++ { // 0: at every step
		x := busy(t, sources)
		var logs []*record
		for stop := max(first, 1); ; stop++ {
			if first > 0 && stop > first {
				stop = 0
			}
			x.stop = stop
			x.threads = 1 + len(logs)%2
			x.micro = 1 << (len(logs) % 3)
			r, log, err := x.run(t)
			logs = append(logs, log)
			if err == nil {
				if got := files(t, x.store, r.Checkpoint); true {
					same(t, fmt.Sprintf("stopped at %d (0: at each)", first), got, want)
				}
				break
			}
			if !errors.Is(err, train.ErrStopped) || fault.Exit(err) != 75 || r.Step != stop {
				t.Fatalf("stop at %d: %+v, %v", stop, r, err)
			}
		}
		if d := cmp.Diff(events, quiet(logs...)); d != "" {
			t.Errorf("stopped at %d (0: at each): events, want -, got +:\n%s", first, d)
		}
	}
}

// TestRounded: a run whose published weights are bf16 goes on from the exact
// ones.
func TestRounded(t *testing.T) {
	rounded := func(j *train.Job) { j.Save.DType, j.Config.DType = half.BF16, half.BF16 }
	whole := trial{steps: 8, store: memory()}.with(rounded)
	r, _ := whole.must(t)
	x := trial{steps: 8, store: memory(), stop: 3}.with(rounded)
	if _, _, err := x.run(t); !errors.Is(err, train.ErrStopped) {
		t.Fatal(err)
	}
	x.stop = 0
	again, _ := x.must(t)
	same(t, "resumed", final(t, x, again), final(t, whole, r))
}

// flip changes a bit of a file in a checkpoint.
func flip(t *testing.T, s blob.Store, name string, at int) {
	t.Helper()
	b, err := blob.ReadFile(s, name, 1<<24)
	if err != nil {
		t.Fatal(err)
	}
	b[at%len(b)] ^= 4
	err = s.Write(name, func(w io.Writer) error { _, err := w.Write(b); return err })
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamage: a run passes over a damaged checkpoint, says so, and ends with the
// same bits; without a good one it does not begin anew.
func TestDamage(t *testing.T) {
	whole := trial{steps: 10, store: memory()}
	r, _ := whole.must(t)
	want := final(t, whole, r)
	saves := func(j *train.Job) { j.Save.Every.Steps = 2 }
	for _, file := range []string{
		"model.safetensors", "training/rank-00000.safetensors", "training/state.json", "manifest.json", "config.json",
	} {
		x := trial{steps: 10, stop: 6, store: memory()}.with(saves)
		if _, _, err := x.run(t); !errors.Is(err, train.ErrStopped) {
			t.Fatal(err)
		}
		x.stop = 0
		flip(t, x.store, ckpt.Name(6)+"/"+file, 777)
		r, log := x.must(t)
		if r.Resumed != ckpt.Name(4) {
			t.Errorf("%s: resumed from %q", file, r.Resumed)
		}
		if w := warnings(log); len(w) != 1 || !strings.Contains(w[0], "passed over a bad checkpoint") {
			t.Errorf("%s: warnings: %q", file, w)
		}
		same(t, file, final(t, x, r), want)
	}
	x := trial{steps: 10, stop: 6, store: memory()}.with(saves)
	if _, _, err := x.run(t); !errors.Is(err, train.ErrStopped) {
		t.Fatal(err)
	}
	for _, s := range saved(t, x.store) {
		flip(t, x.store, ckpt.Name(s)+"/model.safetensors", 999)
	}
	_, _, err := x.run(t)
	if fault.Exit(err) != 4 || !strings.Contains(fmt.Sprint(err), "all 2 checkpoints are bad") {
		t.Errorf("all damaged: got %v (exit %d)", err, fault.Exit(err))
	}
}

// TestFinished: a finished run has nothing to do; a longer one goes on, with a
// warning if its schedule bends.
func TestFinished(t *testing.T) {
	x := trial{steps: 6, store: memory()}
	first, _ := x.must(t)
	again, log := x.must(t)
	if !again.Finished || again.Resumed != first.Checkpoint || again.Checkpoint != first.Checkpoint || again.Step != 6 {
		t.Errorf("again: got %+v after %+v", again, first)
	}
	if n := len(all[track.Step](log)); n != 0 {
		t.Errorf("again: %d steps", n)
	}
	x.steps = 9 // the schedule has its own length of 20
	longer, log := x.must(t)
	if longer.Resumed != ckpt.Name(6) || longer.Step != 9 || len(warnings(log)) != 0 {
		t.Errorf("longer: got %+v, warnings %q", longer, warnings(log))
	}
	whole := trial{steps: 9, store: memory()}
	r, _ := whole.must(t)
	same(t, "extended", final(t, x, longer), final(t, whole, r))

	bent := x.with(func(j *train.Job) { j.Schedule.Length = 12 })
	bent.steps = 12
	_, log = bent.must(t)
	want := "the schedule was 20 steps long and is now 12: the learning rate bends at step 9"
	if w := warnings(log); len(w) != 1 || w[0] != want {
		t.Errorf("warnings: got %q, want %q", w, want)
	}
}

// TestKept: a run that begins with the optimizer of another one is its
// continuation, bit for bit; with a fresh one it is not.
func TestKept(t *testing.T) {
	constant := func(j *train.Job) { j.Schedule.Shape, j.Schedule.Warmup, j.Schedule.Floor = "constant", 0, 0 }
	skip := func(n int) func(j *train.Job) { // the rows of the steps before
		return func(j *train.Job) {
			for range n {
				if _, err := j.Data.Next(rows); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	whole := trial{steps: 10, store: memory()}.with(constant)
	r, log := whole.must(t)
	want, long := final(t, whole, r), steps(log)

	disk := t.TempDir()
	first := trial{steps: 6, store: blob.Local(disk)}.with(constant)
	r, _ = first.must(t)
	dir := filepath.Join(disk, filepath.FromSlash(r.Checkpoint))
	for _, kept := range []bool{true, false} {
		x := trial{steps: 4, store: memory()}.with(constant).with(skip(6)).with(func(j *train.Job) {
			c, state, err := train.OpenState(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			if kept {
				j.Updates = state.Updates
			}
			spec := j.Config.Spec
			j.Begin = func(write func(string, int, []float32) error) error {
				if kept {
					return train.Restore(c, spec, write)
				}
				return spec.Transfer(weightsOf(c), write)
			}
		})
		r, log := x.must(t)
		got, short := final(t, x, r), steps(log)
		if a, b := short[1].LossNats, long[7].LossNats; a != b {
			t.Errorf("kept %v: first loss: got %v, want %v", kept, a, b)
		}
		equal := got["model.safetensors"] == want["model.safetensors"] &&
			got["training/rank-00000.safetensors"] == want["training/rank-00000.safetensors"]
		if equal != kept {
			t.Errorf("kept %v: the same weights and moments as the longer run: %v", kept, equal)
		}
	}
}

// TestFullDisk: a run whose disk is full while it saves ends with exit code 1,
// and the checkpoint before is as it was.
func TestFullDisk(t *testing.T) {
	m := blobtest.NewMem()
	x := trial{steps: 10, stop: 4, store: &blob.Dir{Files: m, Root: "run"}}
	if _, _, err := x.run(t); !errors.Is(err, train.ErrStopped) {
		t.Fatal(err)
	}
	before := files(t, x.store, ckpt.Name(4))
	full := &blobtest.Faulty{Files: m, Rule: blobtest.Rule{
		Ops: blobtest.Write, Path: "rank-00000.safetensors", Nth: 1, Always: true, Err: errFull,
	}}
	broken := x
	broken.stop, broken.store = 6, &blob.Dir{Files: full, Root: "run"}
	r, log, err := broken.run(t)
	if fault.Exit(err) != 1 || !errors.Is(err, errFull) || !strings.Contains(err.Error(), "ckpt: saving step 6") {
		t.Errorf("got %v (exit %d)", err, fault.Exit(err))
	}
	if r.Step != 4 || r.Checkpoint != ckpt.Name(4) {
		t.Errorf("result: got %+v", r)
	}
	end := all[track.End](log)
	if len(end) != 1 || end[0].ExitCode != 1 || end[0].LostSteps != 2 || end[0].Step != 6 {
		t.Errorf("end: got %+v", end)
	}
	same(t, "the checkpoint before", files(t, x.store, ckpt.Name(4)), before)
	x.stop = 0
	r, _ = x.must(t)
	whole := trial{steps: 10, store: memory()}
	w, _ := whole.must(t)
	same(t, "on a larger disk", final(t, x, r), final(t, whole, w))
}
