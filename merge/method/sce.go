// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "pleach/kernel"

// sceMethod selects elements on which models differ, calculates a weight of each model
// and erases minorities.
//
//	Δ_i = M_i − B
//	v = variance of Δ_i over the models;  z = number of elements with v ≠ 0
//	Δ_i ← 0 but for the ⌊z·select_topk⌋ elements of largest v, if select_topk < 1
//	q_i = mean of Δ_i² over the tensor / their sum over the models
//	y = B + Σ q_i·Δ_i / max(Σ q_i, 10⁻⁶), both over those i with the sign of Σ Δ_i
//
// If the means add up to less than 10⁻⁶, all q_i are 1/N. A sum of 0 counts as
// positive. If no element is selected the result is B. Variances and means are computed
// in float64; a variance is rounded to float32, and of equal ones those that come first
// in the tensor are selected. The rest is in float32, each operation rounded on its
// own.
//
// Wan et al., "FuseChat: Knowledge Fusion of Chat Models", 2024, arXiv:2408.07990,
// section 3.3.
func sceMethod() *Method {
	return &Method{
		Name: "sce", Reference: "arXiv:2408.07990", Base: BaseRequired, Crops: CropToBase,
		Global: []Parameter{
			{Name: "select_topk", Default: 1},
			{Name: "int8_mask"}, // of mergekit, where it changes the memory of masks alone
		},
		New: newSCE,
	}
}

// sceJob is a tensor of sce.
type sceJob struct {
	stages
	p       Problem
	others  []int
	topk    float64
	window  *window     // of variances, if elements are selected
	counts  []int       // elements of a chunk with a variance
	mask    []uint64    // of elements selected, from the first of each chunk on
	none    bool        // no element is selected
	squares [][]float64 // Σ Δ² of each chunk, by model
	q       []float32
}

func newSCE(p Problem) (Job, error) {
	if p.Base < 0 {
		return nil, p.complain("sce", "inputs: got %s, want the base among them", p.inventory())
	}
	j := &sceJob{p: p, others: p.Others(), topk: p.Global.orElse("select_topk", 1)}
	n := p.Len()
	if len(j.others) == 0 || n == 0 || j.topk <= 0 {
		return copyOf(p, p.Base), nil
	}
	if j.topk < 1 {
		j.window = newWindow(n, Flat, 0, 0)
		j.counts = make([]int, Chunks(n, Flat))
		j.mask = make([]uint64, Chunks(n, Flat)*(Flat/64))
	}
	j.squares = make([][]float64, Chunks(n, Flat))
	j.stages = stages{once(j.counting), j.selecting, once(j.weighing), once(j.writing)}
	return j, nil
}

// Chunk is that of [Job].
func (j *sceJob) Chunk() int { return Flat }

// Scratch is that of [Job].
func (j *sceJob) Scratch() int { return 2 * Flat }

// Memory is that of [Job].
func (j *sceJob) Memory() int64 {
	n := int64(8*len(j.counts) + 8*len(j.mask) + (24+8*len(j.others))*len(j.squares))
	if j.window != nil && j.window.rank != nil {
		n += j.window.rank.memory(1)
	}
	return n
}

// counting is the pass that counts elements with a variance, and takes the sample.
func (j *sceJob) counting() *Pass {
	if j.window == nil {
		return nil
	}
	j.window.rank.begin()
	return &Pass{Do: func(c *Chunk) error {
		v := c.Scratch[:c.Len()]
		j.variances(v, c, 0)
		for _, x := range v {
			if x != 0 {
				j.counts[c.Index]++
			}
		}
		j.window.rank.sampled(c.Index, len(v), func(i int) float32 { return v[i] })
		return nil
	}}
}

// variances sets v to those of elements lo, lo+1, … of a chunk.
func (j *sceJob) variances(v []float32, c *Chunk, lo int) {
	base := c.In[j.p.Base][lo:]
	if len(j.others) == 2 { // (Δ_1−Δ_2)²/4
		pairVariances(v, c.In[j.others[0]][lo:], c.In[j.others[1]][lo:], base)
		return
	}
	count := float64(len(j.others))
	for i := range v {
		b := base[i]
		var sum, square float64
		for _, k := range j.others {
			sum += float64(c.In[k][lo+i] - b)
		}
		sum /= count
		for _, k := range j.others {
			d := float64(c.In[k][lo+i]-b) - sum
			square += float64(d * d)
		}
		v[i] = float32(square / count)
	}
}

// pairVariances is v[i] = ((x[i]−b[i]) − (y[i]−b[i]))²/4.
func pairVariances(v, x, y, b []float32) {
	x, y, b = x[:len(v)], y[:len(v)], b[:len(v)]
	for i := range v {
		d := float64(x[i]-b[i]) - float64(y[i]-b[i])
		v[i] = float32(d * d / 4)
	}
}

