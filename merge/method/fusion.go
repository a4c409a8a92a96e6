// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "math"

// fusionMethod takes from the other of two models what matters most: where the
// difference times how far the distributions of its row are apart is an outlier.
//
//	Δ = M − B;  p = softmax(M) + 10⁻⁸, q = softmax(B) + 10⁻⁸ of each row
//	K = Σ p·log(p/q) of the row;  score = |Δ|·K
//	y = B + Δ where score ≥ median + 1.5·(upper quartile − lower quartile), else B
//
// Rows are along the last dimension. A quantile a of n scores is the one at place
// ⌊a·(n−1)⌋ of their ascending order. K is computed in float64 in the order of the
// elements, and taken as 0 where rounding makes it less, for p and q have the same sum.
// Scores are rounded to float32. If only one of the two models has the tensor, it is
// the result.
//
// Differs: mergekit estimates quantiles of more than 10⁶ scores from random ones.
func fusionMethod() *Method {
	return &Method{
		Name: "arcee_fusion", Reference: "mergekit, merge_methods/arcee_fusion.py",
		Base: BaseRequired, Crops: CropCommon, New: newFusion,
	}
}

// fusionJob is a tensor of arcee_fusion.
type fusionJob struct {
	stages
	p          Problem
	row, other int
	apart      []float64 // K of every row
	rank       *ranking
	least      float64 // score that is kept
}

func newFusion(p Problem) (Job, error) {
	if len(p.Inputs) == 1 {
		return copyOf(p, 0), nil
	}
	others := p.Others()
	if p.Base < 0 || len(others) != 1 {
		return nil, p.complain("arcee_fusion", "inputs: got %s, want the base and 1 other model",
			p.inventory())
	}
	n := p.Len()
	if n == 0 {
		return copyOf(p, p.Base), nil
	}
	j := &fusionJob{p: p, row: 1, other: others[0]}
	if len(p.Shape) > 0 {
		j.row = p.Shape[len(p.Shape)-1]
	}
	if j.row == 1 { // all K are 0, and so are the scores and their quartiles
		return newEach(nil, 0, func(c *Chunk) {
			p.Level.Sub(c.Out, c.In[j.other], c.In[p.Base])
			p.Level.Add(c.Out, c.In[p.Base], c.Out)
		}), nil
	}
	j.apart = make([]float64, n/j.row)
	quantile := func(a float64) int { return int(a * float64(n-1)) }
	j.rank = newRanking(n, j.Chunk(), quantile(0.25), quantile(0.5), quantile(0.75))
	j.stages = stages{once(j.measuring), j.selecting, once(j.writing)}
	return j, nil
}

// Chunk is that of [Job].
func (j *fusionJob) Chunk() int { return Rows(j.row) }

// Scratch is that of [Job].
func (j *fusionJob) Scratch() int { return 2 * j.Chunk() }

// Memory is that of [Job].
func (j *fusionJob) Memory() int64 {
	n := int64(8 * len(j.apart))
	if j.rank != nil {
		n += j.rank.memory(3)
	}
	return n
}

// measuring is the pass that computes K of each row, and takes the sample of scores.
func (j *fusionJob) measuring() *Pass {
	j.rank.begin()
	return &Pass{Do: func(c *Chunk) error {
		p, q := make([]float64, j.row), make([]float64, j.row)
		for lo := 0; lo < c.Len(); lo += j.row {
			softmax(p, c.In[j.other][lo:][:j.row])
			softmax(q, c.In[j.p.Base][lo:][:j.row])
			j.apart[(c.Lo+lo)/j.row] = divergence(p, q)
		}
		if j.rank.wants(c.Index) {
			s := c.Scratch[:c.Len()]
			j.scores(s, c)
			j.rank.sampled(c.Index, len(s), func(i int) float32 { return s[i] })
		}
		return nil
	}}
}

// softmax is y[i] = exp(x[i]−max x)/Σ exp(x−max x) + 10⁻⁸.
func softmax(y []float64, x []float32) {
	most := x[0]
	for _, v := range x {
		if !(v <= most) {
			most = v
		}
	}
	var sum float64
	for i, v := range x {
		y[i] = exp(float64(v) - float64(most))
		sum += y[i]
	}
	for i := range y {
		y[i] = y[i]/sum + 1e-8
	}
}

// divergence is max(Σ p·log(p/q), 0).
func divergence(p, q []float64) float64 {
	var sum float64
	for i, v := range p {
		sum += float64(v * log(v/q[i]))
	}
	return max(sum, 0)
}

// scores are those of a chunk.
func (j *fusionJob) scores(s []float32, c *Chunk) {
	x, b := c.In[j.other], c.In[j.p.Base]
	for lo := 0; lo < len(s); lo += j.row {
		apart := j.apart[(c.Lo+lo)/j.row]
		for i := lo; i < lo+j.row; i++ {
			s[i] = float32(math.Abs(float64(x[i]-b[i])) * apart)
		}
	}
}

// selecting is the passes that find the quartiles.
func (j *fusionJob) selecting() *Pass {
	if !j.rank.settle() {
		return nil
	}
	return &Pass{Do: func(c *Chunk) error {
		s, rest := c.Scratch[:c.Len()], c.Scratch[c.Len():]
		j.scores(s, c)
		j.rank.walk(j.p.Level, c.Index, s, words(rest))
		return nil
	}}
}

// writing is the last pass.
func (j *fusionJob) writing() *Pass {
	var quartile [3]float64
	for i, s := range j.rank.targets {
		quartile[i] = float64(value(s.key))
	}
	j.rank = nil
	j.least = quartile[1] + float64(1.5*(quartile[2]-quartile[0]))
	return &Pass{Writes: true, Do: func(c *Chunk) error {
		x, b, s := c.In[j.other], c.In[j.p.Base], c.Scratch[:c.Len()]
		j.scores(s, c)
		for i, v := range s {
			c.Out[i] = b[i]
			if !(float64(v) < j.least) { // a NaN is kept
				c.Out[i] = b[i] + (x[i] - b[i])
			}
		}
		return nil
	}}
}
