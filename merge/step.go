// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"sync"

	"pleach/internal/fault"
	"pleach/kernel"
	"pleach/merge/method"
	"pleach/weights"
)

// step is the work on one tensor.
type step struct {
	r     *runner
	index int
	t     *Tensor
	views []view
	job   method.Job
	pass  *method.Pass // the next one
	hold  []byte       // of the arena: all inputs, one after the other
	held  [][]byte     // each of them, or nil if they are read for each pass
	full  []bool       // inputs of which held has all elements
	room  int64        // what the job may hold
	found []bool       // inputs known to be finite
}

// begin opens a tensor, waits for the memory that it needs, and decides whether its
// inputs are held: if there is more than one pass, and room.
func (r *runner) begin(i int) (*step, error) {
	s := &step{r: r, index: i, t: &r.plan.Tensors[i]}
	var err error
	if s.views, err = r.plan.views(s.t); err != nil || s.t.Copy {
		return s, err
	}
	if s.job, err = r.plan.Method.New(r.plan.problem(s.t, r.level)); err != nil {
		return s, err
	}
	s.room = s.job.Memory()
	r.jobs.take(s.room)
	if s.pass, err = s.job.Begin(); err != nil {
		return s, s.t.fail(err)
	}
	s.found, s.full = make([]bool, len(s.views)), make([]bool, len(s.views))
	n := s.t.Len()
	whole := 0
	for _, v := range s.views {
		whole += (n*v.held.Size() + align - 1) / align * align
	}
	if s.pass.Writes || n == 0 || whole > len(r.arena.buf) {
		return s, nil
	}
	s.hold = r.arena.take(whole)
	at := 0
	for _, v := range s.views {
		size := n * v.held.Size()
		s.held = append(s.held, s.hold[at:at+size])
		at += (size + align - 1) / align * align
	}
	return s, nil
}

// end gives back what begin took.
func (s *step) end() {
	s.r.arena.give(s.hold)
	s.r.jobs.give(s.room)
}

func (s *step) conduct() error {
	if s.t.Copy {
		if err := s.each(s.t.Len(), s.r.block, s.copy); err != nil {
			return err
		}
		return s.finish()
	}
	for s.pass != nil {
		if err := s.walk(); err != nil {
			return err
		}
		var err error
		if s.pass, err = s.job.Begin(); err != nil {
			return s.t.fail(err)
		}
	}
	return s.finish()
}

func (s *step) finish() error {
	if err := s.r.ctx.Err(); err != nil {
		return err
	}
	if j, ok := s.job.(method.Warner); ok {
		s.r.warn(s.index, j.Warnings())
	}
	return s.r.sink.Done(s.index)
}

// each has workers do all ranges of n elements, and waits for them.
func (s *step) each(n, size int, do func(w *worker, lo, hi int) error) error {
	var g sync.WaitGroup
	for lo := 0; lo < n; lo += size {
		if err := s.send(&g, lo, min(lo+size, n), do); err != nil {
			break
		}
	}
	g.Wait()
	return s.r.ctx.Err()
}

func (s *step) send(g *sync.WaitGroup, lo, hi int, do func(w *worker, lo, hi int) error) error {
	g.Add(1)
	item := func(w *worker) {
		defer g.Done() // after a failure is known: whoever waits looks at the context
		if s.r.ctx.Err() != nil {
			return
		}
		if err := do(w, lo, hi); err != nil {
			s.r.stop(err)
		}
	}
	select {
	case s.r.items <- item:
		return nil
	case <-s.r.ctx.Done():
		g.Done()
		return s.r.ctx.Err()
	}
}

// walk does the next pass.
func (s *step) walk() error {
	if s.pass.Chunks == nil {
		if err := s.each(s.t.Len(), s.r.perBlock(s.job), s.compute); err != nil {
			return err
		}
		for i := range s.found { // all elements were seen
			s.found[i] = s.found[i] || s.needs(i)
			s.full[i] = s.held != nil && s.found[i]
		}
		return nil
	}
	var g sync.WaitGroup
	size := s.job.Chunk()
	for _, c := range s.pass.Chunks {
		if err := s.send(&g, c*size, min((c+1)*size, s.t.Len()), s.compute); err != nil {
			break
		}
	}
	g.Wait()
	return s.r.ctx.Err()
}

func (s *step) needs(i int) bool { return s.pass.Need == nil || s.pass.Need[i] }

// worker is the buffers of one goroutine.
type worker struct {
	raw     [][]byte    // a block of each input, where it is
	buf     [][]byte    // room for blocks of inputs that are not held
	in      [][]float32 // a chunk of each
	out     []float32   // a chunk
	bytes   []byte      // a block of the output
	block   []float32   // a block of one input
	scratch []float32
	half    []uint16 // a chunk in 16 bits
}

// room is b with at least n elements.
func room[E any](b []E, n int) []E {
	if cap(b) < n {
		return make([]E, n)
	}
	return b[:n]
}

func (w *worker) prepare(inputs int) {
	for len(w.raw) < inputs {
		w.raw, w.buf, w.in = append(w.raw, nil), append(w.buf, nil), append(w.in, nil)
	}
}

