// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"pleach/engine"
	"pleach/half"
	"pleach/program"
)

// Predict is the memory that an engine with these options will have allocated
// once it has compiled these programs, with up to slots micro-batches between
// their halves. It allocates none of it.
func Predict(o Options, slots int, programs ...*program.Program) (engine.Memory, error) {
	o = o.chosen()
	var m engine.Memory
	var worker int
	tables := map[rotation]bool{}
	for _, p := range programs {
		if err := checkOps(p); err != nil {
			return m, err
		}
		s := newSchedule(p, o.Level, usual, true)
		m.Arena += s.plan(slots).Bytes
		worker = max(worker, s.scratch())
		_, input := program.HeldBytes(p)
		m.Input += input
		for _, op := range p.Ops {
			if h := op.Attr.Heads; op.Kind == program.OpRoPE {
				tables[rotation{op.Attr.Rope, h.K, h.T}] = true
			}
			m.Scratch += slots * lasting(op)
		}
	}
	for r := range tables {
		m.Scratch += half.F32.Size() * r.K * r.T
	}
	m.Scratch += half.F32.Size() * worker * o.Threads
	m.State, _ = program.HeldBytes(programs...)
	return m, nil
}
