// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package track_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pleach/internal/fault"
	"pleach/track"
)

// The frozen form of every event: names and order of fields never change.
var frozen = []struct {
	event track.Event
	line  string
}{
	{
		track.Start{
			Version: "0.1", RecipeHash: "ab", Model: track.Model{Parameters: 7}, Mesh: map[string]int{"tensor": 1, "data": 2},
			Engine: "cpu", Level: "portable", Threads: 2, ResumedFrom: "checkpoints/step-00000010",
		},
		`"version":"0.1","recipe_hash":"ab","model":{"parameters":7},"mesh":{"data":2,"tensor":1},"engine":"cpu","level":"portable","threads":2,"resumed_from":"checkpoints/step-00000010"`,
	},
	{
		track.Step{
			Step: 3, LossNats: 0.1, GradNorm: 1e-7, WeightNorm: 1e21, LR: 0.0003, Tokens: 4096, Targets: 1000,
			TokensPerSecond: 1.5, StepSeconds: 2, DataWaitSeconds: 0, ShareOfPeak: 0.5, Rows: [2]int64{8, 11},
		},
		`"step":3,"loss_nats":0.1,"grad_norm":1e-7,"weight_norm":1e+21,"lr":0.0003,"tokens":4096,"targets":1000,"tokens_per_second":1.5,"step_seconds":2,"data_wait_seconds":0,"share_of_peak":0.5,"rows":[8,11]`,
	},
	{
		track.Eval{Step: 3, Name: "wiki <&>", NLLNats: 2, Perplexity: 7.38905609893065, BitsPerByte: 1, Tokens: 5, Bytes: 20, Seconds: 0.25},
		`"step":3,"name":"wiki <&>","nll_nats":2,"perplexity":7.38905609893065,"bits_per_byte":1,"tokens":5,"bytes":20,"seconds":0.25`,
	},
	{
		track.Checkpoint{Step: 3, Path: "p", Bytes: 9, BlockedSeconds: 0.5, TotalSeconds: 1},
		`"step":3,"path":"p","bytes":9,"blocked_seconds":0.5,"total_seconds":1`,
	},
	{
		track.Spike{Step: 3, GradNorm: 9, Mean: 1, Length: 2, Documents: []string{"a\n", "b"}, Action: "log"},
		`"step":3,"grad_norm":9,"mean":1,"length":2,"documents":["a\n","b"],"action":"log"`,
	},
	{
		track.Source{Name: "pubmed", Documents: 1, Tokens: 2, Epoch: 0, Skipped: map[string]int64{"binary": 3}},
		`"name":"pubmed","documents":1,"tokens":2,"epoch":0,"skipped":{"binary":3}`,
	},
	{
		track.Restart{Step: 4, Reason: "hang", ExitCode: 70, LostSteps: 2, Goodput: map[string]float64{"compute": 1.5}},
		`"step":4,"reason":"hang","exit_code":70,"lost_steps":2,"goodput":{"compute":1.5}`,
	},
	{track.Fault{Reason: "r", ExitCode: 1}, `"reason":"r","exit_code":1,"lost_steps":0`},
	{track.Warning{Reason: "r"}, `"reason":"r"`},
	{track.End{Step: 9, Reason: "done"}, `"step":9,"reason":"done","exit_code":0,"lost_steps":0`},
}

var at = time.Date(2026, 1, 2, 5, 4, 5, 678_900_000, time.FixedZone("", 2*3600))

const head = `","time":"2026-01-02T03:04:05.678Z",`

func TestFrozenForm(t *testing.T) {
	for _, c := range frozen {
		b, err := track.Encode(nil, at, c.event)
		want := `{"event":"` + c.event.Kind() + head + c.line + "}\n"
		if err != nil || string(b) != want {
			t.Errorf("got  %s, %v\nwant %s", b, err, want)
		}
		r, err := track.Decode(b)
		if err != nil || !r.Time.Equal(at.Truncate(time.Millisecond)) {
			t.Errorf("%s: read back as %v, %v", b, r.Time, err)
		}
		if d := cmp.Diff(c.event, r.Event); d != "" {
			t.Error(d)
		}
	}
}

func TestNonfinite(t *testing.T) {
	e := track.Step{Step: 7, LossNats: math.NaN(), GradNorm: math.Inf(1), LR: math.Inf(-1)}
	b, err := track.Encode(nil, at, e)
	if err != nil || !strings.Contains(string(b), `"step":7,"loss_nats":null,"grad_norm":null,`) ||
		!strings.HasSuffix(string(b), `,"nonfinite":{"grad_norm":"+Inf","loss_nats":"NaN","lr":"-Inf"}}`+"\n") {
		t.Errorf("got %s, %v", b, err)
	}
	r, err := track.Decode(b)
	if d := cmp.Diff(track.Event(e), r.Event, cmpopts.EquateNaNs()); d != "" || err != nil {
		t.Error(d, err)
	}
	if _, err := track.Encode(nil, at, track.End{Goodput: map[string]float64{"x": math.NaN()}}); err == nil {
		t.Error("NaN seconds were written")
	}
}

func TestEveryFloatReadsBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.Uint64().Draw(t, "bits")
		e := track.Step{LossNats: math.Float64frombits(bits)}
		b, err := track.Encode(nil, at, e)
		if err != nil {
			t.Fatal(err)
		}
		r, err := track.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Event.(track.Step).LossNats
		if math.Float64bits(got) != bits && !(math.IsNaN(got) && math.IsNaN(e.LossNats)) {
			t.Fatalf("got %v, want %v", got, e.LossNats)
		}
	})
}

func read(t *testing.T, path string) (steps []int64, torn []int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	torn, err = track.Read(f, func(r track.Record) error {
		if s, ok := r.Event.(track.Step); ok {
			steps = append(steps, s.Step)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps, torn
}

func write(t *testing.T, path string, es ...track.Event) {
	t.Helper()
	l, err := track.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if err := l.Write(at, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTorn cuts a file at every byte, as a kill may, and goes on writing.
func TestTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	write(t, path, track.Step{Step: 1}, track.Step{Step: 2})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	for n := 0; n <= len(whole); n += 5 {
		if err := os.WriteFile(path, whole[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		l, err := track.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Write(at, track.Step{Step: 3}); err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		var want []int64
		if n >= first-1 {
			want = append(want, 1)
		}
		if n >= len(whole)-1 {
			want = append(want, 2)
		}
		want = append(want, 3)
		if got, torn := read(t, path); !slices.Equal(got, want) || len(torn) > 1 {
			t.Fatalf("cut at %d: got steps %d, torn lines %d, want %d", n, got, torn, want)
		}
	}
}

func TestRead(t *testing.T) {
	text := `{"event":"step","time":"2026-01-02T03:04:05.678Z","step":1,"new_field":{"x":1}}

{"event":"comet","time":"2026-01-02T03:04:05Z","tail":3}
{"event":"step","time":"2026-01-02T03:04
{"event":"step","step":1}
[1]
{"event":"step","time":"2026-01-02T03:04:05Z","step":"one"}
{"event":"end","time":"2026-01-02T03:04:05Z","reason":"done"}`
	var got []string
	torn, err := track.Read(strings.NewReader(text), func(r track.Record) error {
		got = append(got, fmt.Sprint(r.Line, " ", r.Event.Kind()))
		return nil
	})
	if !slices.Equal(got, []string{"1 step", "3 comet", "8 end"}) || !slices.Equal(torn, []int{4, 5, 6, 7}) || err != nil {
		t.Errorf("got %q, torn %d, %v", got, torn, err)
	}
	stop := errors.New("stop")
	if _, err := track.Read(strings.NewReader(text), func(track.Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want %v", err, stop)
	}
}

func TestSinks(t *testing.T) {
	dir := t.TempDir()
	a, err := track.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := track.Open(filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	if err := (track.Sinks{a, b}).Write(at, track.Step{Step: 5}); fault.Exit(err) != 1 {
		t.Errorf("writing to a closed file: %v", err)
	}
	if got, _ := read(t, filepath.Join(dir, "b")); !slices.Equal(got, []int64{5}) {
		t.Errorf("the other sink got %d", got)
	}
	_ = b.Close()
	if _, err := track.Open(dir); fault.Exit(err) != 1 {
		t.Errorf("opening a folder: %v", err)
	}
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "events.jsonl")
	log, err := track.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = log.Write(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), track.Warning{Reason: "a perplexity rose by 5 %"})
	_ = log.Close()
	b, _ := os.ReadFile(path)
	fmt.Print(string(b))
	// Output: {"event":"warning","time":"2026-01-02T03:04:05.000Z","reason":"a perplexity rose by 5 %"}
}

// FuzzRead: nothing panics; what is read as one of our events can be written and
// read again.
func FuzzRead(f *testing.F) {
	for _, c := range frozen {
		b, err := track.Encode(nil, at, c.event)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(`{"event":"step","time":"2026-01-02T03:04:05Z","loss_nats":null,"nonfinite":{"loss_nats":"NaN"}}` + "\n{")
	f.Add("\x00\n\n[]\n{}")
	f.Add(`{"event":"end","time":"9999-12-31T23:59:59-10:00"}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, err := track.Read(strings.NewReader(text), func(r track.Record) error {
			if _, ok := r.Event.(track.Unknown); ok {
				return nil
			}
			b, err := track.Encode(nil, r.Time, r.Event)
			if err != nil {
				return err
			}
			again, err := track.Decode(b)
			if err != nil {
				return err
			}
			if d := cmp.Diff(r.Event, again.Event, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
