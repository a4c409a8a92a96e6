// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/ckpt"
	"pleach/data"
	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/eval"
	"pleach/half"
	"pleach/infer"
	"pleach/internal/golden"
	"pleach/internal/unit"
	"pleach/kernel"
	"pleach/model"
	"pleach/optim"
	"pleach/program"
	"pleach/track"
	"pleach/train"
	"pleach/weights"
)

// The batch and the length of the rows of the golden cases.
const (
	rows     = 4
	sequence = 48
)

// trial is a run of a golden case's model. Its zero fields are those of the
// recipe that the goldens follow.
type trial struct {
	dir     string // of the case
	steps   int64
	stop    int64
	micro   int
	threads int
	level   kernel.Level // the fastest if zero
	policy  program.Policy
	sources []data.Source
	texts   map[string][]eval.Document // to evaluate
	alarm   float64
	store   blob.Store
	change  func(*train.Job)
}

// record is a sink that keeps events.
type record struct{ events []track.Event }

func (r *record) Write(_ time.Time, e track.Event) error {
	r.events = append(r.events, e)
	return nil
}

func (r *record) Close() error { return nil }

// all are the events of one type.
func all[E track.Event](r *record) []E {
	var es []E
	for _, e := range r.events {
		if e, ok := e.(E); ok {
			es = append(es, e)
		}
	}
	return es
}

// steps are the step events by step, the later ones counting, without what
// depends on time.
func steps(rs ...*record) map[int64]track.Step {
	m := map[int64]track.Step{}
	for _, r := range rs {
		for _, e := range all[track.Step](r) {
			e.TokensPerSecond, e.StepSeconds, e.DataWaitSeconds, e.ShareOfPeak = 0, 0, 0, 0
			m[e.Step] = e
		}
	}
	return m
}

func warnings(rs ...*record) []string {
	var ws []string
	for _, r := range rs {
		for _, w := range all[track.Warning](r) {
			ws = append(ws, w.Reason)
		}
	}
	return ws
}

// memory is a store on a disk in memory.
func memory() *blob.Dir { return &blob.Dir{Files: blobtest.NewMem(), Root: "run"} }

// plain is the golden case without anything special.
func plain() string { return golden.Dir("train/plain") }

// with is a trial that a change sees last.
func (x trial) with(change func(*train.Job)) trial {
	before := x.change
	x.change = func(j *train.Job) {
		if before != nil {
			before(j)
		}
		change(j)
	}
	return x
}

// run runs a trial on an engine of its own.
func (x trial) run(t testing.TB) (train.Result, *record, error) {
	t.Helper()
	e := x.engine()
	defer e.Close()
	j, log := x.job(t, e)
	defer j.Data.Close()
	r, err := train.Run(context.Background(), j)
	return r, log, err
}

// engine is what a trial runs on.
func (x trial) engine() engine.Engine {
	return cpu.New(cpu.Options{Level: x.level, Threads: max(1, x.threads)})
}

// must is run without an error.
func (x trial) must(t testing.TB) (train.Result, *record) {
	t.Helper()
	r, log, err := x.run(t)
	if err != nil {
		t.Fatal(err)
	}
	return r, log
}

