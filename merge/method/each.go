// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

// eachJob is one pass in which an element of the output needs only the same element
// of the inputs.
type eachJob struct {
	pass    *Pass // nil when begun
	scratch int
}

// newEach is a job of one pass over the inputs that are needed. do writes the output.
func newEach(need []bool, scratch int, do func(c *Chunk)) *eachJob {
	return &eachJob{scratch: scratch, pass: &Pass{Writes: true, Need: need, Do: func(c *Chunk) error {
		do(c)
		return nil
	}}}
}

// copyOf is the job whose output is an input.
func copyOf(p Problem, input int) Job {
	return newEach(p.needs([]int{input}, -1), 0, func(c *Chunk) { copy(c.Out, c.In[input]) })
}

func (j *eachJob) Chunk() int    { return Flat }
func (j *eachJob) Scratch() int  { return j.scratch }
func (j *eachJob) Memory() int64 { return 0 }

func (j *eachJob) Begin() (*Pass, error) {
	p := j.pass
	j.pass = nil
	return p, nil
}