// selecting is the passes that find the least variance of those selected.
func (j *sceJob) selecting() *Pass {
	if j.counts != nil {
		z := 0
		for _, c := range j.counts {
			z += c
		}
		j.counts = nil
		k := int(float64(z) * j.topk)
		j.none = k == 0
		j.window.startAt(j.p.Len() - k)
	}
	if j.window == nil || j.none || !j.window.settle() {
		return nil
	}
	return &Pass{Do: func(c *Chunk) error {
		v, rest := c.Scratch[:c.Len()], c.Scratch[c.Len():]
		j.variances(v, c, 0)
		j.window.rank.walk(j.p.Level, c.Index, v, words(rest))
		return nil
	}}
}

// view is the window of variances in a chunk.
func (j *sceJob) view(c *Chunk) view {
	return j.window.view(c.Index, c.Len(), func(i int) float32 {
		var v [1]float32
		j.variances(v[:], c, i)
		return v[0]
	})
}

// change sets d to Δ_i of elements of a chunk from lo on, a multiple of 64, with 0 for
// what is not selected.
func (j *sceJob) change(d []float32, c *Chunk, k, lo int) {
	hi := lo + len(d)
	j.p.Level.Sub(d, c.In[k][lo:hi], c.In[j.p.Base][lo:hi])
	if j.mask != nil {
		j.p.Level.KeepBits(d, d, j.bits(c)[lo/64:])
	}
}

// bits is the mask of a chunk.
func (j *sceJob) bits(c *Chunk) []uint64 { return j.mask[c.Index*(Flat/64):] }

// weighing is the pass that makes the mask and sums up squares.
func (j *sceJob) weighing() *Pass {
	if j.none {
		return nil
	}
	return &Pass{Do: func(c *Chunk) error {
		d := c.Scratch[:c.Len()]
		if j.window != nil {
			v := j.view(c)
			j.variances(d, c, 0)
			v.keep(j.p.Level, d, 0)
			setBits(j.bits(c), d)
		}
		sums := make([]float64, len(j.others))
		for m, k := range j.others {
			j.change(d, c, k, 0)
			sums[m] = j.p.Level.Dot64(d, d)
		}
		j.squares[c.Index] = sums
		return nil
	}}
}

// setBits sets bit i of mask, which is of zeros, where x[i] is not 0.
func setBits(mask []uint64, x []float32) {
	for i, v := range x {
		mask[i/64] |= (uint64(key(v)) + largestKey) >> 31 << (i % 64)
	}
}

// weigh computes q.
func (j *sceJob) weigh() {
	q := make([]float64, len(j.others))
	var sum float64
	for m := range q {
		for _, s := range j.squares {
			q[m] += s[m]
		}
		q[m] /= float64(j.p.Len())
		sum += q[m]
	}
	j.q = make([]float32, len(q))
	for m := range q {
		j.q[m] = float32(q[m] / sum)
		if sum < 1e-6 {
			j.q[m] = float32(1 / float64(len(q)))
		}
	}
}

// writing is the last pass.
func (j *sceJob) writing() *Pass {
	if j.none {
		return &Pass{Writes: true, Need: j.p.needs(nil, j.p.Base), Do: func(c *Chunk) error {
			copy(c.Out, c.In[j.p.Base])
			return nil
		}}
	}
	j.weigh()
	return &Pass{Writes: true, Do: func(c *Chunk) error {
		for lo := 0; lo < c.Len(); lo += block {
			j.write(c, lo, min(lo+block, c.Len()))
		}
		return nil
	}}
}

// write computes elements lo to hi of a chunk.
func (j *sceJob) write(c *Chunk, lo, hi int) {
	l, n := j.p.Level, hi-lo
	s := c.Scratch
	votes := newVotes(s[:5*block], n)
	d, sum, y := s[5*block:][:n], s[6*block:][:n], c.Out[lo:hi]
	clear(sum)
	for m, k := range j.others {
		j.change(d, c, k, lo)
		l.AddInto(sum, d)
		l.Vote(votes, d, j.q[m])
	}
	votes.Sum = sum
	atLeast(votes.WPlus, 1e-6)
	atLeast(votes.WMinus, 1e-6)
	j.elect(y, votes)
	l.Add(y, c.In[j.p.Base][lo:hi], y)
}

// elect is y = Σ q_i·Δ_i / Σ q_i of the majority.
func (j *sceJob) elect(y []float32, v kernel.Votes) {
	j.p.Level.Elect(y, v, true)
}

// atLeast is x[i] = max(x[i], c).
func atLeast(x []float32, c float32) {
	for i, v := range x {
		x[i] = max(v, c)
	}
}
