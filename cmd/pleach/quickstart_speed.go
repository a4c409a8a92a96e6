// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"pleach/data"
	"pleach/engine/cpu"
	"pleach/internal/rng"
	"pleach/optim"
	"pleach/train"
)

// measureSpeed is the FLOP/s of real training steps of a candidate on such an
// engine, in the precision that is usual there, over at least the given time. Rows are random ids and weights are
// zero: neither changes how long a step takes.
func measureSpeed(c candidate, run cpu.Options, atLeast time.Duration) (float64, error) {
	spec, err := c.spec()
	if err != nil {
		return 0, err
	}
	acc, _, batch, err := c.programs()
	if err != nil {
		return 0, err
	}
	e := cpu.New(run)
	defer e.Close()
	precision := usualPrecision(run.Level)
	adamw := precision.Apply(optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Clip: 1})
	st, err := train.NewStepper(e, spec, precision.Layout(), batch, adamw)
	if err != nil {
		return 0, err
	}
	rows := randomRows(batch.B, batch.T, c.Vocabulary)
	if _, err := st.Step(rows, 1e-3, 1); err != nil { // the first one touches the memory
		return 0, err
	}
	began := time.Now()
	for n := 1; ; n++ {
		if _, err := st.Step(rows, 1e-3, int64(n+1)); err != nil {
			return 0, err
		}
		if took := time.Since(began); took >= atLeast {
			return float64(acc.Cost().FLOPs) * float64(n) / took.Seconds(), nil
		}
	}
}

// randomRows are B rows of T ids below V and their labels.
func randomRows(B, T, V int) []data.Row {
	rows := make([]data.Row, B)
	draw := rng.New(0, "quickstart speed")
	for i := range rows {
		r := data.Row{IDs: make([]int32, T+1), Labels: make([]int32, T), Positions: make([]int32, T)}
		for t := range r.IDs {
			r.IDs[t] = int32(draw.Word(uint64(i*(T+1)+t)) % uint32(V))
		}
		for t := range T {
			r.Labels[t], r.Positions[t] = r.IDs[t+1], int32(t)
		}
		rows[i] = r
	}
	return rows
}

// machineSpeed measures one candidate after another, only those that a plan asks
// for, and not those that a smaller one has shown to be out of reach.
type machineSpeed struct {
	options cpu.Options
	seconds float64
	first   float64 // of the reference candidate
}

// reference is the candidate that is measured first: small enough for any
// machine.
const reference = 1

// of is the speed of a candidate: measured, unless the reference says that it
// would be too slow by a factor of more than three.
func (m *machineSpeed) of(c candidate) (float64, error) {
	if m.first == 0 {
		var err error
		if m.first, err = measureSpeed(candidates()[reference], m.options, 300*time.Millisecond); err != nil {
			return 0, err
		}
	}
	s, err := c.fit(m.seconds, 3*m.first)
	if err != nil || s.Base*s.step() < c.Least {
		return m.first, err
	}
	return measureSpeed(c, m.options, 700*time.Millisecond)
}
