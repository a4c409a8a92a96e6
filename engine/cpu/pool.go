// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"sync"
	"sync/atomic"
	"time"
)

// phase is a number of independent tiles of work. Tiles are handed out in
// order, each to whoever asks next.
type phase struct {
	tiles int
	run   func(worker, tile int)
}

// job is a phase with its progress.
type job struct {
	phase
	next atomic.Int64
	_    [56]byte // the two counters on lines of their own
	done atomic.Int64
}

// pool is the caller of do and threads−1 workers, who spin a little after
// their last tile and then park: a step is a long row of short phases, and a
// wake-up costs more than many of them.
type pool struct {
	seq     atomic.Uint64 // counts jobs
	cur     atomic.Pointer[job]
	closed  atomic.Bool
	workers []*worker
	running sync.WaitGroup

	waiting  atomic.Bool   // the caller has parked until the last tile is done
	finished chan struct{} // one place
}

type worker struct {
	parked atomic.Bool
	wake   chan struct{}
}

// spin is how long an idle worker looks for work before it parks.
const spin = 50 * time.Microsecond

func newPool(threads int) *pool {
	p := &pool{finished: make(chan struct{}, 1)}
	for i := range threads - 1 {
		w := &worker{wake: make(chan struct{}, 1)}
		p.workers = append(p.workers, w)
		p.running.Go(func() { p.serve(w, i+1) })
	}
	return p
}

// do runs a job and returns when all its tiles are done.
//
// A worker that comes late finds no tile left. If it comes so late that the job
// runs again, it takes tiles of that run, which is as good: the counter is reset
// only when everything before the job is done.
func (p *pool) do(j *job) {
	j.done.Store(0)
	j.next.Store(0)
	if j.tiles > 1 && len(p.workers) > 0 {
		p.cur.Store(j)
		p.seq.Add(1)
		for _, w := range p.workers {
			if w.parked.Load() && w.parked.CompareAndSwap(true, false) {
				w.wake <- struct{}{}
			}
		}
	}
	p.work(j, 0)
	if j.done.Load() < int64(j.tiles) {
		p.wait(j)
	}
}

// work runs tiles until none is left to take.
func (p *pool) work(j *job, worker int) {
	for {
		i := int(j.next.Add(1)) - 1
		if i >= j.tiles {
			return
		}
		j.run(worker, i)
		if j.done.Add(1) == int64(j.tiles) && p.waiting.Load() && p.waiting.CompareAndSwap(true, false) {
			p.finished <- struct{}{}
		}
	}
}

// wait returns when all tiles of j are done. It spins as long as an idle worker
// does; then a worker probably waits for a processor, and the caller's may be
// the one.
//
// A worker that ended the job before this one, and was late to look, may wake
// the caller too early: hence the loop.
func (p *pool) wait(j *job) {
	for start := time.Now(); time.Since(start) < spin; {
		for range 200 {
			if j.done.Load() == int64(j.tiles) {
				return
			}
		}
	}
	for j.done.Load() < int64(j.tiles) {
		p.waiting.Store(true)
		if j.done.Load() == int64(j.tiles) && p.waiting.CompareAndSwap(true, false) {
			return
		}
		<-p.finished
	}
}

// serve is the life of a worker.
func (p *pool) serve(w *worker, id int) {
	var last uint64
	for !p.closed.Load() {
		if s := p.seq.Load(); s != last {
			last = s
			p.work(p.cur.Load(), id)
			continue
		}
		p.idle(w, last)
	}
}

// idle returns when there is a job after last, or the pool is closed.
func (p *pool) idle(w *worker, last uint64) {
	for start := time.Now(); time.Since(start) < spin; {
		for range 200 {
			if p.seq.Load() != last {
				return
			}
		}
	}
	w.parked.Store(true)
	if (p.seq.Load() != last || p.closed.Load()) && w.parked.CompareAndSwap(true, false) {
		return
	}
	<-w.wake
}

// close returns when the workers have.
func (p *pool) close() {
	p.closed.Store(true)
	for _, w := range p.workers {
		if w.parked.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
	p.running.Wait()
}
