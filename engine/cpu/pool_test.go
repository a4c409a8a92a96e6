// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestPool runs many tiny jobs, with pauses in which workers park, and wants
// every tile to be run once.
func TestPool(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 8} {
		p := newPool(threads)
		count := make([]atomic.Int32, 7)
		jobs := []*job{}
		for n := range len(count) + 1 {
			jobs = append(jobs, &job{phase: phase{tiles: n, run: func(_, tile int) { count[tile].Add(1) }}})
		}
		for i := range 3000 {
			j := jobs[i%len(jobs)]
			p.do(j)
			for tile := range count {
				want := int32(0)
				if tile < j.tiles {
					want = 1
				}
				if got := count[tile].Swap(0); got != want {
					t.Fatalf("%d threads, job %d: tile %d of %d ran %d times", threads, i, tile, j.tiles, got)
				}
			}
			if i%300 == 0 {
				time.Sleep(2 * spin) // everybody parks
			}
		}
		p.close()
		p.close()
	}
}

// TestPoolOrder wants a job to see what the job before it has written: plain
// memory, for the race detector.
func TestPoolOrder(t *testing.T) {
	p := newPool(4)
	defer p.close()
	x, y := make([]int, 64), make([]int, 64)
	forth := &job{phase: phase{tiles: 64, run: func(_, i int) { y[i] = x[63-i] + 1 }}}
	back := &job{phase: phase{tiles: 64, run: func(_, i int) { x[i] = y[63-i] }}}
	const rounds = 500
	for range rounds {
		p.do(forth)
		p.do(back)
	}
	for i, v := range x {
		if v != rounds {
			t.Fatalf("element %d: got %d, want %d", i, v, rounds)
		}
	}
}

// TestPoolDelay wants do to wait for a worker that is slow with its tile, and a
// worker that comes late to harm nobody.
func TestPoolDelay(t *testing.T) {
	p := newPool(3)
	defer p.close()
	var ran atomic.Int32
	slow := &job{phase: phase{tiles: 5, run: func(worker, tile int) {
		if worker > 0 {
			time.Sleep(3 * time.Millisecond)
		}
		ran.Add(1)
	}}}
	quick := &job{phase: phase{tiles: 2, run: func(int, int) { ran.Add(1) }}}
	for i := range 20 {
		p.do(slow)
		p.do(quick)
		if got := ran.Swap(0); got != 7 {
			t.Fatalf("round %d: %d tiles ran, want 7", i, got)
		}
	}
}

// TestPoolTakeover stops a worker in the middle of a tile, as a system does that
// gives its processor to somebody else: all other tiles are done by others
// before it goes on.
func TestPoolTakeover(t *testing.T) {
	const tiles = 50
	p := newPool(3)
	defer p.close()
	var stuck atomic.Bool
	var others atomic.Int32
	all := make(chan struct{})
	j := &job{phase: phase{tiles: tiles, run: func(worker, _ int) {
		if worker == 1 {
			stuck.Store(true)
			<-all
			return
		}
		for !stuck.Load() { // worker 1 has its tile first
			time.Sleep(10 * time.Microsecond)
		}
		if others.Add(1) == tiles-1 {
			close(all)
		}
	}}}
	p.do(j)
	if got := others.Load(); got != tiles-1 {
		t.Errorf("the others ran %d tiles, want %d", got, tiles-1)
	}
}

// TestPoolPark wants a caller that has parked to be woken by the last tile,
// whoever runs it.
func TestPoolPark(t *testing.T) {
	p := newPool(4)
	defer p.close()
	var ran atomic.Int32
	j := &job{phase: phase{tiles: 4, run: func(worker, _ int) {
		if worker > 0 {
			time.Sleep(3 * spin * time.Duration(worker))
		}
		ran.Add(1)
	}}}
	for i := range 100 {
		p.do(j)
		if got := ran.Swap(0); got != 4 {
			t.Fatalf("round %d: %d tiles ran, want 4", i, got)
		}
	}
}

// TestClose wants the workers of a closed engine to be gone, whether they were
// parked or not.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 20 {
		e := New(Options{Threads: 5})
		if i%2 == 0 {
			time.Sleep(2 * spin)
		}
		for range 2 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// BenchmarkPool is the time from one job to the next: tiles that do nothing, and
// a job after everybody has parked.
func BenchmarkPool(b *testing.B) {
	p := newPool(2)
	defer p.close()
	j := &job{phase: phase{tiles: 4, run: func(int, int) {}}}
	b.Run("spinning", func(b *testing.B) {
		for b.Loop() {
			p.do(j)
		}
	})
	b.Run("parked", func(b *testing.B) {
		var awake time.Duration
		for b.Loop() {
			time.Sleep(2 * spin)
			begin := time.Now()
			p.do(j)
			awake += time.Since(begin)
		}
		b.ReportMetric(float64(awake.Nanoseconds())/float64(b.N), "ns/job")
	})
}
