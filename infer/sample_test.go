// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestGreedy(t *testing.T) {
	for _, tt := range []struct {
		z    []float32
		want int32
	}{
		{[]float32{1}, 0},
		{[]float32{1, 3, 2}, 1},
		{[]float32{2, 1, 2, 2}, 0}, // the lowest id among equals
		{[]float32{-5, -4, -4}, 1},
	} {
		if got := (Sampling{}).draw(tt.z, 0); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.z, got, tt.want)
		}
	}
}

// draws counts the ids of n draws.
func draws(s Sampling, z []float32, n int) []float64 {
	got := make([]float64, len(z))
	for i := range n {
		got[s.draw(z, i)] += 1 / float64(n)
	}
	return got
}

// TestTemperature compares frequencies with probabilities: 20,000 draws of p
// have a standard deviation of at most 0.0035.
func TestTemperature(t *testing.T) {
	z := []float32{2, 0.5, 1, -1, 1.5}
	for _, temperature := range []float64{0.5, 1, 2} {
		want := make([]float64, len(z))
		sum := 0.0
		for v := range z {
			want[v] = math.Exp(float64(z[v]) / temperature)
			sum += want[v]
		}
		got := draws(Sampling{Temperature: temperature, Seed: 1}, z, 20_000)
		for v := range z {
			if math.Abs(got[v]-want[v]/sum) > 0.014 {
				t.Errorf("temperature %v: id %d: drawn %.4f of the time, want %.4f", temperature, v, got[v], want[v]/sum)
			}
		}
	}
	// Nearly zero is nearly argmax, however large the logits.
	if got := draws(Sampling{Temperature: 1e-300}, []float32{1e30, -1e30, 2e30}, 20); got[2] < 0.99 {
		t.Errorf("nearly zero: got %v, want id 2 alone", got)
	}
}

// TestTopP checks that of probabilities 0.5, 0.25, 0.125 … the first whose sum
// reaches TopP are drawn, in their proportions.
func TestTopP(t *testing.T) {
	z := make([]float32, 6)
	order := []int{3, 0, 5, 1, 4, 2}
	for i, v := range order {
		z[v] = -float32(i) * math.Ln2
	}
	for _, tt := range []struct {
		top  float64
		want int
	}{{1e-9, 1}, {0.5, 1}, {0.6, 2}, {0.8, 3}, {0.95, 4}, {1, 6}, {0, 6}} {
		got := draws(Sampling{Temperature: 1, TopP: tt.top, Seed: 2}, z, 20_000)
		sum := 0.0
		for i := range tt.want {
			sum += math.Exp2(-float64(i))
		}
		for i, v := range order {
			want := math.Exp2(-float64(i)) / sum
			if i >= tt.want {
				want = 0
			}
			if got[v] != 0 && want == 0 || math.Abs(got[v]-want) > 0.014 {
				t.Errorf("top-p %v: id %d: drawn %.4f of the time, want %.4f", tt.top, v, got[v], want)
			}
		}
	}
}

// TestNucleus is the definition: the set reaches TopP, and without its least
// probable id it does not.
func TestNucleus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.SliceOfN(rapid.Float32Range(-8, 8), 1, 40).Draw(t, "z")
		top := rapid.Float64Range(0.001, 0.999).Draw(t, "top")
		p := softmax(z, 1)
		order := make([]int32, len(z))
		for v := range order {
			order[v] = int32(v)
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			switch {
			case p[a] > p[b]:
				return -1
			case p[a] < p[b]:
				return 1
			}
			return 0
		})
		kept, sum := nucleus(order, p, top)
		if len(kept) < 1 || sum < top-1e-12 {
			t.Fatalf("got %d ids of sum %v, want %v", len(kept), sum, top)
		}
		if less := sum - p[kept[len(kept)-1]]; len(kept) > 1 && less > top+1e-12 {
			t.Fatalf("got %v without the last id, which %v did not need", less, top)
		}
		if v := (Sampling{Temperature: 1, TopP: top}).draw(z, 3); !slices.Contains(kept, v) {
			t.Fatalf("drew %d, which is not in %v", v, kept)
		}
	})
}

func TestSeed(t *testing.T) {
	z := long(50)
	logits := make([]float32, len(z))
	for i := range z {
		logits[i] = float32(z[i]) / 50
	}
	sequence := func(seed uint64) []int32 {
		ids := make([]int32, 40)
		for i := range ids {
			ids[i] = Sampling{Temperature: 1, TopP: 0.9, Seed: seed}.draw(logits, i)
		}
		return ids
	}
	if !slices.Equal(sequence(7), sequence(7)) {
		t.Error("the same seed: got other ids")
	}
	if slices.Equal(sequence(7), sequence(8)) {
		t.Error("another seed: got the same 40 ids")
	}
}
