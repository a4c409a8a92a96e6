// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"pleach/blob"
	"pleach/internal/fault"
	"pleach/internal/unit"
)

func newGet() *cobra.Command {
	var o getOptions
	c := &cobra.Command{
		Use:   "get URL [DIR]",
		Short: "Fetch a model or a data set into a folder",
		Long: `Get copies a repository of the Hugging Face hub, or what lies below a URL of an
object store, into a folder; its name is that of the repository if none is given.
The folder appears when it is complete: until then everything is in DIR.part, and
the same command after a failure, a kill or a power cut goes on from there. Files
of the hub are compared with their hashes. Nothing is fetched if the disk has too
little room for it.

Private and gated repositories need HF_TOKEN, or the token that "hf auth login"
leaves; HF_ENDPOINT names another hub. Object stores find credentials as their
vendor's own tools do.`,
		Example: `  pleach get hf://meta-llama/Llama-3.2-1B
  pleach get hf://HuggingFaceTB/SmolLM2-135M@main models/smollm --include '*.safetensors' --include '*.json'
  pleach get hf://datasets/roneneldan/TinyStories stories --exclude '*.parquet'
  pleach get 's3://corpus/pubmed/*.parquet?region=us-east-1' pubmed`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if o.jobs < 1 || o.jobs > 64 {
				return errUsage(c, "--jobs: got %d, want 1 to 64", o.jobs)
			}
			for _, p := range slices.Concat(o.include, o.exclude) {
				if _, err := path.Match(p, ""); err != nil {
					return errUsage(c, "pattern %q: %v", p, err)
				}
			}
			dir := ""
			if len(args) > 1 {
				dir = args[1]
			}
			return o.run(c.Context(), c.ErrOrStderr(), args[0], dir)
		},
	}
	c.Flags().StringArrayVar(&o.include, "include", nil, "fetch only files that match this pattern; may be repeated")
	c.Flags().StringArrayVar(&o.exclude, "exclude", nil, "fetch no files that match this pattern; may be repeated")
	c.Flags().IntVar(&o.jobs, "jobs", 4, "fetch so many files at a time")
	return c
}

type getOptions struct {
	include, exclude []string
	jobs             int
}

func (o *getOptions) run(ctx context.Context, w io.Writer, url, dir string) error {
	if !blob.IsRemote(url) {
		return fault.Configf("get: %s: want a URL such as hf://org/name or s3://bucket/folder", url)
	}
	if dir == "" {
		if dir = usualDir(url); dir == "" {
			return fault.Configf("get: %s: name the folder that it is to go to", url)
		}
	}
	s := newScreen(w)
	r, err := newRemote(func(m string) { s.say("warning: %s", m) })
	if err != nil {
		return err
	}
	defer r.Close()
	objs, err := r.List(ctx, url)
	if err != nil {
		return err
	}
	objs = slices.DeleteFunc(objs, func(x blob.Object) bool { return !o.wanted(x.Rel) })
	if len(objs) == 0 {
		return fault.Configf("get: %s: no file is left by --include and --exclude", url)
	}
	p := newFetchProgress(s, r, objs)
	f := &blob.Fetch{Remote: r, Objects: objs, Dir: dir, Jobs: o.jobs, Progress: p.add}
	done, err := f.Run(ctx)
	p.end(done, err, dir)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fault.Machinef("get: stopped; the same command goes on from there")
	}
	return err
}

// wanted says whether a file is to be fetched.
func (o *getOptions) wanted(name string) bool {
	in := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return blob.Match(p, name) })
	}
	return (len(o.include) == 0 || in(o.include)) && !in(o.exclude)
}

// usualDir is the name of a repository, or of the last folder in a URL before a
// pattern; empty if it has none.
func usualDir(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "?")
	names := strings.Split(strings.TrimRight(rest, "/"), "/")
	if strings.HasPrefix(url, "hf://") {
		if names[0] == "datasets" || names[0] == "models" {
			names = names[1:]
		}
		if len(names) < 2 {
			return ""
		}
		name, _, _ := strings.Cut(names[1], "@")
		return name
	}
	for _, n := range slices.Backward(names) {
		if !strings.ContainsAny(n, "*?[") {
			return n
		}
	}
	return ""
}

// fetchProgress shows how far a fetch is. Its methods may be called by several
// goroutines.
type fetchProgress struct {
	mu    sync.Mutex
	s     *screen
	r     *blob.Remote
	began time.Time
	total int64
	have  int64
}

func newFetchProgress(s *screen, r *blob.Remote, objs []blob.Object) *fetchProgress {
	p := &fetchProgress{s: s, r: r, began: time.Now()}
	for _, o := range objs {
		p.total += o.Size
	}
	files := "1 file"
	if len(objs) > 1 {
		files = fmt.Sprintf("%d files", len(objs))
	}
	p.s.say("%s, %s", files, unit.Bytes(p.total).Rounded())
	return p
}

func (p *fetchProgress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.have += n
	at := time.Now()
	p.s.renew(at, false, p.line(at))
}

// line is how far it is. The speed is that of the network: what an earlier fetch
// left comes on top.
func (p *fetchProgress) line(at time.Time) string {
	s := unit.Bytes(p.have).Rounded() + " of " + unit.Bytes(p.total).Rounded()
	rate := float64(p.r.Stats().Bytes) / max(at.Sub(p.began).Seconds(), 1e-3)
	if rate < 1 {
		return s
	}
	left := time.Duration(float64(p.total-p.have) / rate * float64(time.Second))
	return fmt.Sprintf("%s  %s/s  %v left", s, unit.Bytes(rate).Rounded(), left.Round(time.Second))
}

// end says how it went.
func (p *fetchProgress) end(done bool, err error, dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.s.erase()
	s := p.r.Stats()
	if len(s.Retries) > 0 {
		p.s.say("tried again: %s", counts(s.Retries))
	}
	switch {
	case err != nil:
	case done:
		p.s.say("fetched %s in %v: %s", unit.Bytes(s.Bytes).Rounded(), time.Since(p.began).Round(time.Second), dir)
	default:
		p.s.say("nothing to do: %s has these files", dir)
	}
}