func (x trial) job(t testing.TB, e engine.Engine) (train.Job, *record) {
	t.Helper()
	if x.dir == "" {
		x.dir = plain()
	}
	if x.micro == 0 {
		x.micro = rows
	}
	if x.steps == 0 {
		x.steps = 20
	}
	if x.store == nil {
		x.store = memory()
	}
	if x.sources == nil {
		x.sources = []data.Source{{
			Paths: []string{filepath.Join(x.dir, "rows.jsonl")}, Field: "tokens", Mask: "mask", Rows: true,
		}}
	}
	log, c := &record{}, config(t, x.dir)
	loader, err := data.Open(data.Spec{
		Sequence: sequence, Lanes: rows, Seed: 3, Vocabulary: c.V, BOS: 1, EOS: 2, Sources: x.sources,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	except, err := optim.ClassesOf([]string{"norms", "biases"})
	if err != nil {
		t.Fatal(err)
	}
	j := train.Job{
		Engine: e, Config: c, Batch: model.Batch{B: x.micro, T: sequence}, Rows: rows,
		Layout:   program.Layout{Compute: half.F32, Sum: half.F32, Recompute: x.policy},
		AdamW:    optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Except: except, Clip: 1},
		Schedule: optim.Schedule{Shape: "cosine", Peak: 3e-3, Warmup: 5, Floor: 3e-4, Length: 20},
		Steps:    x.steps, Stop: x.stop, Data: loader, Store: x.store, Sink: log, Version: "test", Recipe: "hash",
		Save:   train.Save{Keep: 2, DType: half.F32},
		Spikes: train.Spikes{Window: 20, Above: 0.1},
		Begin:  func(write func(string, int, []float32) error) error { return fill(c, x.dir, write) },
	}
	if x.texts != nil {
		j.Evaluate = train.Evaluate{Every: unit.Every{Steps: 3}, AtStart: true, Run: x.scores(t, e, c)}
	}
	if x.change != nil {
		x.change(&j)
	}
	return j, log
}

// scores is evaluation as the command sets it up.
func (x trial) scores(t testing.TB, e engine.Engine, c *model.Config) func() ([]train.Score, error) {
	t.Helper()
	s, err := infer.NewScorer(e, c.Spec, program.Layout{Compute: half.F32, Sum: half.F32},
		model.Batch{B: 2, T: sequence}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func() ([]train.Score, error) {
		var out []train.Score
		for _, name := range []string{"first", "second"} {
			got, err := perplexity(s, x.texts[name])
			if err != nil {
				return nil, err
			}
			out = append(out, train.Score{Alarm: x.alarm, Eval: track.Eval{
				Name: name, NLLNats: got.NLL / float64(got.Tokens), Perplexity: got.Perplexity(),
				BitsPerByte: got.BitsPerByte(), Tokens: got.Tokens, Bytes: got.Bytes, Seconds: 1,
			}})
		}
		return out, nil
	}
}

func perplexity(s *infer.Scorer, docs []eval.Document) (eval.Result, error) {
	return eval.Perplexity(s, sequence, 1, func(yield func(eval.Document, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	})
}

func config(t testing.TB, dir string) *model.Config {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "base", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fill writes the weights of a case's model.
func fill(c *model.Config, dir string, write func(string, int, []float32) error) error {
	set, err := weights.OpenDir(filepath.Join(dir, "base"))
	if err != nil {
		return err
	}
	defer set.Close()
	return c.Transfer(func(w model.Tensor, lo int, dst []float32) error {
		return set.ReadFinite(w.Name, lo, lo+len(dst), dst)
	}, write)
}

// files are the bytes of a checkpoint by name.
func files(t testing.TB, s blob.Store, name string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range []string{name, name + "/training"} {
		es, err := s.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			if e.Dir {
				continue
			}
			b, err := blob.ReadFile(s, dir+"/"+e.Name, 1<<24)
			if err != nil {
				t.Fatal(err)
			}
			out[strings.TrimPrefix(dir+"/"+e.Name, name+"/")] = string(b)
		}
	}
	return out
}

// same compares two checkpoints byte for byte but for the files named.
func same(t testing.TB, what string, got, want map[string]string, but ...string) {
	t.Helper()
	got, want = maps.Clone(got), maps.Clone(want)
	for _, name := range but {
		got[name], want[name] = "", ""
	}
	if len(got) != len(want) || len(got) < 5 {
		t.Errorf("%s: files: got %d, want %d", what, len(got), len(want))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s differs: %d bytes, want %d", what, name, len(got[name]), len(want[name]))
			if strings.HasSuffix(name, ".json") {
				t.Logf("got %s\nwant %s", got[name], want[name])
			}
		}
	}
}

// final are the files of the last checkpoint of a result.
func final(t testing.TB, x trial, r train.Result) map[string]string {
	t.Helper()
	return files(t, x.store, r.Checkpoint)
}

// saved are the steps of the checkpoints in a store.
func saved(t testing.TB, s blob.Store) []int64 {
	t.Helper()
	es, err := s.List("checkpoints")
	if err != nil {
		t.Fatal(err)
	}
	var out []int64
	for _, e := range es {
		var n int64
		if _, err := fmt.Sscanf(e.Name, "step-%d", &n); err == nil && ckpt.Name(n) == "checkpoints/"+e.Name {
			out = append(out, n)
		}
	}
	return out
}

// write makes a file of one JSON value a line.
func write[T any](t testing.TB, path string, lines []T) string {
	t.Helper()
	var b strings.Builder
	for _, l := range lines {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// errFull is what a full disk says.
const errFull = syscall.ENOSPC

// weightsOf reads the published weights of a checkpoint.
func weightsOf(c *ckpt.Checkpoint) func(w model.Tensor, lo int, dst []float32) error {
	return func(w model.Tensor, lo int, dst []float32) error {
		return c.Weights.ReadFinite(w.Name, lo, lo+len(dst), dst)
	}
}
