// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"slices"
	"testing"

	"pleach/half"
	"pleach/kernel"
	"pleach/model"
	"pleach/program"
)

// TestPlaces wants values that live at the same time to lie apart, buffers of the
// steps too, but for an output over an operand that dies at its step.
func TestPlaces(t *testing.T) {
	s := model.Spec{
		L: 2, D: 42, H: 6, G: 3, K: 14, F: 50, V: 131, MaxT: 9, Eps: 1e-5,
		Rope: program.Rope{Theta: 10_000}, AttnBias: true,
	}
	for policy := program.KeepAll; policy <= program.Full; policy++ {
		l := program.Layout{Compute: half.F32, Sum: half.F32, Recompute: policy}
		p, err := model.Accumulate(s, l, 0, model.Batch{B: 2, T: 9})
		if err != nil {
			t.Fatal(err)
		}
		for _, fuse := range []bool{false, true} {
			for _, slots := range []int{1, 3} {
				checkPlaces(t, newSchedule(p, kernel.Portable, usual, fuse), slots)
			}
		}
	}
}

// span is when a value is in use, by steps.
type span struct {
	v        *program.Value
	from, to int
}

func checkPlaces(t *testing.T, s *schedule, slots int) {
	t.Helper()
	plan, spans := s.plan(slots), map[*program.Value]*span{}
	var all []*span
	for i, st := range s.steps {
		for _, v := range slices.Concat(st.in, st.out, st.own) {
			if v.Role != program.Temp {
				continue
			}
			if spans[v] == nil {
				spans[v] = &span{v, i, i}
				all = append(all, spans[v])
			}
			spans[v].to = i
		}
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if b.from > a.to || slots > 1 && plan.Spots[a.v].Saved != plan.Spots[b.v].Saved {
				continue
			}
			over := a.to == b.from && slices.Contains(s.steps[b.from].over, [2]*program.Value{b.v, a.v})
			x, y := plan.Spots[a.v].Offset, plan.Spots[b.v].Offset
			if !over && x < y+b.v.Bytes() && y < x+a.v.Bytes() {
				t.Errorf("%s of steps %d to %d and %s of %d to %d overlap", a.v.Name, a.from, a.to, b.v.Name, b.from, b.to)
			}
		}
		if across := a.from < s.cut && s.cut <= a.to; slots > 1 && across && !plan.Spots[a.v].Saved {
			t.Errorf("%s of steps %d to %d crosses the cut at %d outside of a slot", a.v.Name, a.from, a.to, s.cut)
		}
	}
}
