// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pleach/corpus"
	"pleach/internal/fault"
)

// work makes the runs of a folder.
type work struct {
	dir     string
	set     settings
	pleach  string // the binary
	threads int    // of a run
	stderr  io.Writer
}

// heldOut is how many bytes of each text are measured on.
const heldOut = 100_000

// prepare makes what all runs read. Every part is skipped if it is there.
func (w *work) prepare(ctx context.Context) error {
	for _, part := range []func(context.Context) error{w.build, w.texts, w.tokenizer} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// keep writes down the settings, or compares them with those of the folder.
func (w *work) keep() error {
	if err := os.MkdirAll(w.dir, 0o777); err != nil {
		return fault.Machinef("converging: %w", err)
	}
	file := filepath.Join(w.dir, "settings.json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = json.MarshalIndent(w.set, "", "  ")
		if err == nil {
			err = os.WriteFile(file, append(text, '\n'), 0o666)
		}
		return fault.As(fault.Machine, err)
	}
	var was settings
	if err = errors.Join(err, json.Unmarshal(text, &was)); err != nil {
		return fault.Statef("converging: %s: %w", file, err)
	}
	if was != w.set {
		return fault.Statef("converging: %s: got %+v, the folder was made with %+v: choose another --out", w.dir, w.set, was)
	}
	return nil
}

// build makes the binary once, so that a change of the tree in the middle of the
// experiment does not divide it.
func (w *work) build(ctx context.Context) error {
	if w.pleach == "" {
		w.pleach = filepath.Join(w.dir, "pleach")
	}
	path, err := filepath.Abs(w.pleach)
	if err != nil {
		return fault.As(fault.Machine, err)
	}
	if w.pleach = path; exists(path) {
		return nil
	}
	return w.command(exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "pleach/cmd/pleach"))
}

// texts writes the two texts, with more of each than the runs read, so that
// nothing is read twice.
func (w *work) texts(ctx context.Context) error {
	dir := filepath.Join(w.dir, "text")
	if exists(dir) {
		return nil
	}
	c, err := corpus.Find(ctx, nil)
	if err != nil {
		return err
	}
	const bytesToken = 4 // at most, about
	_, err = c.Write(ctx, dir, corpus.Quota{Train: max(1<<20, bytesToken*w.set.tokens()), HeldOut: heldOut})
	return err
}

func (w *work) tokenizer(ctx context.Context) error {
	if exists(filepath.Join(w.dir, "tokenizer")) {
		return nil
	}
	c := exec.CommandContext(ctx, w.pleach, "tokenizer", "train", "text/general.jsonl", "text/domain.jsonl",
		"--size", fmt.Sprint(w.set.Vocabulary), "--out", "tokenizer")
	c.Dir = w.dir
	return w.command(c)
}

// command runs one and gives what it said as the error.
func (w *work) command(c *exec.Cmd) error {
	fmt.Fprintln(w.stderr, strings.Join(c.Args, " "))
	if out, err := c.CombinedOutput(); err != nil {
		return fault.Machinef("converging: %s: %w\n%s", c.Args[0], err, out)
	}
	return nil
}

// runAll makes the runs that are not done, so many at once. Each has its own
// threads, and threads change no number.
func (w *work) runAll(ctx context.Context, specs []spec, atOnce int) error {
	var todo []spec
	for _, s := range specs {
		if r, err := w.result(s); err != nil || r == nil {
			todo = append(todo, s)
		}
	}
	fmt.Fprintf(w.stderr, "%d of %d runs are done, %d steps each\n", len(specs)-len(todo), len(specs), w.set.Steps)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan spec)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for s := range next {
				if err := w.train(ctx, s); err != nil {
					cancel(err)
				}
			}
		})
	}
	eta := w.watch(ctx, todo)
	for _, s := range todo {
		select {
		case next <- s:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
	err := context.Cause(ctx)
	cancel(nil)
	<-eta
	if errors.Is(err, context.Canceled) {
		err = fault.As(fault.Stopped, errors.New("converging: stopped; the same command goes on from there"))
	}
	return err
}

// train makes one run. When the program is told to stop from a terminal, the run
// is told too, and saves; otherwise it is ended, and goes on from its newest
// checkpoint.
func (w *work) train(ctx context.Context, s spec) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	file := s.name() + ".yaml"
	if err := os.WriteFile(filepath.Join(w.dir, file), []byte(s.recipe(w.set)), 0o666); err != nil {
		return fault.Machinef("converging: %w", err)
	}
	c := exec.CommandContext(ctx, w.pleach, "train", file, fmt.Sprintf("engine={cpu: {threads: %d}}", w.threads))
	c.Dir, c.WaitDelay = w.dir, 20*time.Second
	c.Cancel = func() error { return nil }
	if out, err := c.CombinedOutput(); err != nil {
		return fault.Machinef("converging: %s: %w\n%s", file, err, tail(string(out), 2000))
	}
	// The events are all that is read; the weights of all runs would fill a disk.
	return fault.As(fault.Machine, os.RemoveAll(filepath.Join(w.dir, s.name(), "checkpoints")))
}

// watch says now and then how far all runs are, until ctx ends.
func (w *work) watch(ctx context.Context, todo []spec) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		began, first := time.Now(), w.steps(todo)
		tick := time.NewTicker(15 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				now, all := w.steps(todo), len(todo)*w.set.Steps
				fmt.Fprintln(w.stderr, progress(now-first, now, all, time.Since(began)))
			}
		}
	}()
	return done
}

// progress is one line: the steps of this call, those that are done, and all.
func progress(here, done, all int, took time.Duration) string {
	line := fmt.Sprintf("step %d of %d", done, all)
	if here > 0 {
		left := time.Duration(float64(took) * float64(all-done) / float64(here))
		line += fmt.Sprintf(", done in %v", left.Round(time.Second))
	}
	return line
}

// steps is how many steps are done.
func (w *work) steps(specs []spec) int {
	n := 0
	for _, s := range specs {
		if f, err := os.Open(w.events(s)); err == nil {
			if r, err := readEvents(f, w.set); err == nil {
				n += r.last
			}
			f.Close()
		}
	}
	return n
}

func (w *work) events(s spec) string { return filepath.Join(w.dir, s.name(), "events.jsonl") }

// result reads a run, and is nil if it is not done.
func (w *work) result(s spec) (*result, error) {
	f, err := os.Open(w.events(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Statef("converging: %w", err)
	}
	defer f.Close()
	r, err := readEvents(f, w.set)
	if err != nil {
		return nil, fault.Statef("converging: %s: %w", w.events(s), err)
	}
	if !r.finished {
		return nil, nil
	}
	return r, nil
}

// results are those of the runs that are done.
func (w *work) results(specs []spec) (map[spec]*result, error) {
	all := map[spec]*result{}
	for _, s := range specs {
		r, err := w.result(s)
		if err != nil {
			return nil, err
		}
		if r != nil {
			all[s] = r
		}
	}
	return all, nil
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
