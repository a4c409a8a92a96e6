// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"sync"
	"sync/atomic"
)

// Solve runs a job on inputs that are in memory, with so many workers.
func Solve(j Job, inputs [][]float32, out []float32, workers int) error {
	for {
		p, err := j.Begin()
		if err != nil || p == nil {
			return err
		}
		if err := walk(j, p, inputs, out, workers); err != nil {
			return err
		}
	}
}

// walk runs one pass.
func walk(j Job, p *Pass, inputs [][]float32, out []float32, workers int) error {
	size := j.Chunk()
	count := len(p.Chunks)
	if p.Chunks == nil {
		count = Chunks(len(out), size)
	}
	var next atomic.Int64
	var first atomic.Pointer[error]
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			scratch := make([]float32, j.Scratch())
			for {
				i := int(next.Add(1)) - 1
				if i >= count || first.Load() != nil {
					return
				}
				if p.Chunks != nil {
					i = p.Chunks[i]
				}
				if err := p.Do(p.chunk(i, size, inputs, out, scratch)); err != nil {
					first.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// chunk is chunk i of inputs in memory.
func (p *Pass) chunk(i, size int, inputs [][]float32, out, scratch []float32) *Chunk {
	lo := i * size
	hi := min(lo+size, len(out))
	c := &Chunk{Index: i, Lo: lo, In: make([][]float32, len(inputs)), Scratch: scratch}
	for k, x := range inputs {
		if p.Need == nil || p.Need[k] {
			c.In[k] = x[lo:hi]
		}
	}
	if p.Writes {
		c.Out = out[lo:hi]
	}
	return c
}
