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
	name   string
	x      []int32
	lo, hi int32 // lo ≤ x < hi
	row    int   // if not 0, also x[n] ≤ n mod row
}

func (c *check) run() error {
	for n, v := range c.x {
		if v < c.lo || v >= c.hi {
			return fmt.Errorf("input %s[%d]: got %d, want %d to %d", c.name, n, v, c.lo, c.hi-1)
		}
		if c.row > 0 && int(v) > n%c.row {
			return fmt.Errorf("input %s[%d]: got position %d, want at most %d in rows of %d", c.name, n, v, n%c.row, c.row)
		}
	}
	return nil
}

// masked is below every label.
const masked = -1 << 31

// inputChecks lists what the ops of a program want of its integer inputs.
func inputChecks(x *executable) []check {
	var checks []check
	seen := map[check2]bool{}
	add := func(v *program.Value, lo, hi, row int) {
		key := check2{v, lo, hi, row}
		if v.Role == program.Input && !seen[key] {
			seen[key] = true
			checks = append(checks, check{v.Name, view[int32](x.inputs[v]), int32(lo), int32(hi), row})
		}
	}
	for _, op := range x.p.Ops {
		switch h := op.Attr.Heads; op.Kind {
		case program.OpEmbed:
			add(op.In[1], 0, op.In[0].Dim(0), 0)
		case program.OpRoPE:
			add(op.In[1], 0, h.T, 0)
		case program.OpAttention:
			add(op.In[1], 0, h.T, h.T)
		case program.OpCachedAttention:
			add(op.In[2], 0, op.In[1].Dim(0), 0)
			add(op.In[3], 0, h.T, 0)
		case program.OpHeadStats:
			add(op.In[2], masked, op.In[1].Dim(0), 0)
		}
	}
	return checks
}

// check2 tells checks apart.
type check2 struct {
	v           *program.Value
	lo, hi, row int
}
