// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"math"
)

// Bound is what an op wants of an integer input, so that it reads and writes
// inside of its operands: Lo ≤ x[n] < Hi, and, if Row is not 0, x[n] ≤ n mod Row.
// An engine checks all bounds before it runs.
type Bound struct {
	Op     *Op
	Input  *Value
	Lo, Hi int
	Row    int
}

// Bounds lists what the ops of p want of its inputs, each once.
func (p *Program) Bounds() []Bound {
	var bs []Bound
	seen := map[Bound]bool{}
	add := func(op *Op, i, lo, hi, row int) {
		b := Bound{Input: op.In[i], Lo: lo, Hi: hi, Row: row}
		if b.Input.Role == Input && !seen[b] {
			seen[b] = true
			b.Op = op
			bs = append(bs, b)
		}
	}
	words := func(table *Value) int { // of the whole vocabulary
		if table.Spread == Rows {
			return table.Dim(0) * p.Mesh.Size(Tensor)
		}
		return table.Dim(0)
	}
	for _, op := range p.Ops {
		switch h := op.Attr.Heads; op.Kind {
		case OpEmbed:
			add(op, 1, 0, words(op.In[0]), 0)
		case OpRoPE:
			add(op, 1, 0, h.T, 0)
		case OpAttention:
			add(op, 1, 0, h.T, h.T)
		case OpCachedAttention:
			add(op, 2, 0, op.In[1].Dim(0), 0)
			add(op, 3, 0, h.T, 0)
		case OpHeadStats: // a negative label is masked
			add(op, 2, math.MinInt32, words(op.In[1]), 0)
		}
	}
	return bs
}

// Check names the first element of x, the input, that is out of bounds.
func (b Bound) Check(x []int32) error {
	for n, v := range x {
		hi := b.Hi - 1
		if b.Row > 0 {
			hi = n % b.Row
		}
		if int(v) >= b.Lo && int(v) <= hi {
			continue
		}
		least := fmt.Sprintf("%d to", b.Lo)
		if b.Lo == math.MinInt32 {
			least = "at most"
		}
		return fmt.Errorf("%v (%s): input %s[%d]: got %d, want %s %d", b.Op.Kind, b.Op.Where, b.Input.Name, n, v, least, hi)
	}
	return nil
}
