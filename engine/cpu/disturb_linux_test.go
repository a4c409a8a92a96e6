// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pleach/engine/cpu"
	"pleach/model"
)

// disturbing makes the test binary a process that disturbs another one.
const disturbing = "PLEACH_TEST_DISTURB"

// TestDisturber is that process: it wants the last processor that it may use for
// 20 ms, sleeps for 20 ms, and so on until its input ends.
func TestDisturber(t *testing.T) {
	if os.Getenv(disturbing) == "" {
		t.Skip("started by BenchmarkDisturbed")
	}
	runtime.LockOSThread()
	var may, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	for i := range 1024 {
		if may.IsSet(i) {
			one.Zero()
			one.Set(i)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	if os.Getenv(disturbing) == "first" {
		a := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		if err := unix.SchedSetAttr(0, &a, 0); err != nil {
			fmt.Println("may not")
			return
		}
	}
	fmt.Println("ready")
	const half = 20 * time.Millisecond
	for begin := time.Now(); ; begin = begin.Add(2 * half) {
		for time.Since(begin) < half {
		}
		select {
		case <-ended:
			return
		case <-time.After(time.Until(begin.Add(2 * half))):
		}
	}
}

// disturb starts the process that disturbs, and returns how to end it. It is fair
// and shares with whoever is there, or comes first.
func disturb(b *testing.B, how string) (stop func()) {
	c := exec.Command(os.Args[0], "-test.run=^TestDisturber$")
	c.Env = append(os.Environ(), disturbing+"="+how)
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	said := make([]byte, 64)
	if n, err := out.Read(said); err != nil || string(said[:n]) != "ready\n" {
		b.Skipf("the disturber says: %s", said[:n])
	}
	return func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := c.Wait(); err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkDisturbed is a step with as many threads as there are processors, for
// a second each alone and while another process wants one of the processors half
// of the time; kept-% is the part of the speed that is left. Of two processors
// three quarters are left if the other process comes first, and seven eighths if
// it shares.
func BenchmarkDisturbed(b *testing.B) {
	for _, s := range benched[1:] {
		for _, how := range []string{"fair", "first"} {
			b.Run(fmt.Sprintf("D%d_L%d_V%d/%s", s.D, s.L, s.V, how), func(b *testing.B) { benchDisturbed(b, s, how) })
		}
	}
}

func benchDisturbed(b *testing.B, s model.Spec, how string) {
	e := cpu.New(cpu.Options{})
	defer e.Close()
	batch := model.Batch{B: 4, T: 256}
	tr := newBench(b, e, s, batch)
	n := 0
	rate := func() float64 {
		begin := time.Now()
		for done := 1; ; done++ {
			n++
			tr.step(n, 0, batch.B)
			if took := time.Since(begin); took > time.Second {
				return float64(done*batch.N()) / took.Seconds()
			}
		}
	}
	rate()
	var alone, disturbed float64
	for b.Loop() {
		alone += rate()
		stop := disturb(b, how)
		disturbed += rate()
		stop()
	}
	b.ReportMetric(alone/float64(b.N), "alone-tokens/s")
	b.ReportMetric(disturbed/float64(b.N), "disturbed-tokens/s")
	b.ReportMetric(100*disturbed/alone, "kept-%")
}
