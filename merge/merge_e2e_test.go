// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/kernel"
	"pleach/weights"
)

// TestDiskTooSmall wants an output that no disk has room for: it is refused before
// anything is written, and nothing is left.
func TestDiskTooSmall(t *testing.T) {
	layout, err := weights.NewPlan("model", 0, []weights.Source{
		{Name: "w", DType: half.F32, Shape: []int{1 << 28, 1 << 28}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tensors := []Tensor{{Name: "w", DType: half.F32, Shape: []int{1 << 28, 1 << 28}}}
	for _, resume := range []bool{false, true} {
		_, err = NewFolder(filepath.Join(dir, "out"), layout, tensors, []byte("x\n"), resume)
		if !errors.Is(err, fault.Machine) || !strings.Contains(err.Error(), "free on the disk, want 262144 TiB") {
			t.Errorf("resume %v: got %v, want that the disk is too small", resume, err)
		}
		if es, err := os.ReadDir(dir); err != nil || len(es) > 0 {
			t.Errorf("resume %v: got %v and error %v, want an empty folder", resume, es, err)
		}
	}
}

// TestFits finds the least memory with which a merge runs, and that it is also the
// least that Fits allows.
func TestFits(t *testing.T) {
	for _, compat := range []bool{false, true} {
		p := goldenPlan(t, "ties-f32", Options{Compat: compat})
		lim := Limits{Threads: 2, Level: kernel.Portable}
		low, high := int64(0), int64(1<<30)
		for high-low > 1 {
			lim.Memory = (low + high) / 2
			if p.Fits(lim) == nil {
				high = lim.Memory
			} else {
				low = lim.Memory
			}
		}
		lim.Memory = low
		if err := p.Run(t.Context(), NewMemory(p), lim, nil); !errors.Is(err, fault.Config) {
			t.Errorf("compat %v, %d bytes: got %v, want a refusal", compat, low, err)
		}
		lim.Memory = high
		if err := p.Run(t.Context(), NewMemory(p), lim, nil); err != nil {
			t.Errorf("compat %v, %d bytes: got %v, want none", compat, high, err)
		}
	}
}
