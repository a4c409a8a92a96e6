// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// TestAlike merges models whose config.json differ: one is told what makes them compute
// otherwise, whichever form it has.
func TestAlike(t *testing.T) {
	type object = map[string]any
	old := object{"rope_theta": 10000.0, "rope_scaling": nil, "num_attention_heads": 4, "rms_norm_eps": 1e-5}
	for name, c := range map[string]struct {
		config object
		want   []string
	}{
		"the same": {old, nil},
		"new keys": {object{
			"rope_parameters": object{"rope_theta": 1e4, "rope_type": "default"}, "rms_norm_eps": 0.00001,
		}, nil},
		"others": {object{"vocab_size": 7, "max_position_embeddings": 9, "hidden_act": "silu"}, nil},
		"theta":  {object{"rope_theta": 500000}, []string{"rope_theta 500000, but 10000 in a"}},
		"new theta": {
			object{"rope_parameters": object{"rope_theta": 5e5}},
			[]string{"rope_theta 500000, but 10000 in a"},
		},
		"old type": {
			object{"rope_scaling": object{"type": "linear", "factor": 2}},
			[]string{"rope_type linear, but default in a"},
		},
		"new type": {
			object{"rope_scaling": object{"rope_type": "llama3"}},
			[]string{"rope_type llama3, but default in a"},
		},
		"heads, eps": {
			object{"num_attention_heads": 2, "rms_norm_eps": 1e-6},
			[]string{"num_attention_heads 2, but 4 in a", "rms_norm_eps 0.000001, but 0.00001 in a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]*tiny{"a": tinyLlama(1).change(old, nil), "b": tinyLlama(1).change(c.config, nil)})
			p := w.mustPlan(t, "merge_method: linear\nparameters: {weight: 1}\nmodels:\n- model: a\n- model: b\n")
			var want []string
			for _, s := range c.want {
				want = append(want, "c.yml:5: model b: config.json: got "+s+", whose config.json the output has")
			}
			if !slices.Equal(p.Warnings, want) {
				t.Errorf("got %q, want %q", p.Warnings, want)
			}
		})
	}
}
