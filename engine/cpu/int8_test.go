// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pleach/engine/cpu"
	"pleach/half"
	"pleach/kernel"
	"pleach/model"
	"pleach/program"
)

// TestInt8Memory: weights of int8 take what a prediction says, and are read as they
// were written, though they lie in another order.
func TestInt8Memory(t *testing.T) {
	s := benched[1]
	l := program.Layout{Compute: half.BF16, Int8: true, Sum: half.F32}
	for _, level := range kernel.Levels() {
		o := cpu.Options{Level: level, Threads: 2}
		e := cpu.New(o)
		defer e.Close()
		var programs []*program.Program
		for _, n := range []int{40, 1} {
			p, err := model.Extend("extend", s, l, 0, model.Window{N: n, M: 1, Slots: 2, T: 64})
			must(t, err)
			compile(t, e, p)
			programs = append(programs, p)
		}
		score, err := model.Score(s, l, 0, model.Batch{B: 2, T: 32}, 3)
		must(t, err)
		compile(t, e, score)
		predicted, err := cpu.Predict(o, 1, append(programs, score)...)
		if must(t, err); predicted != e.Memory() {
			t.Errorf("%v: predicted %+v, got %+v", level, predicted, e.Memory())
		}
		for _, v := range score.Held(program.Weight) {
			if v.Type != half.I8 {
				continue
			}
			want := make([]int8, v.Len())
			for i := range want {
				want[i] = int8(rand.IntN(255) - 127)
			}
			must(t, e.Write(program.Place{}, v.Name, 0, program.ArrayOf(want)))
			lo, n := rand.IntN(len(want)), rand.IntN(100)
			part := want[lo:min(lo+n, len(want))]
			must(t, e.Write(program.Place{}, v.Name, lo, program.ArrayOf(part)))
			got := make([]int8, len(part))
			must(t, e.Read(program.Place{}, v.Name, lo, program.ArrayOf(got)))
			if !slices.Equal(got, part) {
				t.Errorf("%v: %s: read other numbers than were written", level, v.Name)
			}
		}
	}
}