// compute does the pass on elements lo to hi, whole chunks but for the last one.
func (s *step) compute(w *worker, lo, hi int) error {
	w.prepare(len(s.views))
	for i := range s.views {
		if err := s.get(w, i, lo, hi); err != nil {
			return s.t.fail(err)
		}
	}
	if s.pass.Writes {
		w.bytes = room(w.bytes, (hi-lo)*s.t.DType.Size())
	}
	for at := lo; at < hi; at += s.job.Chunk() {
		if err := s.chunk(w, lo, at, min(at+s.job.Chunk(), hi)); err != nil {
			return s.t.fail(err)
		}
	}
	if !s.pass.Writes {
		return nil
	}
	s.r.add(len(w.bytes))
	return s.r.sink.WriteAt(s.index, w.bytes, int64(lo*s.t.DType.Size()))
}

// get makes elements lo to hi of an input available in w.raw. A pass over all
// elements of inputs that are held reads them into their place on the way.
func (s *step) get(w *worker, i, lo, hi int) error {
	if !s.needs(i) {
		return nil
	}
	v := &s.views[i]
	size := v.held.Size()
	if s.full[i] {
		w.raw[i] = s.held[i][lo*size : hi*size]
		return nil
	}
	if s.held != nil && s.pass.Chunks == nil {
		w.raw[i] = s.held[i][lo*size : hi*size]
	} else {
		w.buf[i] = room(w.buf[i], (hi-lo)*size)
		w.raw[i] = w.buf[i]
	}
	if v.read != nil {
		w.block = room(w.block, hi-lo)
	}
	return v.fetch(lo, hi, w.raw[i], w.block)
}

// chunk does elements at to end, of a block that begins at lo.
func (s *step) chunk(w *worker, lo, at, end int) error {
	c := &method.Chunk{Index: at / s.job.Chunk(), Lo: at, In: make([][]float32, len(s.views))}
	for i := range s.views {
		if !s.needs(i) {
			continue
		}
		size := s.views[i].held.Size()
		b := w.raw[i][(at-lo)*size:][:(end-at)*size]
		w.in[i] = room(w.in[i], end-at)
		c.In[i] = w.in[i]
		if err := s.widen(w, i, at, c.In[i], b); err != nil {
			return err
		}
	}
	if s.pass.Writes {
		w.out = room(w.out, end-at)
		c.Out = w.out
	}
	w.scratch = room(w.scratch, s.job.Scratch())
	c.Scratch = w.scratch
	if err := s.pass.Do(c); err != nil || !s.pass.Writes {
		return err
	}
	return s.narrow(at, w.bytes[(at-lo)*s.t.DType.Size():][:(end-at)*s.t.DType.Size()], c.Out)
}

// widen sets x to elements of an input from at on, in the type to compute with.
func (s *step) widen(w *worker, i, at int, x []float32, b []byte) error {
	v := &s.views[i]
	if err := widen(s.r.level, x, v.held, b); err != nil {
		return err
	}
	if !s.found[i] && !s.r.plan.Options.NonFinite {
		what := "model " + v.model
		if v.input.Name != s.t.Name {
			what += ": tensor " + v.input.Name
		}
		if err := finite(s.r.level, x, at, s.t.Shape, what); err != nil {
			return err
		}
	}
	if s.t.HasCast && s.t.Cast != v.held {
		w.half = room(w.half, len(x))
		round(s.r.level, x, s.t.Cast, w.half)
	}
	return nil
}

// finite refuses NaN and infinities.
func finite(l kernel.Level, x []float32, at int, shape []int, what string) error {
	if v := l.Largest(x); v == v {
		return nil
	}
	i := weights.NonFinite(x)
	return fault.Dataf("%s: element %d of shape %d is %v (--allow-nonfinite computes with it)",
		what, at+i, shape, x[i])
}

// narrow rounds a part of the output to its type.
func (s *step) narrow(at int, dst []byte, x []float32) error {
	if !s.r.plan.Options.NonFinite {
		if err := fitting(s.r.level, x, at, s.t); err != nil {
			return err
		}
	}
	return narrow(s.r.level, dst, s.t.DType, x)
}

// fitting refuses an output that is not finite, or would not be in its type.
func fitting(l kernel.Level, x []float32, at int, t *Tensor) error {
	limit := t.DType.Overflow()
	if v := l.Largest(x); v < limit {
		return nil
	}
	for i, v := range x {
		if !(max(v, -v) < limit) {
			return fault.Dataf("the result: element %d of shape %d is %v, which %v cannot hold (--allow-nonfinite writes it)",
				at+i, t.Shape, v, t.DType)
		}
	}
	return nil
}

// copy copies elements that are no floats, and compares them with other inputs.
func (s *step) copy(w *worker, lo, hi int) error {
	w.prepare(2)
	size := s.t.DType.Size()
	for i := range s.views {
		b := room(w.buf[min(i, 1)], (hi-lo)*size)
		w.buf[min(i, 1)] = b
		if err := s.views[i].raw(lo, hi, b); err != nil {
			return s.t.fail(err)
		}
		if i > 0 && !bytes.Equal(b, w.buf[0]) {
			return s.t.fail(fault.Dataf("elements of type %v are copied, but those of model %s and model %s differ",
				s.t.DType, s.views[0].model, s.views[i].model))
		}
	}
	s.r.add((hi - lo) * size)
	return s.r.sink.WriteAt(s.index, w.buf[0], int64(lo*size))
}
