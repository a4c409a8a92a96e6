// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/kernel"
	"pleach/merge/method"
)

// Sink takes the output of a merge, tensors by their index in the plan. Its methods
// may be called from several goroutines.
type Sink interface {
	// Has says that a tensor is there already.
	Has(tensor int) bool
	// WriteAt writes bytes of a tensor. b is reused afterwards.
	WriteAt(tensor int, b []byte, at int64) error
	// Done follows the last write of a tensor.
	Done(tensor int) error
}

// Limits is what a merge may take.
type Limits struct {
	Memory  int64 // bytes, of which Base are not for the merge itself
	Threads int
	Level   kernel.Level
}

// Base is the memory that a process takes besides what a merge holds: the program,
// its plan, and garbage.
const Base = 72 << 20

// Progress is told how many bytes of the output are done.
type Progress func(bytes int64)

// Run makes the tensors of a plan that the sink does not have. What a tensor becomes
// depends on the plan alone. What the method has to tell is added to Plan.Warnings.
func (p *Plan) Run(ctx context.Context, sink Sink, lim Limits, progress Progress) error {
	if p.Options.Compat {
		return p.runCompat(ctx, sink, lim, progress)
	}
	r := &runner{plan: p, sink: sink, level: lim.Level, progress: progress, warns: map[int][]string{}}
	if err := r.measure(lim); err != nil {
		return err
	}
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	r.ctx = ctx
	if err := r.run(2 * lim.Threads); err != nil {
		return err
	}
	p.Warnings = append(p.Warnings, r.warnings()...)
	return nil
}

// warnings are those of the jobs. The first tensor that has one stands for all.
func (r *runner) warnings() []string {
	var all problems
	for i := range r.plan.Tensors {
		for _, w := range r.warns[i] {
			all.add("job", 0, errors.New(w))
		}
	}
	return all.texts()
}

// Fits refuses limits that are too tight for the merge, as Run does when it begins.
func (p *Plan) Fits(lim Limits) error {
	if p.Options.Compat {
		return p.compatFits(lim)
	}
	_, _, _, err := (&runner{plan: p, level: lim.Level}).needs(lim)
	return err
}

// runner is a merge at work: one goroutine begins tensors in their order, a few
// conduct the passes of one each, and workers compute blocks.
type runner struct {
	plan     *Plan
	sink     Sink
	level    kernel.Level
	progress Progress
	ctx      context.Context
	stop     context.CancelCauseFunc

	places int // tensors in work at a time
	block  int // elements that a worker reads at a time, about
	arena  *arena
	jobs   *budget // bytes that jobs hold
	items  chan func(w *worker)

	mu    sync.Mutex
	done  int64
	warns map[int][]string // by the index of the tensor
}

// conductors is how many tensors are in work at a time. Several leave nobody idle at
// the end of a pass; one on few processors has more of its inputs in the cache.
func conductors(threads int) int { return max(1, threads/2) }

func (r *runner) run(workers int) error {
	r.items = make(chan func(w *worker))
	var work, conduct sync.WaitGroup
	for range workers {
		work.Go(func() {
			w := &worker{}
			for do := range r.items {
				do(w)
			}
		})
	}
	places := make(chan struct{}, r.places)
	for i := range r.plan.Tensors {
		if r.sink.Has(i) {
			continue
		}
		places <- struct{}{}
		s, err := r.begin(i)
		if err != nil {
			r.stop(err)
		}
		if r.ctx.Err() != nil {
			break
		}
		conduct.Go(func() {
			if err := s.conduct(); err != nil {
				r.stop(err)
			}
			s.end()
			<-places
		})
	}
	conduct.Wait()
	close(r.items)
	work.Wait()
	return context.Cause(r.ctx)
}

// problem is a tensor as its method sees it.
func (p *Plan) problem(t *Tensor, l kernel.Level) method.Problem {
	q := method.Problem{
		Name: cmp.Or(t.DrawAs, t.Name), Shape: t.Shape, Base: t.Base, Global: t.Global, Seed: p.Options.Seed,
		Optional: t.Optional, Level: l,
	}
	for _, in := range t.Inputs {
		q.Inputs = append(q.Inputs, method.Input{
			Model: p.Models[in.Model].Name, Number: in.Number, Params: in.Params,
		})
	}
	return q
}

