// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"flag"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var soakFlag = flag.Duration("soak", 2*time.Second, "how long products on AMX are disturbed")

// needAMX skips without the processor, or without its permission.
func needAMX(t *testing.T) {
	t.Helper()
	switch {
	case amxFound().ok:
	case Denied() != "":
		t.Skip(Denied())
	default:
		t.Skip("this processor has no AMX")
	}
}

// TestAMXGrid compares the kernels on the processor with plain Go, on all kinds of
// numbers.
func TestAMXGrid(t *testing.T) {
	needAMX(t)
	b := newBench(t, AMX)
	for _, s := range amxShapes {
		for range 500 {
			var m machine
			g := b.grid(s.rows, s.cols, s.stream)
			b.prepare(&m, g)
			g.plain()
			g.processor()
			if err := g.different(); err != nil {
				t.Fatalf("%s: %v", g.name(), err)
			}
		}
	}
}

// TestAMXRefused: without AMX the level is absent, is refused by name, and is not
// used in disguise.
func TestAMXRefused(t *testing.T) {
	if amxFound().ok {
		t.Skip("this processor has AMX")
	}
	if l, err := ParseLevel("amx"); err == nil {
		t.Errorf("got %v, want an error", l)
	}
	for _, l := range Levels() {
		if l.tiled() {
			t.Errorf("got %v among the levels", Levels())
		}
	}
}

// TestAMXCheck: a level that computes other bits is found out.
func TestAMXCheck(t *testing.T) {
	if !hasAVX512() {
		t.Skip("no AVX-512")
	}
	if why := amxCheck(AMXPlain); why != "" {
		t.Errorf("got %q of the plain tiles themselves", why)
	}
	if why := amxCheck(AVX512); why == "" {
		t.Error("got nothing of a level with other bits")
	}
}

// TestAMXSoak: products have the same bits while the collector runs all the time,
// signals arrive as those of Go's scheduler do, and goroutines change threads.
//
//	go test ./kernel -run TestAMXSoak -soak 1m
func TestAMXSoak(t *testing.T) {
	needAMX(t)
	disturbed(t, AMX, *soakFlag)
}

// TestAMXSoakPlain is the same for a moment without tiles, so that the test itself is
// tested.
func TestAMXSoakPlain(t *testing.T) {
	if !hasAVX512() {
		t.Skip("no AVX-512")
	}
	disturbed(t, AVX512, 20*time.Millisecond)
}

func disturbed(t *testing.T, l Level, long time.Duration) {
	b := newBench(t, l)
	const m, n, k = 150, 170, 600
	x, y := b.halves(m*k), b.halves(k*n)
	want := make([]float32, m*n)
	l.GemmTN16(want, x, y, m, n, k, n, m, n, false, make([]float32, l.GemmScratch16()))
	var stop atomic.Bool
	var noise, work sync.WaitGroup
	noise.Go(func() {
		for !stop.Load() {
			runtime.GC()
		}
	})
	noise.Go(func() {
		for !stop.Load() {
			if err := unix.Kill(os.Getpid(), unix.SIGURG); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(20 * time.Microsecond)
		}
	})
	var products, wrong atomic.Int64
	began := time.Now()
	for range 4 * runtime.GOMAXPROCS(0) {
		work.Go(func() {
			c, scratch := make([]float32, m*n), make([]float32, l.GemmScratch16())
			for time.Since(began) < long {
				l.GemmTN16(c, x, y, m, n, k, n, m, n, false, scratch)
				products.Add(1)
				for i, v := range c {
					if math.Float32bits(v) != math.Float32bits(want[i]) {
						wrong.Add(1)
						break
					}
				}
				runtime.Gosched()
			}
		})
	}
	work.Wait()
	stop.Store(true)
	noise.Wait()
	t.Logf("%d products", products.Load())
	if wrong.Load() > 0 {
		t.Errorf("%d of %d products differ", wrong.Load(), products.Load())
	}
}
