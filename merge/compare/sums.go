// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"

	"pleach/kernel"
)

// Sums are what the figures of N models are made of, in float64, over some elements:
// they add up. The zero value is that of no elements.
type Sums struct {
	Elements int64
	models   int
	base     bool
	v        []float64 // see the offsets below
}

// Where a sum stands: Σ m², Σ base², Σ Δ² of each model, and then the sums of pairs
// (0,1), (0,2), …, (1,2), ….
func (s *Sums) norm(i int) int { return i }
func (s *Sums) baseNorm() int  { return s.models }
func (s *Sums) task(i int) int { return s.models + 1 + i }

func (s *Sums) pair(i, j int) int {
	before := i*s.models - i*(i+1)/2 // pairs of models before i
	return 2*s.models + 1 + pairSums*(before+j-i-1)
}

// The sums of a pair.
const (
	pairDot      = iota // Σ a·b
	pairDistance        // Σ (a−b)²
	pairEqual           // elements that are equal
	pairTaskDot         // Σ Δa·Δb
	pairBoth            // see votes
	pairOpposed
	pairBothWeight
	pairOpposedWeight
	pairSums
)

func newSums(models int, base bool) Sums {
	return Sums{models: models, base: base, v: make([]float64, 2*models+1+pairSums*models*(models-1)/2)}
}

// Add adds sums over other elements.
func (s *Sums) Add(o *Sums) {
	if s.v == nil {
		*s = newSums(o.models, o.base)
	}
	s.Elements += o.Elements
	for i, v := range o.v {
		s.v[i] += v
	}
}

// measure sets s to the sums of a chunk. m is the models' elements and base the
// base's, or nil; where there is a base, m is its task vectors afterwards. scratch
// has the length of each.
func (s *Sums) measure(l kernel.Level, m [][]float32, base, scratch []float32) {
	s.Elements = int64(len(scratch))
	for i, a := range m {
		s.v[s.norm(i)] = l.Dot64(a, a)
		for j := i + 1; j < len(m); j++ {
			p := s.v[s.pair(i, j):][:pairSums]
			p[pairDot] = l.Dot64(a, m[j])
			l.Sub(scratch, a, m[j])
			p[pairDistance] = l.Dot64(scratch, scratch)
			p[pairEqual] = float64(zeros(scratch)) // a difference of finite floats is 0 if they are equal
		}
	}
	if base == nil {
		return
	}
	s.v[s.baseNorm()] = l.Dot64(base, base)
	for i, a := range m {
		l.Sub(a, a, base)
		s.v[s.task(i)] = l.Dot64(a, a)
	}
	for i, a := range m {
		for j := i + 1; j < len(m); j++ {
			p := s.v[s.pair(i, j):][:pairSums]
			p[pairTaskDot] = l.Dot64(a, m[j])
			v := signs(a, m[j])
			p[pairBoth], p[pairOpposed] = float64(v.both), float64(v.opposed)
			p[pairBothWeight], p[pairOpposedWeight] = v.bothWeight, v.opposedWeight
		}
	}
}

// finite reports whether every element of the models and the base was finite: else a
// sum of squares is not. In float64 squares of finite floats do not overflow.
func (s *Sums) finite() bool {
	for _, v := range s.v[:s.models+1] {
		if v*0 != 0 {
			return false
		}
	}
	return true
}

// Figures say how models A and B differ over some elements. One that would be 0/0
// is NaN, as are those of task vectors, Δ = model − base, without a base.
type Figures struct {
	Elements int64
	Distance float64 // ‖A−B‖/‖A‖
	Cosine   float64 // A·B/(‖A‖·‖B‖)
	Equal    float64 // part of the elements in which A = B; −0 equals 0

	TaskA, TaskB float64 // ‖ΔA‖/‖base‖, ‖ΔB‖/‖base‖
	TaskCosine   float64 // ΔA·ΔB/(‖ΔA‖·‖ΔB‖)

	Both            float64 // part of the elements in which neither ΔA nor ΔB is 0
	Opposed         float64 // part of these in which their signs differ
	OpposedWeighted float64 // the same, each element counting |ΔA|+|ΔB|
}

// Figures are those of models i and j, counted as in the job; i < j.
func (s *Sums) Figures(i, j int) Figures {
	p := s.v[s.pair(i, j):][:pairSums]
	a, b := s.v[s.norm(i)], s.v[s.norm(j)]
	nan := math.NaN()
	f := Figures{
		Elements: s.Elements,
		Distance: math.Sqrt(ratio(p[pairDistance], a)), Cosine: cosine(p[pairDot], a, b),
		Equal: ratio(p[pairEqual], float64(s.Elements)),
		TaskA: nan, TaskB: nan, TaskCosine: nan, Both: nan, Opposed: nan, OpposedWeighted: nan,
	}
	if !s.base {
		return f
	}
	a, b = s.v[s.task(i)], s.v[s.task(j)]
	base := s.v[s.baseNorm()]
	f.TaskA, f.TaskB = math.Sqrt(ratio(a, base)), math.Sqrt(ratio(b, base))
	f.TaskCosine = cosine(p[pairTaskDot], a, b)
	f.Both = ratio(p[pairBoth], float64(s.Elements))
	f.Opposed = ratio(p[pairOpposed], p[pairBoth])
	f.OpposedWeighted = ratio(p[pairOpposedWeight], p[pairBothWeight])
	return f
}

// ratio is a/b, NaN if that is not a number: of nothing, or too large for one.
func ratio(a, b float64) float64 {
	if q := a / b; !math.IsInf(q, 0) {
		return q
	}
	return math.NaN()
}

// cosine is that of vectors with these dot product and squares of norms. Rounding
// takes it to 1 at most.
func cosine(dot, a, b float64) float64 {
	return max(-1, min(1, ratio(dot, math.Sqrt(a)*math.Sqrt(b))))
}
