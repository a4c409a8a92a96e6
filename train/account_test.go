// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pleach/ckpt"
	"pleach/data"
	"pleach/engine/cpu"
	"pleach/half"
	"pleach/infer"
	"pleach/internal/fault"
	"pleach/internal/golden"
	"pleach/internal/unit"
	"pleach/model"
	"pleach/program"
	"pleach/track"
	"pleach/train"
)

// masked is the rows of the plain case, of which those of some steps, counted
// from 1, have no target.
func masked(t testing.TB, silent ...int) []data.Source {
	t.Helper()
	in := golden.ReadLines[golden.Row](t, filepath.Join(plain(), "rows.jsonl"))
	var out []golden.Row
	for i := range 20 * rows {
		row := in[i%len(in)]
		row.Mask = make([]int8, len(row.Tokens))
		if !slices.Contains(silent, 1+i/rows) {
			for j := range row.Mask {
				row.Mask[j] = int8((i + j*j) / 3 % 2) // ragged
			}
		}
		out = append(out, row)
	}
	type line struct {
		Tokens []int32 `json:"tokens"`
		Mask   []int8  `json:"mask"`
	}
	var lines []line
	for _, r := range out {
		lines = append(lines, line{r.Tokens, r.Mask})
	}
	path := write(t, filepath.Join(t.TempDir(), "rows.jsonl"), lines)
	return []data.Source{{Paths: []string{path}, Field: "tokens", Mask: "mask", Rows: true}}
}

// TestNoTarget: a step whose rows have no target changes no weight and does not
// count as an update, and a person is told.
func TestNoTarget(t *testing.T) {
	sources := masked(t, 3)
	var at [2]map[string]string
	for i, steps := range []int64{2, 3} {
		x := trial{steps: steps, sources: sources, store: memory()}
		r, log := x.must(t)
		at[i] = final(t, x, r)
		ws := warnings(log)
		switch {
		case i == 0 && len(ws) > 0:
			t.Errorf("two steps: %q", ws)
		case i == 1 && (len(ws) != 1 || ws[0] != "step 3 changed nothing: its rows have no target"):
			t.Errorf("three steps: %q", ws)
		}
		for _, e := range all[track.Step](log)[2:] {
			if e.Targets != 0 || e.LossNats != 0 || e.GradNorm != 0 {
				t.Errorf("the step without a target: %+v", e)
			}
		}
		var state train.State
		if err := json.Unmarshal([]byte(at[i]["training/state.json"]), &state); err != nil {
			t.Fatal(err)
		}
		if state.Updates != 2 || state.Step != steps || state.Refused != i || len(state.Recent) != 2 {
			t.Errorf("after %d steps: %+v", steps, state)
		}
	}
	same(t, "after a step without a target", at[1], at[0], "training/state.json", "manifest.json")
}

// TestNoTargets: ten steps in a row that change nothing end a run, also if it
// was stopped among them.
func TestNoTargets(t *testing.T) {
	var silent []int
	for s := 4; s <= 20; s++ {
		silent = append(silent, s)
	}
	x := trial{sources: masked(t, silent...), stop: 8, store: memory()}
	if _, _, err := x.run(t); !errors.Is(err, train.ErrStopped) {
		t.Fatal(err)
	}
	x.stop = 0
	_, log, err := x.run(t)
	want := "train: 10 steps in a row changed nothing; the last: step 13 changed nothing: its rows have no target"
	if fault.Exit(err) != 3 || err.Error() != want {
		t.Errorf("got %v (exit %d)\nwant %s", err, fault.Exit(err), want)
	}
	if n := len(all[track.Step](log)); n != 5 {
		t.Errorf("%d steps after the stop, want 5", n)
	}
}

// TestNotFinite: a loss that is no number changes no weight, is told with the
// documents that were read, and ends the run when it goes on.
func TestNotFinite(t *testing.T) {
	x := trial{store: memory()}.with(func(j *train.Job) {
		begin := j.Begin
		j.Begin = func(write func(string, int, []float32) error) error {
			return begin(func(name string, lo int, v []float32) error {
				for i := range v {
					v[i] = float32(math.NaN())
				}
				return write(name, lo, v)
			})
		}
	})
	_, log, err := x.run(t)
	if fault.Exit(err) != 3 || !strings.Contains(err.Error(), "step 10 changed nothing: loss NaN") {
		t.Errorf("got %v (exit %d)", err, fault.Exit(err))
	}
	w := warnings(log)
	if len(w) != 10 || !strings.Contains(w[0], "rows.jsonl:1 ") {
		t.Errorf("warnings: %q", w)
	}
}

