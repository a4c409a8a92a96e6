// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// Processor is the name that the system gives to the first processor, the
// architecture where it gives none.
func Processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, name, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(name)
		}
	}
	return runtime.GOARCH
}

// Options are those that the engine runs with, without zeros.
func (e *Engine) Options() Options { return Options{Level: e.level, Threads: e.threads} }
