// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"pleach/blob"
	"pleach/blob/blobtest"
	"pleach/ckpt"
	"pleach/internal/fault"
)

// one is a run with the checkpoint of step 10, and what is left of a killed save.
func one(t *testing.T) *blobtest.Mem {
	m := blobtest.NewMem()
	s := store(m)
	mustSave(t, s, 10)
	f := &blobtest.Faulty{Files: m, Rule: blobtest.Rule{Nth: 12, Crash: true}}
	model, tr := state(15)
	if _, err := ckpt.Save(store(f), 15, model, tr); !errors.Is(err, blobtest.ErrCrash) {
		t.Fatal(err)
	}
	return m
}

// operations is how many of them a save of step 20 takes in that run.
func operations(t *testing.T) int {
	f := &blobtest.Faulty{Files: one(t)}
	mustSave(t, store(f), 20)
	if f.Count() < 40 {
		t.Fatalf("only %d operations", f.Count())
	}
	return f.Count()
}

// newest checks that a run shows step 10 or step 20, whole.
func newest(s blob.Store) (int64, error) {
	name, step, problems, err := ckpt.Newest(s)
	if err != nil {
		return 0, err
	}
	if len(problems) > 0 || step != 10 && step != 20 {
		return 0, fmt.Errorf("a third state: step %d, %v", step, problems)
	}
	if err := check(s, ckpt.Name(10), 10); err != nil {
		return 0, fmt.Errorf("the old one: %w", err)
	}
	return step, check(s, name, step)
}

// TestCrashAtEveryOperation crashes a save at each of its operations and looks
// at what is left after a kill, a power cut, and power cuts that tear at random.
func TestCrashAtEveryOperation(t *testing.T) {
	seen := map[int64]int{}
	for n := 1; n <= operations(t); n++ {
		m := one(t)
		f := &blobtest.Faulty{Files: m, Rule: blobtest.Rule{Nth: n, Crash: true}}
		model, tr := state(20)
		if _, err := ckpt.Save(store(f), 20, model, tr); !errors.Is(err, blobtest.ErrCrash) {
			t.Fatalf("operation %d: the error is lost: %v", n, err)
		}
		for seed := range uint64(6) {
			after := m.After(min(blobtest.Loss(seed), blobtest.Torn), seed)
			s := store(after)
			step, err := newest(s)
			if err != nil {
				t.Fatalf("operation %d, seed %d: %v", n, seed, err)
			}
			seen[step]++
			// The run goes on, and the next save cleans up.
			mustSave(t, s, 20)
			if step, err := newest(s); step != 20 || err != nil {
				t.Fatalf("operation %d, seed %d: after another save: step %d, %v", n, seed, step, err)
			}
			nothingLeft(t, after)
		}
	}
	if seen[10] == 0 || seen[20] == 0 {
		t.Errorf("old and new were seen %v times: the test does not reach both", seen)
	}
}

func nothingLeft(t *testing.T, m *blobtest.Mem) {
	t.Helper()
	es, err := m.ReadDir("/run/checkpoints")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if !strings.HasPrefix(e.Name, "step-") {
			t.Fatalf("%s is left over", e.Name)
		}
	}
}

// TestFailAtEveryOperation fails each operation once, or from then on, and tries
// again on a disk that works.
func TestFailAtEveryOperation(t *testing.T) {
	for n := 1; n <= operations(t); n++ {
		for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
			for _, always := range []bool{false, true} {
				m := one(t)
				f := &blobtest.Faulty{Files: m, Rule: blobtest.Rule{Nth: n, Err: cause, Always: always}}
				model, tr := state(20)
				_, err := ckpt.Save(store(f), 20, model, tr)
				if err != nil && (!errors.Is(err, fault.Machine) || !errors.Is(err, cause)) {
					t.Fatalf("operation %d: got %v, want %v of kind machine", n, err, cause)
				}
				step, err2 := newest(store(m))
				if err2 != nil || err == nil && step != 20 {
					t.Fatalf("operation %d: step %d, %v after %v", n, step, err2, err)
				}
				mustSave(t, store(m), 20)
				if step, err := newest(store(m)); step != 20 || err != nil {
					t.Fatalf("operation %d: after another save: step %d, %v", n, step, err)
				}
				nothingLeft(t, m)
			}
		}
	}
}

// TestFullDisk shows the message.
func TestFullDisk(t *testing.T) {
	f := &blobtest.Faulty{Files: blobtest.NewMem(), Rule: blobtest.Rule{
		Ops: blobtest.Write, Path: "rank-00001.safetensors", Nth: 1, Always: true, Err: syscall.ENOSPC,
	}}
	m, tr := state(20)
	_, err := ckpt.Save(store(f), 20, m, tr)
	want := "ckpt: saving step 20: blob: writing /run/checkpoints/step-00000020/training/rank-00001.safetensors: " +
		"the disk is full: no space left on device"
	if err == nil || slashes(err.Error()) != want || fault.Exit(err) != 1 {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

const childRun = "PLEACH_TEST_CKPT_RUN"

func TestMain(m *testing.M) {
	if run := os.Getenv(childRun); run != "" {
		os.Exit(child(blob.Local(run)))
	}
	os.Exit(m.Run())
}

// child goes on from the newest checkpoint, saving every step until it is killed.
func child(s blob.Store) int {
	name, step, _, err := ckpt.Newest(s)
	if err == nil && name != "" {
		err = check(s, name, step)
	}
	fmt.Println("ready")
	for err == nil {
		step++
		m, tr := state(step)
		if _, err = ckpt.Save(s, step, m, tr); err == nil {
			err = ckpt.Prune(s, 2, nil)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 3
}

// TestKill kills a process that saves all the time, at random moments. What it
// leaves must be good and no older than what was there before.
func TestKill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	run := t.TempDir()
	s := blob.Local(run)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	last, window := int64(0), 40*time.Millisecond
	for i := range 20 {
		killOne(t, self, run, time.Duration(r.Int64N(int64(window))))
		name, step, problems, err := ckpt.Newest(s)
		if err != nil || len(problems) > 0 || step < last {
			t.Fatalf("kill %d: step %d after %d, %v, %v", i, step, last, problems, err)
		}
		if name != "" {
			if err := check(s, name, step); err != nil {
				t.Fatalf("kill %d: %v", i, err)
			}
		}
		if step == last && window < time.Second { // a slow disk
			window += window / 2
		}
		last = step
	}
	if last == 0 {
		t.Error("no step was saved: the kills came too early to test anything")
	}
	t.Log("steps saved:", last)
}

// killOne starts a child and kills it some time after it has begun to save.
func killOne(t *testing.T, self, run string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childRun+"="+run)
	var failed strings.Builder
	cmd.Stderr = &failed
	ready, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = ready.Read(make([]byte, 1))
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if failed.Len() > 0 {
		t.Fatal("the child failed: ", failed.String())
	}
}
