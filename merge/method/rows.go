// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

// rowsJob takes every row, along the last dimension, as a vector of its own. A chunk
// holds whole rows, so one pass both measures and combines.
type rowsJob struct {
	combination
	row   int
	begun bool
}

// Chunk is whole rows: one of them may have more than Flat elements.
func (j *rowsJob) Chunk() int    { return Rows(j.row) }
func (j *rowsJob) Scratch() int  { return j.scratch() }
func (j *rowsJob) Memory() int64 { return 0 }

func (j *rowsJob) Begin() (*Pass, error) {
	if j.begun {
		return nil, nil
	}
	j.begun = true
	return &Pass{Need: j.p.needs(j.inputs, j.base), Writes: true, Do: j.do}, nil
}

func (j *rowsJob) do(c *Chunk) error {
	g := newGram(len(j.inputs))
	coef := make([]float64, len(j.inputs))
	for lo := 0; lo < c.Len(); lo += j.row {
		clear(g)
		j.measure(g, c, lo, lo+j.row)
		if err := j.solve(coef, g); err != nil {
			return err
		}
		j.combine(c, coef, lo, lo+j.row)
	}
	return nil
}
