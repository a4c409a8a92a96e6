// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"pleach/program"
)

// TestFrequencies compares with transformers, which computes in float32; the
// table is made by testdata/rope.py.
func TestFrequencies(t *testing.T) {
	var cases []struct {
		Width int
		Rope  struct {
			Type     string  `json:"rope_type"`
			Theta    float64 `json:"rope_theta"`
			Factor   float64
			Low      float64 `json:"low_freq_factor"`
			High     float64 `json:"high_freq_factor"`
			Original float64 `json:"original_max_position_embeddings"`
		}
		Frequencies []float64
	}
	text, err := os.ReadFile("testdata/rope.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	seen := map[program.Scaling]bool{}
	for _, c := range cases {
		r := program.Rope{
			Theta: c.Rope.Theta, Factor: c.Rope.Factor, LowFreq: c.Rope.Low, HighFreq: c.Rope.High, Original: c.Rope.Original,
		}
		for r.Scaling.String() != c.Rope.Type {
			r.Scaling++
		}
		seen[r.Scaling] = true
		got := r.Frequencies(c.Width)
		if len(got) != len(c.Frequencies) {
			t.Fatalf("%v: %d frequencies, want %d", r, len(got), len(c.Frequencies))
		}
		for i, want := range c.Frequencies {
			if math.Abs(got[i]-want) > 1e-6*want { // a float32 power, and the ramp's cancellation
				t.Errorf("%v: frequency %d of width %d: %g, want %g", r, i, c.Width, got[i], want)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d scalings are in the table, want 3", len(seen))
	}
}

func TestRopeString(t *testing.T) {
	for want, r := range map[string]program.Rope{
		"θ 10000":               {Theta: 1e4},
		"θ 10000, linear ÷ 2.5": {Theta: 1e4, Scaling: program.LinearScaling, Factor: 2.5},
		"θ 500000, llama3 ÷ 8 below 1, × 1 above 4, of 8192": {
			Theta: 5e5, Scaling: program.Llama3Scaling, Factor: 8, LowFreq: 1, HighFreq: 4, Original: 8192,
		},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
