// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"strings"
	"testing"

	"pleach/internal/fault"
)

// TestPresetCounts compares with the numbers of parameters in the published
// files.
func TestPresetCounts(t *testing.T) {
	for name, want := range map[string]int{
		"tinyllama-1.1b": 1_100_048_384,
		"llama3.2-1b":    1_235_814_400,
		"llama3.2-3b":    3_212_749_824,
		"llama1-7b":      6_738_415_616,
		"llama-7b":       6_738_415_616,
		"llama3-8b":      8_030_261_248,
		"llama3.1-8b":    8_030_261_248,
		"llama-13b":      13_015_864_320,
		"llama-70b":      68_976_648_192,
		"llama3-70b":     70_553_706_496,
	} {
		s, err := Preset(name, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := s.Count(); got != want {
			t.Errorf("%s: got %d parameters, want %d", name, got, want)
		}
	}
	// The configurations of the CPU baselines.
	for _, tt := range []struct {
		name         string
		vocabulary   int
		least, most  int
		width, heads int
	}{
		{"quick", 4096, 5_200_000, 5_400_000, 256, 4},
		{"d512", 32_000, 57_000_000, 59_000_000, 512, 8},
	} {
		s, err := Preset(tt.name, tt.vocabulary)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Count(); n < tt.least || n > tt.most || s.D != tt.width || s.H != tt.heads {
			t.Errorf("%s: %d parameters in %+v", tt.name, n, s)
		}
	}
}

func TestPresets(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Presets() {
		if seen[p.Name] {
			t.Errorf("%s: occurs twice", p.Name)
		}
		seen[p.Name] = true
		s, err := Preset(p.Name, 32_000)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if p.Note == "" || s.H*s.K != s.D {
			t.Errorf("%s: note %q, %d heads of %d, width %d", p.Name, p.Note, s.H, s.K, s.D)
		}
		if p.Spec.V == 0 || p.Spec.V == 32_000 {
			if p.Params != s.Count() {
				t.Errorf("%s: listed with %d parameters, want %d", p.Name, p.Params, s.Count())
			}
		}
	}
}

func TestPresetRefused(t *testing.T) {
	for _, tt := range []struct {
		name       string
		vocabulary int
		want       string
	}{
		{"llama7b", 0, "did you mean llama-7b?"},
		{"Tiny", 100, "did you mean tiny?"},
		{"transformer", 0, "want tiny, mini, small, quick, d512, d1024, tinyllama-1.1b, llama3.2-1b,"},
		{"", 0, "want tiny,"},
		{"tiny", 0, "vocabulary: got 0"},
		{"tiny", -5, "vocabulary: got -5"},
		{"llama-7b", 1 << 40, "vocabulary: got 1099511627776"},
	} {
		_, err := Preset(tt.name, tt.vocabulary)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, fault.Config) {
			t.Errorf("%q, %d words: got %v, want %q", tt.name, tt.vocabulary, err, tt.want)
		}
	}
	if _, err := Preset("transformer", 0); strings.Contains(err.Error(), "did you mean") {
		t.Errorf("guessed: %v", err)
	}
}
