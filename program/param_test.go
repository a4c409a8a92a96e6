// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"fmt"
	"slices"
	"testing"

	"pleach/program"
)

// fusedParam is a fused q, k and v of H and G heads of width K for degree t.
func fusedParam(H, G, K, D, t int) program.Param {
	kv := min(t, G)
	return program.Param{
		Name: "qkv", Shape: []int{(H + 2*G) * K, D},
		Parts: []program.Part{{Size: H * K, Ways: t}, {Size: G * K, Ways: kv}, {Size: G * K, Ways: kv}},
	}
}

// TestParamTable spells one case out: 4 query and 2 key/value heads of width 2,
// 3 wide, on 4 ranks: ranks 0 and 1 hold the first key/value head.
func TestParamTable(t *testing.T) {
	p := fusedParam(4, 2, 2, 3, 4)
	if got := p.Local(); !slices.Equal(got, []int{6, 3}) {
		t.Errorf("local shape %v, want [6 3]", got)
	}
	if p.Spread() != program.Rows || p.Row() != 3 || p.Len() != 48 {
		t.Errorf("spread %v, row %d, length %d", p.Spread(), p.Row(), p.Len())
	}
	var got [][3]int
	p.Slice(1, 4, func(whole, local, n int) { got = append(got, [3]int{whole, local, n}) })
	if want := [][3]int{{6, 0, 6}, {24, 6, 6}, {36, 12, 6}}; !slices.Equal(got, want) {
		t.Errorf("rank 1 holds %v, want %v", got, want)
	}
	got = nil
	p.Slice(2, 4, func(whole, local, n int) { got = append(got, [3]int{whole, local, n}) })
	if want := [][3]int{{12, 0, 6}, {30, 6, 6}, {42, 12, 6}}; !slices.Equal(got, want) {
		t.Errorf("rank 2 holds %v, want %v", got, want)
	}
	want := []program.Run{{Lo: 0, Hi: 6, Copies: 1, Weight: 1}, {Lo: 6, Hi: 12, Copies: 2, Weight: 0.5}, {Lo: 12, Hi: 18, Copies: 2, Weight: 0.5}}
	if runs := p.Runs(4); !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
	p.Ends = true
	if w := p.Runs(4)[1].Weight; w != 0.25 {
		t.Errorf("with two homes a copy weighs %g, want 0.25", w)
	}
}

// TestParamPieces: at every degree the ranks' pieces cover the whole, their
// weights add up to one for each element, and copies are on consecutive ranks.
func TestParamPieces(t *testing.T) {
	for _, c := range []struct{ H, G, t int }{
		{8, 8, 1}, {8, 8, 4}, {8, 2, 2}, {8, 2, 4}, {8, 2, 8}, {8, 1, 8}, {12, 2, 6}, {12, 3, 3}, {12, 3, 6}, {6, 6, 3},
	} {
		for _, p := range []program.Param{
			fusedParam(c.H, c.G, 2, 3, c.t),
			{Name: "out", Shape: []int{3, c.H * 2}, Dim: 1, Parts: []program.Part{{Size: c.H * 2, Ways: c.t}}},
			{Name: "norm", Shape: []int{5}, Parts: []program.Part{{Size: 5, Ways: 1}}},
			{Name: "bias", Shape: []int{c.H * 2}, Parts: []program.Part{{Size: c.H * 2, Ways: c.t}}},
		} {
			checkPieces(t, fmt.Sprintf("%s %+v", p.Name, c), p, c.t)
		}
	}
}

func checkPieces(t *testing.T, name string, p program.Param, ranks int) {
	t.Helper()
	weight, holders := make([]float64, p.Len()), make([][]int, p.Len())
	for i := range ranks {
		size := 1
		for _, d := range p.Local() {
			size *= d
		}
		w, copies := make([]float64, size), make([]int, size)
		at := 0
		for _, r := range p.Runs(ranks) {
			if r.Lo != at {
				t.Errorf("%s: run %+v, want it to begin at %d", name, r, at)
			}
			for e := r.Lo; e < r.Hi; e++ {
				w[e], copies[e] = r.Weight, r.Copies
			}
			at = r.Hi
		}
		if at != size {
			t.Errorf("%s: runs end at %d of %d", name, at, size)
		}
		local := 0
		p.Slice(i, ranks, func(whole, at, n int) {
			if at != local {
				t.Errorf("%s: rank %d: run at %d, want %d", name, i, at, local)
			}
			for e := range n {
				weight[whole+e] += w[at+e]
				holders[whole+e] = append(holders[whole+e], i)
				if h := holders[whole+e]; h[len(h)-1]-h[0] != len(h)-1 || i/copies[at+e] != h[0]/copies[at+e] {
					t.Errorf("%s: element %d is on ranks %v", name, whole+e, h)
				}
			}
			local += n
		})
		if local != size {
			t.Errorf("%s: rank %d holds %d, want %d", name, i, local, size)
		}
	}
	for e, w := range weight {
		if w < 1-1e-15 || w > 1+1e-15 {
			t.Fatalf("%s: element %d weighs %g", name, e, w)
		}
	}
}

func TestLayoutCheck(t *testing.T) {
	tests := []struct {
		data, chunks int
		ok           bool
	}{
		{0, 0, true},
		{1, 1, true},
		{3, 0, true},
		{6, 6, true},
		{3, 3, true},
		{1, 8, true},
		{4, 8, true},
		{8, 8, true},
		{2, 1, false},
		{1, 3, false},
		{2, 6, false},
		{3, 6, false},
		{3, 4, false},
		{4, 2, false},
		{1, -1, false},
		{1, -2, false},
	}
	for _, tt := range tests {
		l := program.Layout{Mesh: program.Mesh{Data: tt.data}, Chunks: tt.chunks}
		if err := l.Check(); (err == nil) != tt.ok {
			t.Errorf("%d chunks for %d data ranks: %v", tt.chunks, tt.data, err)
		}
	}
}

func TestMesh(t *testing.T) {
	m := program.Mesh{Data: 2, Tensor: 4}
	if m.Ranks() != 8 || m.Size(program.Pipe) != 1 || m.Size(program.Ends) != 1 {
		t.Errorf("%+v: %d ranks, %d stages, %d ends", m, m.Ranks(), m.Size(program.Pipe), m.Size(program.Ends))
	}
	m.Pipe = 3
	if m.Size(program.Ends) != 2 {
		t.Errorf("%+v: %d ends, want 2", m, m.Size(program.Ends))
	}
	at := program.Place{Data: 1, Pipe: 2, Tensor: 3}
	for a, want := range map[program.Axis]int{program.Data: 1, program.Pipe: 2, program.Tensor: 3, program.Ends: 1} {
		if at.On(a) != want {
			t.Errorf("%+v is at %d on %v, want %d", at, at.On(a), a, want)
		}
	}
}

func TestPolicies(t *testing.T) {
	for p := program.KeepAll; p <= program.Full; p++ {
		if got, err := program.ParsePolicy(p.String()); err != nil || got != p {
			t.Errorf("%v is read as %v: %v", p, got, err)
		}
	}
	if _, err := program.ParsePolicy("some"); err == nil {
		t.Error(`"some" is a policy`)
	}
}
