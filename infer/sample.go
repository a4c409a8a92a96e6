// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package infer

import (
	"cmp"
	"math"
	"slices"

	"pleach/internal/fault"
	"pleach/internal/rng"
)

// Sampling is how the next id is drawn from logits z:
//
//	p[v] ∝ e^(z[v]/Temperature)
//
// from the most probable ids whose probabilities add up to TopP, the lowest id
// first among equals (Holtzman et al., "The Curious Case of Neural Text
// Degeneration", 2020, arXiv:1904.09751, §3.1). Temperature 0, the zero value,
// takes the most probable. The same seed draws the same ids.
type Sampling struct {
	Temperature float64
	TopP        float64 // 0 is 1: all
	Seed        uint64
}

// Check refuses what is no distribution.
func (s Sampling) Check() error {
	if !(s.Temperature >= 0 && s.Temperature < 1e6) {
		return fault.Configf("infer: temperature: got %v, want 0 or more", s.Temperature)
	}
	if !(s.TopP >= 0 && s.TopP <= 1) {
		return fault.Configf("infer: top-p: got %v, want 0 to 1", s.TopP)
	}
	return nil
}

// draw is the id of the i-th step.
func (s Sampling) draw(z []float32, i int) int32 {
	if s.Temperature == 0 {
		return argmax(z)
	}
	p := softmax(z, s.Temperature)
	order, total := make([]int32, len(z)), 1.0
	for v := range order {
		order[v] = int32(v)
	}
	if s.TopP > 0 && s.TopP < 1 {
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(p[b], p[a]), cmp.Compare(a, b))
		})
		order, total = nucleus(order, p, s.TopP)
	}
	u := rng.New(s.Seed, "generate").Float64(uint64(i)) * total
	for _, v := range order {
		if u -= p[v]; u < 0 {
			return v
		}
	}
	return order[len(order)-1] // rounding
}

// nucleus is the shortest beginning of order whose probabilities reach top, and
// their sum.
func nucleus(order []int32, p []float64, top float64) ([]int32, float64) {
	sum := 0.0
	for i, v := range order {
		if sum += p[v]; sum >= top {
			return order[:i+1], sum
		}
	}
	return order, sum
}

// argmax is the index of the largest element, the first among equals.
func argmax(z []float32) int32 {
	best := 0
	for i, x := range z {
		if x > z[best] {
			best = i
		}
	}
	return int32(best)
}

func softmax(z []float32, temperature float64) []float64 {
	top := float64(z[argmax(z)])
	p, sum := make([]float64, len(z)), 0.0
	for i, x := range z {
		p[i] = math.Exp((float64(x) - top) / temperature)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
