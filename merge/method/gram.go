// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "math"

// block is the number of elements that passes over several inputs look at together:
// those of a few inputs lie in the first cache.
const block = 1 << 11

// block is the part of a chunk from element lo on, of at most so many elements.
// Scratch is shared with the chunk.
func (c *Chunk) block(lo int) *Chunk {
	hi := min(lo+block, c.Len())
	b := &Chunk{Index: c.Index, Lo: c.Lo + lo, In: make([][]float32, len(c.In)), Scratch: c.Scratch}
	for k, x := range c.In {
		if x != nil {
			b.In[k] = x[lo:hi]
		}
	}
	if c.Out != nil {
		b.Out = c.Out[lo:hi]
	}
	return b
}

// gram is the matrix of the dot products of N vectors, in float64: its lower triangle,
// row by row.
type gram []float64

func newGram(n int) gram { return make(gram, n*(n+1)/2) }

func (g gram) at(i, j int) float64 {
	if i < j {
		i, j = j, i
	}
	return g[i*(i+1)/2+j]
}

// norm is the length of vector i.
func (g gram) norm(i int) float64 { return math.Sqrt(g.at(i, i)) }

// norms are the lengths of n vectors.
func (g gram) norms(n int) []float64 {
	norms := make([]float64, n)
	for i := range norms {
		norms[i] = g.norm(i)
	}
	return norms
}

// cosine is the dot product of two vectors by the product of their lengths, of which
// none is taken to be less than least, within [−1, 1]. What differs from ±1 by the
// rounding of float64 is ±1, so that parallel vectors have no angle: a tiny one would
// be divided by.
func (g gram) cosine(i, j int, least float64) float64 {
	const rounding = 0x1p-50
	c := g.at(i, j) / float64(max(g.norm(i), least)*max(g.norm(j), least))
	if math.Abs(c) > 1-rounding {
		return math.Copysign(1, c)
	}
	return c
}

// A solver finds the coefficients of a combination of vectors from their dot
// products. Calls may run at the same time.
type solver func(coef []float64, g gram) error

// combination is a weighted sum of inputs, or of their differences from a base, which
// then is added. The weights follow from dot products.
//
//	y = Σ c_i·v_i, v_i = x_i;  or  y = Σ c_i·v_i + base, v_i = x_i − base
type combination struct {
	p      Problem
	inputs []int
	base   int // −1 for none
	solve  solver
	warn   func() []string // nil for none
}

// Warnings are those of the solver.
func (s *combination) Warnings() []string {
	if s.warn == nil {
		return nil
	}
	return s.warn()
}

// overTensor is the job that takes a tensor as one vector of every input.
func (s combination) overTensor() Job { return &gramJob{combination: s} }

// overRows is the job that takes every row, along the last dimension, as a vector.
func (s combination) overRows() Job {
	row := 1
	if d := len(s.p.Shape); d > 0 {
		row = s.p.Shape[d-1]
	}
	if row == s.p.Len() {
		return s.overTensor()
	}
	return &rowsJob{combination: s, row: row}
}

// scratch is the number of float32 that vectors need.
func (s *combination) scratch() int {
	if s.base < 0 {
		return 0
	}
	return block * len(s.inputs)
}

// vectors are the vectors of a block: v, whose length is the number of vectors, made
// to be parts of inputs or of scratch.
func (s *combination) vectors(v [][]float32, c *Chunk, lo, hi int) [][]float32 {
	for i, k := range s.inputs {
		x := c.In[k][lo:hi]
		if s.base >= 0 {
			d := c.Scratch[i*block:][:hi-lo]
			s.p.Level.Sub(d, x, c.In[s.base][lo:hi])
			x = d
		}
		v[i] = x
	}
	return v
}

// measure adds the dot products of elements lo to hi of a chunk to g, block by block.
func (s *combination) measure(g gram, c *Chunk, lo, hi int) {
	v := make([][]float32, len(s.inputs))
	for ; lo < hi; lo += block {
		s.vectors(v, c, lo, min(lo+block, hi))
		at := 0
		for i := range v {
			for j := range i + 1 {
				g[at] += s.p.Level.Dot64(v[i], v[j])
				at++
			}
		}
	}
}

// combine writes elements lo to hi of a chunk: float32, each product and each sum
// rounded, in the order of the inputs, the base last. Coefficients are rounded to
// float32.
func (s *combination) combine(c *Chunk, coef []float64, lo, hi int) {
	v := make([][]float32, len(s.inputs))
	for ; lo < hi; lo += block {
		end := min(lo+block, hi)
		s.vectors(v, c, lo, end)
		y := c.Out[lo:end]
		s.p.Level.Scale(y, v[0], float32(coef[0]))
		for i := 1; i < len(v); i++ {
			s.p.Level.AddScaled(y, v[i], float32(coef[i]))
		}
		if s.base >= 0 {
			s.p.Level.AddInto(y, c.In[s.base][lo:end])
		}
	}
}

// gramJob takes a tensor as one vector of every input: a pass measures their dot
// products, a second one combines them.
type gramJob struct {
	combination

	begun int
	sums  []float64 // the dot products of every chunk, one after the other
	coef  []float64
}

func (j *gramJob) Chunk() int   { return Flat }
func (j *gramJob) Scratch() int { return j.scratch() }

// pairs is the number of dot products of a chunk.
func (j *gramJob) pairs() int { return len(j.inputs) * (len(j.inputs) + 1) / 2 }

// Memory is that of the dot products of every chunk.
func (j *gramJob) Memory() int64 {
	return 8 * int64(Chunks(j.p.Len(), Flat)) * int64(j.pairs())
}

func (j *gramJob) Begin() (*Pass, error) {
	need := j.p.needs(j.inputs, j.base)
	j.begun++
	switch j.begun {
	case 1:
		pairs := j.pairs()
		j.sums = make([]float64, Chunks(j.p.Len(), Flat)*pairs)
		return &Pass{Need: need, Do: func(c *Chunk) error {
			g := newGram(len(j.inputs)) // and not in place: neighbours share a line of the cache
			j.measure(g, c, 0, c.Len())
			copy(j.sums[c.Index*pairs:], g)
			return nil
		}}, nil
	case 2:
		if err := j.solveSum(); err != nil {
			return nil, err
		}
		return &Pass{Need: need, Writes: true, Do: func(c *Chunk) error {
			j.combine(c, j.coef, 0, c.Len())
			return nil
		}}, nil
	}
	return nil, nil
}

// solveSum adds the dot products of all chunks in their order and solves. A tensor of
// no elements has nothing to solve.
func (j *gramJob) solveSum() error {
	if len(j.sums) == 0 {
		return nil
	}
	total := newGram(len(j.inputs))
	for i, x := range j.sums {
		total[i%len(total)] += x
	}
	j.sums = nil
	j.coef = make([]float64, len(j.inputs))
	return j.solve(j.coef, total)
}

// square is ‖Σ c_i·v_i‖², at least 0.
func (g gram) square(c []float64) float64 { return max(g.dot(c, c), 0) }

// dot is (Σ c_i·v_i)·(Σ d_i·v_i).
func (g gram) dot(c, d []float64) float64 {
	var sum float64
	for i, x := range c {
		for j, y := range d {
			sum += float64(x * float64(y*g.at(i, j)))
		}
	}
	return sum
}
