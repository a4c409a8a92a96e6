// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"errors"

	"pleach/kernel"
)

// taskArithmetic are the methods that select among differences from a base.
func taskArithmetic() []*Method {
	return []*Method{
		taskRule{name: "task_arithmetic", reference: "arXiv:2212.04089"}.method(),
		taskRule{
			name: "ties", reference: "arXiv:2306.01708",
			thin: byMagnitude, consensus: true, normalize: 1,
		}.method(),
		taskRule{name: "dare_linear", reference: "arXiv:2311.03099", thin: byChance, rescale: 1}.method(),
		taskRule{
			name: "dare_ties", reference: "arXiv:2311.03099",
			thin: byChance, consensus: true, rescale: 1,
		}.method(),
		taskRule{name: "breadcrumbs", reference: "arXiv:2312.06795", thin: byMiddle}.method(),
		taskRule{
			name: "breadcrumbs_ties", reference: "arXiv:2312.06795",
			thin: byMiddle, consensus: true,
		}.method(),
		taskRule{
			name: "della", reference: "arXiv:2406.11617",
			thin: byRank, consensus: true, normalize: 1, rescale: 1,
		}.method(),
		taskRule{name: "della_linear", reference: "arXiv:2406.11617", thin: byRank, rescale: 1}.method(),
		sceMethod(),
		fusionMethod(),
	}
}

// taskRule is a method of the family of task arithmetic: models M_i with weights w_i are
// differences from a base B, of which a part is set to 0.
//
//	Δ_i = M_i − B;  W_i = w_i · f_i · thin(Δ_i)
//	without consensus: y = B + λ·Σ W_i / Σ w_i
//	with consensus:    y = B + λ·Σ W_i / Σ w_i, both over those i with the sign of Σ W_i
//
// λ is the parameter lambda. The sums of weights are left out if normalize is 0; where
// one is 0 (below 1e-8 without consensus), 1 stands in its place. A sum of 0 counts as
// positive, a W_i of 0 as neither. f_i is Σ|Δ_i| / Σ|thin(Δ_i)| over the tensor if
// rescale is not 0, and 1 if either sum is below 1e-7.
//
// thin(Δ) is Δ if the density d is 1 or more; of n elements it keeps
//
//	ties         the ⌊d·n⌋ largest |Δ|
//	breadcrumbs  ⌊d·n⌋ behind the ⌊gamma·n⌋ largest, or behind fewer if there are not enough
//	dare         each where a random number is below d
//	della        see [pruner]
//
// Of equal |Δ| those that come first in the tensor are kept. Float32 in the order of
// the formulas, each operation rounded on its own, models in their order; the sums of
// |Δ| are in float64.
//
// Ilharco et al., "Editing Models with Task Arithmetic", 2022; Yadav et al.,
// "TIES-Merging", 2023; Yu et al., "Language Models are Super Mario", 2023; Davari &
// Belilovsky, "Model Breadcrumbs", 2023.
//
// Differs: the paper of DARE divides by the density. The sums of |Δ| are mergekit's.
type taskRule struct {
	name, reference    string
	thin               thinning
	consensus          bool
	normalize, rescale float64 // defaults
}

// thinning is how elements of a difference are chosen.
type thinning byte

const (
	byNone thinning = iota
	byMagnitude
	byMiddle
	byChance
	byRank
)

func (t taskRule) method() *Method {
	m := &Method{
		Name: t.name, Reference: t.reference, Base: BaseRequired, Crops: CropToBase,
		Random: t.thin == byChance || t.thin == byRank,
		Global: []Parameter{
			{Name: "normalize", Default: t.normalize},
			{Name: "rescale", Default: t.rescale},
			{Name: "lambda", Default: 1},
			{Name: "int8_mask"}, // of mergekit, where it changes the memory of masks alone
		},
		PerModel: []Parameter{{Name: "weight", Required: true}, {Name: "density", Default: 1}},
		New:      func(p Problem) (Job, error) { return t.job(p) },
	}
	switch t.thin {
	case byMiddle:
		m.PerModel = append(m.PerModel, Parameter{Name: "gamma", Default: 0.01})
	case byRank:
		m.PerModel = append(m.PerModel, Parameter{Name: "epsilon", Default: 0.15})
	}
	return m
}

// taskJob is a tensor of a taskRule.
type taskJob struct {
	stages
	p         Problem
	rule      taskRule
	size      int // of chunks
	shares    []*share
	normalize bool
	divisor   float32 // without consensus
	lambda    float32
}

