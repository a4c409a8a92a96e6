// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"pleach/engine/cpu"
	"pleach/internal/fault"
	"pleach/internal/unit"
	"pleach/program"
)

// system is the file system that this machine describes itself in.
func system() fs.FS { return os.DirFS("/") }

// available is the number of bytes that this process may still take without
// swapping, 0 if the system does not say: what Linux calls available, and no
// more than its control groups have left.
func available() int {
	free := meminfo("MemAvailable")
	if left, ok := (groups{system()}).freeMemory(); ok && (free == 0 || int(left) < free) {
		return max(1, int(left))
	}
	return free
}

// meminfo is a line of /proc/meminfo in bytes, 0 if there is none.
func meminfo(name string) int {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return n << 10
		}
	}
	return 0
}

// runtimeBytes is what a process will still take beside what it has and the
// buffers of its engine: rows made ahead, buffers of files, garbage.
const runtimeBytes = 16 << 20

// documentBytes is what a byte of a document takes while a lane has it in hand:
// the text, its ids, of which a small vocabulary makes many, and the room in
// which they grew. Measured with 500 words; more words take less.
const documentBytes = 4.5

// beside is what this process takes in all beside the buffers of its engine: the
// tokenizer, texts, the Go runtime, and what will come.
func beside() int {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.Sys-m.HeapReleased) + runtimeBytes
}

// limitMemory makes the garbage collector keep to a prediction: left alone it
// lets garbage grow to the size of the model. A little more is allowed, so that
// a prediction that is too low costs memory and not time. The limit is that of
// the process, and goes with undo.
func limitMemory(predicted int) (undo func()) {
	old := debug.SetMemoryLimit(int64(predicted) + int64(predicted)/20)
	return func() { debug.SetMemoryLimit(old) }
}

// fitsMemory refuses programs that this machine has no room for, before anything
// of them is allocated.
func fitsMemory(what string, run cpu.Options, programs ...*program.Program) error {
	m, err := cpu.Predict(run, 1, programs...)
	if err != nil {
		return err
	}
	need, have := m.Total()+beside(), available()
	if have > 0 && need > have {
		return fault.Configf("%s does not fit into memory: it needs %v (weights %v), this machine has %v free",
			what, unit.Bytes(need).Rounded(), unit.Bytes(m.State).Rounded(), unit.Bytes(have).Rounded())
	}
	return nil
}

// amount prints a count for people: 5.3 M.
func amount(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g", n)
}

// defaultThreads is the number of threads that this process can run at a time.
// Go counts the processors that it may use and looks at quotas of CPU time, but
// takes two at least; the second would only use up the time of the first.
// GOMAXPROCS overrides both.
func defaultThreads() int {
	n := runtime.GOMAXPROCS(0)
	if cpus, ok := (groups{system()}).cpus(); ok && os.Getenv("GOMAXPROCS") == "" {
		n = min(n, max(1, int(math.Ceil(cpus))))
	}
	return n
}

// grants is what this process may use of the machine.
type grants struct {
	processors, all int     // that it may run on; that the machine has, 0 if unknown
	cpus            float64 // of their time, 0 without a quota
	memory, total   int     // bytes: of its control groups, 0 without a limit; of the machine, 0 if unknown
}

func granted(root fs.FS) grants {
	g := groups{root}
	r := grants{
		processors: runtime.NumCPU(), all: countList(g.text("sys/devices/system/cpu/online")), total: meminfo("MemTotal"),
	}
	r.cpus, _ = g.cpus()
	if limit, ok := g.memory(); ok {
		r.memory = int(limit)
	}
	return r
}

// countList is how many numbers a list such as 0-3,8 has.
func countList(s string) int {
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		from, to, isRange := strings.Cut(part, "-")
		lo, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		hi := lo
		if isRange {
			if hi, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		n += max(0, hi-lo+1)
	}
	return n
}

// less says what this process lacks of the machine, nothing if it has all of it.
func (g grants) less() []string {
	var s []string
	if g.processors < g.all {
		s = append(s, fmt.Sprintf("%d of %d processors", g.processors, g.all))
	}
	if g.cpus > 0 && g.cpus < float64(g.processors) {
		s = append(s, fmt.Sprintf("the time of %.3g processors", g.cpus))
	}
	if g.memory > 0 && g.memory < g.total {
		s = append(s, fmt.Sprintf("%v of %v of memory", unit.Bytes(g.memory).Rounded(), unit.Bytes(g.total).Rounded()))
	}
	return s
}

// machineLine says what an engine with these options runs on.
func machineLine(run cpu.Options, g grants) string {
	s := fmt.Sprintf("machine: %s, kernels %v, threads %d", cpu.Processor(), run.Level, run.Threads)
	if run.Threads > g.processors {
		s += fmt.Sprintf(", more than processors (%d), which makes it slower", g.processors)
	}
	if less := g.less(); len(less) > 0 {
		s += "; this process is limited to " + strings.Join(less, ", ")
	}
	return s
}