// measure divides the memory: buffers of workers, what jobs hold, and the arena, in
// which whole inputs are held if they fit.
func (r *runner) measure(lim Limits) error {
	need, job, held, err := r.needs(lim)
	if err != nil {
		return err
	}
	r.places = conductors(lim.Threads)
	share := max(job, min(lim.Memory/8, int64(r.places)*job))
	share = min(share, lim.Memory-need+job)
	r.jobs = newBudget(share)
	// More than the largest tensor and some small ones beside it would be new memory for
	// no gain.
	r.arena = newArena(int(min(lim.Memory-need+job-share, int64(max(held+held/4, 256<<20)), int64(r.places*held))))
	return nil
}

// needs chooses the size of blocks. It returns the bytes that the merge cannot do
// without, those of them that the largest job holds, and what the inputs of a tensor
// take in the arena.
func (r *runner) needs(lim Limits) (need, job int64, held int, err error) {
	most := 0
	for r.block = 1 << 18; ; r.block /= 2 {
		most = 0
		for i := range r.plan.Tensors {
			t := &r.plan.Tensors[i]
			if t.Copy {
				most = max(most, 2*min(r.block, t.Len())*t.DType.Size())
				continue
			}
			j, err := r.plan.Method.New(r.plan.problem(t, r.level))
			if err != nil {
				return 0, 0, 0, err
			}
			most = max(most, r.buffers(t, j))
			job = max(job, j.Memory())
			held = max(held, r.plan.heldBytes(t))
		}
		if int64(most*2*lim.Threads) <= lim.Memory/4 || r.block <= method.Flat {
			break
		}
	}
	need = Base + int64(2*lim.Threads*most) + job + r.plan.reading(2*lim.Threads)
	if need > lim.Memory {
		return 0, 0, 0, fault.Configf("merge: memory: got %v, want at least %v for %d threads",
			unit.Bytes(lim.Memory).Rounded(), unit.Bytes(need).Rounded(), lim.Threads)
	}
	return need, job, held, nil
}

// reading is an upper bound of the bytes that so many goroutines take to read inputs:
// factors of adapters, where the rows of vocabularies are, and buffers of files.
func (p *Plan) reading(readers int) int64 {
	var n, each int64
	floats := p.Vocabulary != nil
	for i := range p.Tensors {
		t := &p.Tensors[i]
		for _, in := range t.Inputs {
			floats = floats || !slices.Equal(in.Shape, t.Shape)
			if t.Embed && p.Vocabulary != nil {
				n += p.Vocabulary.Memory(t.Shape[1])
			}
		}
	}
	for _, m := range p.Models {
		if m.Adapter != nil {
			n += m.Adapter.Memory(readers)
		}
		each = max(each, m.Weights.Memory(floats || m.Adapter != nil))
	}
	return n + int64(readers)*each
}

// heldBytes is an upper bound of what the inputs of a tensor take in the arena: what
// is more than a range of a file is held as float32.
func (p *Plan) heldBytes(t *Tensor) int {
	n := 0
	for _, in := range t.Inputs {
		size := in.DType.Size()
		a := p.Models[in.Model].Adapter
		if !slices.Equal(in.Shape, t.Shape) || p.Vocabulary != nil && t.Embed || a != nil && a.Touches(in.Name) {
			size = max(4, size)
		}
		n += t.Len()*size + align
	}
	return n
}

// Len is the number of elements.
func (t *Tensor) Len() int { return int(elements(t.Shape)) }

// perBlock is the number of elements of a block: whole chunks.
func (r *runner) perBlock(j method.Job) int { return max(1, r.block/j.Chunk()) * j.Chunk() }

// buffers is an upper bound of what one worker needs for a tensor.
func (r *runner) buffers(t *Tensor, j method.Job) int {
	block, chunk := min(r.perBlock(j), t.Len()), min(j.Chunk(), t.Len())
	n := 4*j.Scratch() + 6*chunk + block*t.DType.Size() + 4*block
	for _, in := range t.Inputs {
		n += 4*chunk + block*max(4, in.DType.Size())
	}
	return n
}

// add counts bytes of the output.
func (r *runner) add(n int) {
	if r.progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done += int64(n)
	r.progress(r.done)
}

// warn keeps what a job has to tell.
func (r *runner) warn(tensor int, list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(list) > 0 {
		r.warns[tensor] = list
	}
}

// fail names the tensor of an error, unless that does so itself.
func (t *Tensor) fail(err error) error {
	if s := err.Error(); strings.HasPrefix(s, "merge: ") && strings.Contains(s, t.Name) {
		return err
	}
	return fmt.Errorf("merge: tensor %s: %w", t.Name, err)
}