func (t taskRule) job(p Problem) (Job, error) {
	if p.Base < 0 {
		return nil, p.complain(t.name, "inputs: got %s, want the base among them", p.inventory())
	}
	others := p.Others()
	if len(others) == 0 {
		return copyOf(p, p.Base), nil
	}
	weights, err := p.weightsOf(t.name, others)
	if err != nil {
		return nil, err
	}
	j := &taskJob{
		p: p, rule: t, size: Flat,
		normalize: p.Global.orElse("normalize", t.normalize) != 0,
		lambda:    float32(p.Global.orElse("lambda", 1)),
	}
	if t.thin == byRank {
		j.size = Rows(slabOf(p.Shape).size())
	}
	rescale := p.Global.orElse("rescale", t.rescale) != 0
	var faults []error
	for i, k := range others {
		s := &share{input: k, weight: float32(weights[i]), factor: 1}
		faults = append(faults, s.choose(&p, t, j.size))
		s.rescale = rescale && s.thins()
		s.allocate(p.Len(), j.size)
		j.shares = append(j.shares, s)
		j.divisor += s.weight
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if j.divisor < 1e-8 && j.divisor > -1e-8 {
		j.divisor = 1
	}
	j.stages = stages{once(j.sampling), j.selecting, once(j.measuring), once(j.writing)}
	return j, nil
}

// Chunk is that of [Job].
func (j *taskJob) Chunk() int { return j.size }

// Scratch is that of [Job].
func (j *taskJob) Scratch() int {
	n := 6 * block // to write
	for _, s := range j.shares {
		switch {
		case s.window != nil:
			n = max(n, 2*j.size)
		case s.pruner != nil:
			n = max(n, j.size+s.pruner.scratch(j.size))
		case s.measured():
			n = max(n, j.size)
		}
	}
	return n
}

// Memory is that of [Job].
func (j *taskJob) Memory() int64 {
	var sum int64
	for _, s := range j.shares {
		sum += s.memory()
	}
	return sum
}

// needs says which inputs a pass reads: the base and those of some shares, or nil if
// there are none.
func (j *taskJob) needs(of func(s *share) bool) []bool {
	var list []int
	for _, s := range j.shares {
		if of(s) {
			list = append(list, s.input)
		}
	}
	if list == nil {
		return nil
	}
	return j.p.needs(list, j.p.Base)
}

// sampling is the pass in which windows take samples.
func (j *taskJob) sampling() *Pass {
	need := j.needs(func(s *share) bool { return s.window != nil && s.window.rank.picked != nil })
	if need == nil {
		return nil
	}
	var picked []int
	for _, s := range j.shares {
		if s.window != nil {
			picked = s.window.rank.picked // the same for all
			s.window.rank.begin()
		}
	}
	return &Pass{Chunks: picked, Need: need, Do: func(c *Chunk) error {
		for _, s := range j.shares {
			if s.window != nil {
				s.window.rank.sampled(c.Index, c.Len(), j.difference(s, c))
			}
		}
		return nil
	}}
}

// difference gives single elements of a Δ.
func (j *taskJob) difference(s *share, c *Chunk) func(i int) float32 {
	x, b := c.In[s.input], c.In[j.p.Base]
	return func(i int) float32 { return x[i] - b[i] }
}

// selecting is the passes in which windows find their ends.
func (j *taskJob) selecting() *Pass {
	need := j.needs(func(s *share) bool { return s.window != nil && s.window.settle() })
	if need == nil {
		return nil
	}
	return &Pass{Need: need, Do: func(c *Chunk) error {
		d, rest := c.Scratch[:c.Len()], c.Scratch[c.Len():]
		for _, s := range j.shares {
			if s.window != nil && !s.window.done {
				j.p.Level.Sub(d, c.In[s.input], c.In[j.p.Base])
				s.window.rank.walk(j.p.Level, c.Index, d, words(rest))
			}
		}
		return nil
	}}
}

// measuring is the pass in which masks are made that are kept, and sums of |Δ|.
func (j *taskJob) measuring() *Pass {
	need := j.needs((*share).measured)
	if need == nil {
		return nil
	}
	return &Pass{Need: need, Do: func(c *Chunk) error {
		d, rest := c.Scratch[:c.Len()], c.Scratch[c.Len():]
		for _, s := range j.shares {
			if s.measured() {
				j.p.Level.Sub(d, c.In[s.input], c.In[j.p.Base])
				s.measure(j.p.Level, c, d, rest, j.difference(s, c))
			}
		}
		return nil
	}}
}

// writing is the last pass.
func (j *taskJob) writing() *Pass {
	for _, s := range j.shares {
		s.finish()
	}
	need := j.needs(func(s *share) bool { return !s.none })
	if need == nil {
		need = j.p.needs(nil, j.p.Base)
	}
	return &Pass{Writes: true, Need: need, Do: func(c *Chunk) error {
		views := make([]view, len(j.shares))
		for i, s := range j.shares {
			if s.window != nil {
				views[i] = s.window.view(c.Index, c.Len(), j.difference(s, c))
			}
		}
		for lo := 0; lo < c.Len(); lo += block {
			j.write(c, lo, min(lo+block, c.Len()), views)
		}
		return nil
	}}
}

// write computes elements lo to hi of a chunk.
func (j *taskJob) write(c *Chunk, lo, hi int, views []view) {
	l, n := j.p.Level, hi-lo
	base, y := c.In[j.p.Base][lo:hi], c.Out[lo:hi]
	d, sums := c.Scratch[:n], c.Scratch[block:6*block]
	var v kernel.Votes
	if j.rule.consensus {
		v = newVotes(sums, n)
	} else {
		clear(y)
	}
	for i, s := range j.shares {
		if s.none {
			continue
		}
		l.Sub(d, c.In[s.input][lo:hi], base)
		s.keep(l, d, c, lo, views[i])
		if s.factor != 1 {
			l.Scale(d, d, s.factor)
		}
		if j.rule.consensus {
			l.Vote(v, d, s.weight)
		} else {
			l.AddScaled(y, d, s.weight)
		}
	}
	switch {
	case j.rule.consensus:
		l.Elect(y, v, j.normalize)
	case j.normalize:
		l.Divide(y, y, j.divisor)
	}
	if j.lambda != 1 {
		l.Scale(y, y, j.lambda)
	}
	l.Add(y, base, y)
}

// newVotes are votes of n elements, all 0, in memory for 5 blocks.
func newVotes(x []float32, n int) kernel.Votes {
	clear(x)
	return kernel.Votes{
		Sum: x[:n], Plus: x[block:][:n], Minus: x[2*block:][:n],
		WPlus: x[3*block:][:n], WMinus: x[4*block:][:n],
	}
}
