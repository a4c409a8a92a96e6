// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math"
	"sync"
)

// ramMethod adds to a base what single models changed, and the mean of what several
// changed.
//
//	d_i = x_i − base;  c = number of i with |d_i| > epsilon
//	y = base + Σ d_i/c over those i
//
// Float32, each operation rounded on its own, sums in the order of the models.
//
// "Reinforced Agent Merging", 2026, arXiv:2601.13572.
func ramMethod() *Method {
	return &Method{
		Name:      "ram",
		Reference: "arXiv:2601.13572",
		Global:    []Parameter{{Name: "epsilon", Default: 1e-5}},
		Base:      BaseRequired,
		New:       func(p Problem) (Job, error) { return newRAM("ram", p, false) },
	}
}

// ramPlusMethod is [ramMethod] with more of what only one model changed.
//
//	s_i = number of elements that i and others changed;  u_i = that only i changed
//	λ_i = 1 + r·clamp(s_i/max(u_i, epsilon), 0, alpha)
//	y = base + Σ λ_i·d_i where c = 1, base + Σ d_i/c elsewhere
//
// Counts are of this tensor. λ is computed in float32 too.
func ramPlusMethod() *Method {
	return &Method{
		Name:      "ramplus_tl",
		Reference: "arXiv:2601.13572",
		Global: []Parameter{
			{Name: "r", Default: 0.1}, {Name: "alpha", Default: 0.2}, {Name: "epsilon", Default: 1e-5},
		},
		Base: BaseRequired,
		New:  func(p Problem) (Job, error) { return newRAM("ramplus_tl", p, true) },
	}
}

// ramJob is ram, or ramplus_tl, which counts in a pass before.
type ramJob struct {
	p       Problem
	others  []int
	epsilon float32
	limit   int32   // a change has more than these bits, without the sign
	passes  []*Pass // still to begin

	mutex          sync.Mutex
	shared, unique []int64   // elements that each model changed with others, and alone
	lambda         []float32 // of every model; nil for ram
}

func newRAM(name string, p Problem, plus bool) (Job, error) {
	if p.Base < 0 {
		return nil, p.complain(name, "inputs: got %s, want the base among them", p.inventory())
	}
	others := p.Others()
	if len(others) == 0 {
		return copyOf(p, p.Base), nil
	}
	epsilon := float32(p.Global.orElse("epsilon", 1e-5))
	j := &ramJob{p: p, others: others, epsilon: epsilon, limit: changeLimit(epsilon)}
	if plus {
		j.shared, j.unique = make([]int64, len(others)), make([]int64, len(others))
		j.lambda = make([]float32, len(others))
		j.passes = append(j.passes, &Pass{Do: j.count})
	}
	j.passes = append(j.passes, &Pass{Writes: true, Do: j.write})
	return j, nil
}

func (j *ramJob) Chunk() int    { return Flat }
func (j *ramJob) Scratch() int  { return block }
func (j *ramJob) Memory() int64 { return int64(20 * len(j.others)) }

func (j *ramJob) Begin() (*Pass, error) {
	if len(j.passes) == 0 {
		return nil, nil
	}
	p := j.passes[0]
	j.passes = j.passes[1:]
	if p.Writes && j.lambda != nil {
		r, alpha := float32(j.p.Global.orElse("r", 0.1)), float32(j.p.Global.orElse("alpha", 0.2))
		for i := range j.lambda {
			overlap := float32(j.shared[i]) / max(float32(j.unique[i]), j.epsilon)
			j.lambda[i] = 1 + float32(r*min(max(overlap, 0), alpha))
		}
	}
	return p, nil
}

// changeLimit are the bits that those of |x| exceed where |x| > epsilon: bits of numbers
// without a sign have the order of the numbers. A NaN exceeds every limit, so it stays
// in the sum.
func changeLimit(epsilon float32) int32 {
	if epsilon < 0 {
		return -1
	}
	return int32(math.Float32bits(epsilon) & math.MaxInt32)
}

// isChange is 1 if x has more bits than the limit, else 0, without a branch: which it is
// is as good as random.
func isChange(x float32, limit int32) uint16 {
	var n uint16
	if int32(math.Float32bits(x)&math.MaxInt32) > limit {
		n = 1
	}
	return n
}

// changes counts the models that changed each element of a block. d is scratch.
func (j *ramJob) changes(changed []uint16, d []float32, b *Chunk) {
	clear(changed)
	for _, k := range j.others {
		j.p.Level.Sub(d, b.In[k], b.In[j.p.Base])
		for e, x := range d {
			changed[e] += isChange(x, j.limit)
		}
	}
}

// count adds up what each model changed alone and with others.
func (j *ramJob) count(c *Chunk) error {
	shared, unique := make([]int64, len(j.others)), make([]int64, len(j.others))
	var counts [block]uint16
	for lo := 0; lo < c.Len(); lo += block {
		b := c.block(lo)
		d, changed := b.Scratch[:b.Len()], counts[:b.Len()]
		j.changes(changed, d, b)
		for i, k := range j.others {
			j.p.Level.Sub(d, b.In[k], b.In[j.p.Base])
			var all, alone int64
			for e, x := range d {
				n := isChange(x, j.limit)
				all += int64(n)
				alone += int64(n & isOne(changed[e]))
			}
			unique[i] += alone
			shared[i] += all - alone
		}
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for i := range j.others {
		j.shared[i] += shared[i]
		j.unique[i] += unique[i]
	}
	return nil
}

// isOne is 1 for 1, else 0.
func isOne(n uint16) uint16 {
	var one uint16
	if n == 1 {
		one = 1
	}
	return one
}

// write makes the output.
func (j *ramJob) write(c *Chunk) error {
	var counts [block]uint16
	for lo := 0; lo < c.Len(); lo += block {
		b := c.block(lo)
		d, changed := b.Scratch[:b.Len()], counts[:b.Len()]
		j.changes(changed, d, b)
		clear(b.Out)
		for i, k := range j.others {
			j.p.Level.Sub(d, b.In[k], b.In[j.p.Base])
			alone := float32(1)
			if j.lambda != nil {
				alone = j.lambda[i]
			}
			addChange(b.Out, d, changed, j.limit, alone)
		}
		j.p.Level.Add(b.Out, b.In[j.p.Base], b.Out)
	}
	return nil
}

// addChange adds the part of a model, whose differences are d, to sums y: what it
// changed alone times a factor, and its share of what several changed.
//
//	y = y + d·alone where changed is 1, y + d/changed elsewhere; d = 0 where no change
func addChange(y, d []float32, changed []uint16, limit int32, alone float32) {
	d, changed = d[:len(y)], changed[:len(y)]
	factor := [2]float32{1, alone}
	for e, x := range d {
		n := changed[e]
		keep := -uint32(isChange(x, limit))
		x = math.Float32frombits(math.Float32bits(x) & keep)
		y[e] += float32(x*factor[isOne(n)]) / float32(max(n, 1))
	}
}
