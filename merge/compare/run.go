// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"sync"

	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/kernel"
)

// Chunk is how many elements are measured at a time. Sums are rounded at its borders,
// so it is a part of what the figures are.
const Chunk = 1 << 16

// Job is models to compare, two or more. Base is what they were made from; nil if
// that is not known.
type Job struct {
	Models  []Model
	Base    *Model
	Level   kernel.Level
	Threads int   // 1 at least
	Memory  int64 // bytes that buffers may take; fewer threads run if they need more

	// Progress is told how many bytes of the models have been read, by one goroutine
	// at a time; nil if nobody asks.
	Progress func(done, total int64)
}

// Tensor is what was measured of one tensor.
type Tensor struct {
	Place
	Name  string
	Shape []int // that was compared
	Sums  Sums
}

// Result is what was measured: tensors in the order of the first model's files.
type Result struct {
	Models  int
	Base    bool
	Tensors []Tensor
	Notes   []string // what was not compared, or not whole
}

// Run reads the models and measures them. Models that do not match are an error of
// kind fault.Config that names each tensor; NaN and infinities are one of kind
// fault.Data that names the first element.
func Run(ctx context.Context, job Job) (*Result, error) {
	if len(job.Models) < 2 {
		return nil, fault.Configf("compare: got %d models, want two or more", len(job.Models))
	}
	models := job.Models
	if job.Base != nil {
		models = append(models[:len(models):len(models)], *job.Base)
	}
	all, notes, err := match(models)
	if err != nil {
		return nil, err
	}
	threads, err := job.workers()
	if err != nil {
		return nil, err
	}
	r := &run{job: job, models: models, all: all, parts: make([]parts, len(all))}
	for i := range all {
		r.total += int64(all[i].elements) * r.elementBytes(i)
	}
	if err := r.run(ctx, threads); err != nil {
		return nil, err
	}
	res := &Result{Models: len(job.Models), Base: job.Base != nil, Notes: notes}
	for i, t := range all {
		res.Tensors = append(res.Tensors, Tensor{t.Place, t.name, t.shape, r.parts[i].sum})
	}
	return res, nil
}

// workers is how many threads the memory allows.
func (job Job) workers() (int, error) {
	buffers := len(job.Models) + 2            // and of the base, and of a difference
	each := int64(Chunk) * int64(4*buffers+8) // reading takes a buffer of bytes
	if job.Memory < each {
		return 0, fault.Configf("compare: memory: got %v, want at least %v for %d models",
			unit.Bytes(job.Memory), unit.Bytes(each), len(job.Models))
	}
	return int(min(int64(max(job.Threads, 1)), job.Memory/each)), nil
}

// run is a job at work.
type run struct {
	job    Job
	models []Model // and the base
	all    []matched
	parts  []parts
	total  int64

	mu   sync.Mutex // of what follows, and of parts
	done int64
	bad  task
	err  error
}

// parts are the sums of the chunks of a tensor until they are added, in order.
type parts struct {
	chunks []Sums
	left   int
	sum    Sums
}

// task is a chunk of a tensor.
type task struct{ tensor, chunk int }

func (t task) before(o task) bool {
	return t.tensor < o.tensor || t.tensor == o.tensor && t.chunk < o.chunk
}

// run hands out tasks in order. After a failure no more are handed out, but those
// that were are finished, so that the first failure is found whoever meets it.
func (r *run) run(ctx context.Context, threads int) error {
	tasks := make(chan task)
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			b := newBuffers(len(r.models))
			for t := range tasks {
				r.finish(t, b, ctx)
			}
		})
	}
	r.feed(ctx, tasks)
	close(tasks)
	wg.Wait()
	if r.err == nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return r.err
}

func (r *run) feed(ctx context.Context, tasks chan<- task) {
	for i := range r.all {
		n := (r.all[i].elements + Chunk - 1) / Chunk
		r.mu.Lock()
		p := &r.parts[i]
		p.sum = newSums(len(r.job.Models), r.job.Base != nil)
		p.chunks, p.left = make([]Sums, n), n
		r.mu.Unlock()
		for c := range n {
			if ctx.Err() != nil || r.hasFailed() {
				return
			}
			tasks <- task{i, c}
		}
	}
}

func (r *run) hasFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// buffers are what a worker reads into.
type buffers struct {
	models  [][]float32
	scratch []float32
}

func newBuffers(n int) *buffers {
	b := &buffers{scratch: make([]float32, Chunk)}
	for range n {
		b.models = append(b.models, make([]float32, Chunk))
	}
	return b
}

// finish does a task and keeps what came of it.
func (r *run) finish(t task, b *buffers, ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	s, n, err := r.measure(t, b)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.err == nil || t.before(r.bad) {
			r.err, r.bad = err, t
		}
		return
	}
	p := &r.parts[t.tensor]
	p.chunks[t.chunk] = s
	if p.left--; p.left == 0 {
		for i := range p.chunks {
			p.sum.Add(&p.chunks[i])
		}
		p.chunks = nil
	}
	r.done += int64(n) * r.elementBytes(t.tensor)
	if r.job.Progress != nil {
		r.job.Progress(r.done, r.total)
	}
}

// measure reads a chunk of every model.
func (r *run) measure(t task, b *buffers) (s Sums, n int, err error) {
	x := &r.all[t.tensor]
	lo := t.chunk * Chunk
	n = min(Chunk, x.elements-lo)
	part := make([][]float32, len(r.models))
	for i, m := range r.models {
		part[i] = b.models[i][:n]
		if err := m.Weights.Read(x.names[i], lo, lo+n, part[i]); err != nil {
			return s, n, err
		}
	}
	var base []float32
	if r.job.Base != nil {
		base, part = part[len(part)-1], part[:len(part)-1]
	}
	s = newSums(len(part), base != nil)
	s.measure(r.job.Level, part, base, b.scratch[:n])
	if s.finite() {
		return s, n, nil
	}
	for i, m := range r.models { // to name the element
		if err := m.Weights.ReadFinite(x.names[i], lo, lo+n, b.models[i][:n]); err != nil {
			return s, n, err
		}
	}
	return s, n, nil
}

// elementBytes is what an element of a tensor takes in all models.
func (r *run) elementBytes(tensor int) int64 {
	n := 0
	for i, m := range r.models {
		w, _ := m.Weights.Lookup(r.all[tensor].names[i])
		n += w.DType.Size()
	}
	return int64(n)
}
