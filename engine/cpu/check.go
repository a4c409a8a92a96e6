// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"fmt"

	"pleach/program"
)

// check bounds an input of integers, so that no kernel reads or writes outside
// of its buffers.
type check struct {
	op     *program.Op
	name   string
	x      []int32
	lo, hi int32 // lo ≤ x < hi
	row    int   // if not 0, x[n] ≤ n mod row instead of x[n] < hi
}

func (c *check) run() error {
	for n, v := range c.x {
		hi := c.hi - 1
		if c.row > 0 {
			hi = int32(n % c.row)
		}
		if v < c.lo || v > hi {
			return fmt.Errorf("%v (%s): input %s[%d]: got %d, want %s%d", c.op.Kind, c.op.Where, c.name, n, v, c.least(), hi)
		}
	}
	return nil
}

func (c *check) least() string {
	if c.lo == masked {
		return "at most "
	}
	return fmt.Sprintf("%d to ", c.lo)
}

// masked is below every label.
const masked = -1 << 31

// inputChecks lists what the ops of a program want of its integer inputs.
func inputChecks(x *executable) []check {
	var checks []check
	seen := map[checkKey]bool{}
	add := func(op *program.Op, i, lo, hi, row int) {
		v := op.In[i]
		key := checkKey{v, lo, hi, row}
		if v.Role == program.Input && !seen[key] {
			seen[key] = true
			checks = append(checks, check{op, v.Name, view[int32](x.inputs[v]), int32(lo), int32(hi), row})
		}
	}
	for _, op := range x.p.Ops {
		switch h := op.Attr.Heads; op.Kind {
		case program.OpEmbed:
			add(op, 1, 0, op.In[0].Dim(0), 0)
		case program.OpRoPE:
			add(op, 1, 0, h.T, 0)
		case program.OpAttention:
			add(op, 1, 0, h.T, h.T)
		case program.OpCachedAttention:
			add(op, 2, 0, op.In[1].Dim(0), 0)
			add(op, 3, 0, h.T, 0)
		case program.OpHeadStats:
			add(op, 2, masked, op.In[1].Dim(0), 0)
		}
	}
	return checks
}

// checkKey tells checks apart.
type checkKey struct {
	v           *program.Value
	lo, hi, row int
}