// TestExhausted: sources that may be read once end a run before its last step,
// with what there is saved and evaluated; less than a step is an error.
func TestExhausted(t *testing.T) {
	sources := mixture(t)
	for i := range sources {
		sources[i].Epochs = 1
	}
	x := busy(t, sources)
	x.steps = 1000
	r, log, err := x.run(t)
	if err == nil && (!r.Finished || r.Step == 0 || r.Step > 5 || len(all[track.Eval](log)) < 4) {
		t.Errorf("got %+v with %d evaluations", r, len(all[track.Eval](log)))
	}
	if err != nil && !strings.Contains(err.Error(), "less than one step") {
		t.Error(err)
	}
	again, _ := x.must(t)
	if again.Checkpoint != r.Checkpoint || !again.Finished {
		t.Errorf("again: got %+v after %+v", again, r)
	}
}

// TestKeep: the newest checkpoints are kept and those of round steps for good,
// wherever a run was stopped; which ones does not depend on how often it saves.
func TestKeep(t *testing.T) {
	for _, c := range []struct {
		every, permanent unit.Every
		keep             int
		want             []int64
	}{
		{unit.Every{Steps: 3}, unit.Every{}, 2, []int64{15, 16}},
		{unit.Every{Steps: 3}, unit.Every{}, 1, []int64{16}},
		{unit.Every{}, unit.Every{Steps: 7}, 1, []int64{7, 14, 16}},
		{unit.Every{Steps: 3}, unit.Every{Steps: 7}, 2, []int64{7, 14, 15, 16}},
		{unit.Every{Steps: 4}, unit.Every{Tokens: 1000}, 1, []int64{6, 11, 16}}, // a step has 192
		{unit.Every{Steps: 4}, unit.Every{Time: 1}, 1, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
	} {
		x := trial{steps: 16, stop: 8, store: memory()}.with(func(j *train.Job) {
			j.Save = train.Save{Every: c.every, Keep: c.keep, Permanent: c.permanent, DType: half.F32}
		})
		if _, _, err := x.run(t); !errors.Is(err, train.ErrStopped) {
			t.Fatal(err)
		}
		x.stop = 0
		x.must(t)
		if got := saved(t, x.store); !slices.Equal(got, c.want) {
			t.Errorf("every %v, permanent %v, keep %d: got %d, want %d", c.every, c.permanent, c.keep, got, c.want)
		}
	}
}

// TestEvaluation: what a run says of a held-out text at its end is what the
// weights of its last checkpoint get; what it says at the start is of the first
// weights; scores come at their steps and no others.
func TestEvaluation(t *testing.T) {
	x := trial{steps: 7, texts: heldOut(t, plain()), store: memory()}
	r, log := x.must(t)
	var at []int64
	last := map[string]track.Eval{}
	for _, e := range all[track.Eval](log) {
		at = append(at, e.Step)
		last[e.Name] = e
	}
	if want := []int64{0, 0, 3, 3, 6, 6, 7, 7}; !slices.Equal(at, want) {
		t.Errorf("evaluations at %d, want %d", at, want)
	}
	c, err := ckpt.Open(x.store, r.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e := cpu.New(cpu.Options{Threads: 1})
	defer e.Close()
	s, m := config(t, plain()), program.Layout{Compute: half.F32, Sum: half.F32}
	scorer, err := infer.NewScorer(e, s.Spec, m, model.Batch{B: 3, T: sequence}, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Transfer(weightsOf(c), func(name string, lo int, v []float32) error {
		return e.Write(program.Place{}, name, lo, program.ArrayOf(v))
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, docs := range x.texts {
		want, err := perplexity(scorer, docs)
		if err != nil {
			t.Fatal(err)
		}
		got := last[name]
		if got.Perplexity != want.Perplexity() || got.BitsPerByte != want.BitsPerByte() || got.Tokens != want.Tokens {
			t.Errorf("%s: got %+v, want %+v with perplexity %v", name, got, want, want.Perplexity())
		}
	}
}

// TestAlarm: a perplexity that cannot be saved, since it is no number, does not
// keep a run from being saved.
func TestAlarm(t *testing.T) {
	x := trial{steps: 3, store: memory()}.with(func(j *train.Job) {
		n := 0.0
		j.Evaluate = train.Evaluate{AtStart: true, Every: unit.Every{Steps: 1}, Run: func() ([]train.Score, error) {
			n++
			zero := n - n
			return []train.Score{
				{Alarm: 0.5, Eval: track.Eval{Name: "endless", Perplexity: 1 / zero}},
				{Alarm: 0.5, Eval: track.Eval{Name: "worse", Perplexity: 10 * n}},
				{Alarm: 0, Eval: track.Eval{Name: "no alarm", Perplexity: 10 * n}},
			}, nil
		}}
	})
	_, log := x.must(t)
	want := []string{
		"forgetting: perplexity of worse is 20 at step 1, 100.0 % above 10 at the start (alarm at 50 %)",
		"forgetting: perplexity of worse is 30 at step 2, 200.0 % above 10 at the start (alarm at 50 %)",
		"forgetting: perplexity of worse is 40 at step 3, 300.0 % above 10 at the start (alarm at 50 %)",
	}
	if got := warnings(log); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// fields are those of the schema of events, without event and time.
var fields = map[string]string{
	"start": "version recipe_hash model mesh engine level threads resumed_from?",
	"step": "step loss_nats grad_norm weight_norm lr tokens targets tokens_per_second step_seconds data_wait_seconds " +
		"share_of_peak rows",
	"eval":       "step name nll_nats perplexity bits_per_byte tokens bytes seconds",
	"checkpoint": "step path bytes blocked_seconds total_seconds",
	"spike":      "step grad_norm mean length documents action",
	"source":     "name documents tokens epoch skipped",
	"warning":    "step? reason",
	"end":        "step? reason exit_code lost_steps goodput?",
}

// TestEvents: events.jsonl has exactly the fields of the schema; its numbers
// are the shortest that read back the same; the seconds of the ledger are those
// that passed.
func TestEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	log, err := track.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	e := cpu.New(cpu.Options{Threads: 1})
	defer e.Close()
	j, kept := busy(t, mixture(t)).job(t, e)
	defer j.Data.Close()
	j.Sink = both{log, kept}
	began := time.Now()
	if _, err := train.Run(context.Background(), j); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began).Seconds()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]int{}
	for in := bufio.NewScanner(f); in.Scan(); {
		kind := checkFields(t, in.Bytes())
		seen[kind]++
	}
	for kind := range fields {
		if seen[kind] == 0 {
			t.Errorf("no event %q", kind)
		}
	}
	end := all[track.End](kept)[0]
	sum := 0.0
	for state, s := range end.Goodput {
		if s < 0 {
			t.Errorf("%s: %v seconds", state, s)
		}
		sum += s
	}
	if sum > took || sum < 0.9*took-0.05 {
		t.Errorf("the ledger has %v of %v seconds: %v", sum, took, end.Goodput)
	}
	if want := (track.End{Step: 9, Reason: "finished", Goodput: end.Goodput}); !reflect.DeepEqual(end, want) {
		t.Errorf("end: got %+v", end)
	}
}

// both are two sinks as one.
type both struct{ a, b track.Sink }

func (s both) Write(at time.Time, e track.Event) error {
	return errors.Join(s.a.Write(at, e), s.b.Write(at, e))
}

func (s both) Close() error { return nil }

func checkFields(t *testing.T, line []byte) string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(line, &all); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var kind string
	_ = json.Unmarshal(all["event"], &kind)
	var at time.Time
	if err := json.Unmarshal(all["time"], &at); err != nil || at.Location() != time.UTC {
		t.Errorf("%s: time: %v", line, err)
	}
	for _, name := range strings.Fields(fields[kind]) {
		name, optional := strings.CutSuffix(name, "?")
		if _, ok := all[name]; !ok && !optional {
			t.Errorf("%s: no %q", line, name)
		}
		var x float64
		if text := string(all[name]); json.Unmarshal(all[name], &x) == nil && strings.ContainsAny(text, ".e") {
			if short := strconv.FormatFloat(x, 'g', -1, 64); len(text) > len(short)+2 {
				t.Errorf("%s: %s: got %s, want %s", line, name, text, short)
			}
		}
		delete(all, name)
	}
	delete(all, "event")
	delete(all, "time")
	if len(all) > 0 {
		t.Errorf("%s: fields that the schema does not have: %v", line, all)
	}
	return kind
}

// TestRefused: jobs that do not make sense, each with its message.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*train.Job){
		"train: 4 sequences a step in micro-batches of 3: want a multiple": func(j *train.Job) { j.Batch.B = 3 },
		"train: a run of 0 steps": func(j *train.Job) { j.Steps = 0 },
	} {
		_, _, err := trial{}.with(change).run(t)
		if fmt.Sprint(err) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
