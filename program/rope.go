// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"math"
)

// Scaling stretches rotary positions beyond those of the pre-training.
type Scaling uint8

// The scalings of the Llama family.
const (
	NoScaling     Scaling = iota
	LinearScaling         // all frequencies divided by Factor
	Llama3Scaling         // low frequencies divided by Factor, high ones kept
)

func (s Scaling) String() string { return [...]string{"default", "linear", "llama3"}[s] }

// Rope holds the constants of rotary position embedding.
type Rope struct {
	Theta   float64 // base of the frequencies
	Scaling Scaling
	Factor  float64 // linear, llama3
	// llama3: wavelengths above Original/LowFreq are stretched by Factor, those
	// below Original/HighFreq are not, with a ramp between.
	LowFreq, HighFreq float64
	Original          float64 // positions of the pre-training
}

// Frequencies is the angle per position of each pair of a head of width K.
//
//	f[i] = θ^(−2i/K), i < K/2
//
// scaled: divided by Factor under linear scaling; under llama3, with λ = 2π/f
// and s = (Original/λ − LowFreq)/(HighFreq − LowFreq) clamped to [0,1], it is
// (1−s)·f/Factor + s·f.
//
// Meta, "The Llama 3 Herd of Models", 2024, arXiv:2407.21783, and
// transformers' modeling_rope_utils.
//
// Differs: transformers computes frequencies and angles in float32; these are
// float64 and rounded once.
func (r Rope) Frequencies(K int) []float64 {
	f := make([]float64, K/2)
	for i := range f {
		f[i] = math.Pow(r.Theta, -2*float64(i)/float64(K))
		switch r.Scaling {
		case LinearScaling:
			f[i] /= r.Factor
		case Llama3Scaling:
			s := (r.Original*f[i]/(2*math.Pi) - r.LowFreq) / (r.HighFreq - r.LowFreq)
			s = min(max(s, 0), 1)
			f[i] = (1-s)*f[i]/r.Factor + s*f[i]
		}
	}
	return f
}

func (r Rope) String() string {
	s := fmt.Sprintf("θ %g", r.Theta)
	switch r.Scaling {
	case LinearScaling:
		s += fmt.Sprintf(", linear ÷ %g", r.Factor)
	case Llama3Scaling:
		s += fmt.Sprintf(", llama3 ÷ %g below %g, × 1 above %g, of %g", r.Factor, r.LowFreq, r.HighFreq, r.Original)
	}
	return s
}
