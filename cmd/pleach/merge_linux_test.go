// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pleach/half"
	"pleach/weights"
)

// writeSparse writes a model of zeros that takes no room on the disk: two tensors of
// 16 Mi elements, and four of 2 Mi.
func writeSparse(t testing.TB, dir string) {
	t.Helper()
	var list []weights.Source
	for i, rows := range []int{16384, 16384, 2048, 2048, 2048, 2048} {
		list = append(list, weights.Source{Name: fmt.Sprintf("layers.%d.w", i), DType: half.BF16, Shape: []int{rows, 1024}})
	}
	p, err := weights.NewPlan("model", 0, list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Files {
		w, err := os.Create(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write(f.Header())
		if err := errors.Join(err, w.Truncate(f.Bytes), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{\"architectures\": [\"Some\"]}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// watched is the largest resident size of a process that it has before it ends, in KiB.
// What getrusage says begins with the size of the test that started the process.
func watched(pid int) (most int64) {
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return most
		}
		if _, after, ok := strings.Cut(string(text), "VmHWM:"); ok {
			var now int64
			if _, err := fmt.Sscan(after, &now); err == nil {
				most = max(most, now)
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// TestMergePeak merges three models of 80 MiB, whose largest tensors do not fit, and
// looks at the largest resident size of the process.
func TestMergePeak(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		writeSparse(t, filepath.Join(dir, fmt.Sprint("m", i)))
	}
	for _, method := range []string{"linear", "ties", "dare_ties", "della", "model_stock"} {
		for _, limit := range []int64{112, 192} {
			text := "merge_method: " + method + "\n"
			if method != "linear" {
				text += "base_model: " + filepath.Join(dir, "m0") + "\n"
			}
			text += "models:\n"
			for i := range 3 {
				text += "  - model: " + filepath.Join(dir, fmt.Sprint("m", i)) + "\n"
				if method != "model_stock" {
					text += "    parameters: {weight: 0.5, density: 0.5}\n"
				}
			}
			config, out := filepath.Join(dir, "merge.yml"), filepath.Join(dir, fmt.Sprint(method, limit))
			if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			c := launch(t, "merge", config, out, "--threads", "2", "--max-memory", fmt.Sprint(limit, "MiB"))
			most := make(chan int64)
			go func() { most <- watched(c.Process.Pid) }()
			if c.end() != 0 {
				t.Fatal(c.said.String())
			}
			peak := <-most >> 10
			if peak == 0 {
				t.Fatalf("%s: the size of the process was never seen", method)
			}
			t.Logf("%s: %d MiB at most: %d MiB", method, limit, peak)
			if peak > limit {
				t.Errorf("%s: got %d MiB, want at most %d", method, peak, limit)
			}
			_ = os.RemoveAll(out)
		}
	}
}
