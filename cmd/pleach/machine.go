// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
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

// available is the number of bytes that this process may still take without
// swapping, 0 if the system does not say: what Linux calls available, and no
// more than the control group has left.
func available() int {
	free := meminfo("MemAvailable")
	for _, group := range []struct{ limit, used string }{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, ok := number(group.limit)
		used, also := number(group.used)
		if ok && also && limit > used && (free == 0 || limit-used < free) {
			free = limit - used
		}
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

func number(path string) (int, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil
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

// defaultThreads is the number of processors that this process may use: Go takes
// the limits of control groups into account.
func defaultThreads() int { return runtime.GOMAXPROCS(0) }
