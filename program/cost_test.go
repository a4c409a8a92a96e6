// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"slices"
	"testing"

	"pleach/half"
	"pleach/model"
	"pleach/program"
)

// TestFLOPs: without recomputation a micro-batch costs 6 FLOPs per matrix
// element and token, 2 more for the head's logits, and 7·(T+1)·H·K per layer
// and token for attention. Full recomputation adds the forward of the blocks,
// but for the last product of each, which no gradient reads.
func TestFLOPs(t *testing.T) {
	batch := model.Batch{B: 2, T: 8}
	for _, tensor := range []int{1, 2, 4, 8} {
		s, N := small, batch.N()
		G := max(s.G, tensor) // a copy of a head costs what a head does
		qkv, out, up, down := (s.H+2*G)*s.K*s.D, s.D*s.H*s.K, 2*s.F*s.D, s.D*s.F
		attention := N * (batch.T + 1) * s.H * s.K
		none := 6*N*s.L*(qkv+out+up+down) + 8*N*s.V*s.D + 7*s.L*attention
		full := none + 2*N*s.L*(qkv+out+up) + 2*s.L*attention
		for policy, want := range []int{none, none, full} {
			for _, sequence := range []bool{false, tensor > 1} {
				l := program.Layout{Mesh: program.Mesh{Tensor: tensor}, Sequence: sequence, Recompute: program.Policy(policy)}
				if got := tensor * accumulate(t, s, l, batch).Cost().FLOPs; got != want {
					t.Errorf("%+v: %d FLOPs on all ranks, want %d", l, got, want)
				}
			}
		}
	}
}

func accumulate(t *testing.T, s model.Spec, l program.Layout, batch model.Batch) *program.Program {
	t.Helper()
	p, err := model.Accumulate(s, l, 0, batch)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWire: what a rank sends in a micro-batch, by the table of collectives per
// block; the ends add the embedding, the head's input and its statistics.
func TestWire(t *testing.T) {
	batch := model.Batch{B: 2, T: 8}
	const t4, word = 4, 2 // tensor degree, bytes
	s, N := small, batch.N()
	hop := N * s.D * word * (t4 - 1) / t4 // a gather or a scatter; an all-reduce is two
	stats := N * 3 * 4 * (t4 - 1)
	each := 8*s.L + 4 // per block 2 all-reduces, or gathers and scatters, each way
	tests := []struct {
		policy   program.Policy
		sequence bool
		hops     int
	}{
		{program.KeepAll, false, each},
		{program.Selective, false, each},
		{program.Full, false, each + 2*s.L}, // an all-reduce again
		{program.KeepAll, true, each},
		{program.Selective, true, each + 2*s.L}, // 2 gathers again
		{program.Full, true, each + 3*s.L},      // and a scatter
	}
	for _, tt := range tests {
		l := program.Layout{
			Mesh: program.Mesh{Tensor: t4}, Sequence: tt.sequence, Recompute: tt.policy, Compute: half.BF16, Sum: half.F32,
		}
		if got, want := accumulate(t, s, l, batch).Cost().Wire, tt.hops*hop+stats; got != want {
			t.Errorf("%v, sequence %v: %d bytes on the wire, want %d", tt.policy, tt.sequence, got, want)
		}
	}
}

// TestRecompute: which kinds each policy appends again, and that every one of
// them is read.
func TestRecompute(t *testing.T) {
	cheap := []program.Kind{program.OpRMSNorm, program.OpSwiGLU, program.OpAllGather, program.OpScale, program.OpCast}
	for policy := program.KeepAll; policy <= program.Full; policy++ {
		l := program.Layout{Mesh: program.Mesh{Tensor: 2}, Sequence: true, Recompute: policy}
		p := accumulate(t, small, l, model.Batch{B: 1, T: 8})
		read := map[*program.Value]bool{}
		for _, op := range slices.Backward(p.Ops) {
			if op.Phase == program.Recompute {
				if policy == program.KeepAll || policy == program.Selective && !slices.Contains(cheap, op.Kind) {
					t.Errorf("%v: %v is computed again", policy, op.Kind)
				}
				if !slices.ContainsFunc(op.Out, func(v *program.Value) bool { return read[v] }) {
					t.Errorf("%v: %v is computed again, and nothing reads it", policy, op.Out[0])
				}
			}
			for _, v := range op.In {
				read[v] = true
			}
		}
	}
}

// TestCrossing: what the backward half reads of the forward half, each value
// once, and nothing else.
func TestCrossing(t *testing.T) {
	for policy, want := range [][]string{{"h.0", "y.0", "u.0"}, {"y.0"}, {"x.0"}} {
		b := program.New("test", program.Layout{Compute: f32, Sum: f32, Recompute: program.Policy(policy)})
		x := b.Keep(b.Embed(weight(b, "table", program.Same, 9, 4), b.Input("ids", i32, 5)))
		h := b.RMSNorm(x, weight(b, "w", program.Same, 4), 0)
		u := b.SwiGLU(b.Linear(h, weight(b, "up", program.Same, 6, 4)))
		b.Seed(b.Linear(u, weight(b, "down", program.Same, 4, 3)), in(b, "dy", 5, 4))
		b.Backward()
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, "x.0")
		slices.Sort(want)
		var got []string
		for _, v := range p.Crossing() {
			got = append(got, v.Name)
		}
		slices.Sort(got)
		if want = slices.Compact(want); !slices.Equal(got, want) {
			t.Errorf("%v: %v cross, want %v", program.Policy(policy), got, want)
		}
	}
}

// TestHeldBytes: weights and states that programs share by name count once.
func TestHeldBytes(t *testing.T) {
	l := program.Layout{Compute: half.BF16, Sum: half.F32, Recompute: program.Selective}
	ps := stagePrograms(t, l)
	acc, update, score := ps[0], ps[1], ps[2]
	n := small.Count()
	state, input := program.HeldBytes(acc)
	if want := 2*n + 4*n + 16; state != want {
		t.Errorf("accumulate holds %d bytes, want %d: weights, sums and tally", state, want)
	}
	if want := 3 * 4 * 16; input != want {
		t.Errorf("accumulate takes %d bytes, want %d: tokens, labels, positions", input, want)
	}
	state, input = program.HeldBytes(acc, update, acc)
	if want := (2+4+12)*n + 16; state != want {
		t.Errorf("a step holds %d bytes, want %d: master and moments too", state, want)
	}
	if want := 3*4*16 + 3*8; input != want {
		t.Errorf("a step takes %d bytes, want %d: lr, t and apply too", input, want)
	}
	if state, _ = program.HeldBytes(score); state != 2*n {
		t.Errorf("score holds %d bytes, want %d", state, 2*n)
	}
}

// TestForwardFLOPs: scoring is a third of the products of training; top words
// cost the head again; a decoded token attends to a full cache.
func TestForwardFLOPs(t *testing.T) {
	ps := stagePrograms(t, program.Layout{})
	score, decode := ps[2], ps[3]
	s := small
	blocks := s.L * ((s.H+2*s.G)*s.K*s.D + s.D*s.H*s.K + 3*s.F*s.D)
	if got, want := score.Cost().FLOPs, 8*(2*blocks+2*2*s.V*s.D+s.L*2*(8+1)*s.H*s.K); got != want {
		t.Errorf("score: %d FLOPs, want %d", got, want)
	}
	if got, want := decode.Cost().FLOPs, 2*(2*blocks+2*s.V*s.D+s.L*4*8*s.H*s.K); got != want {
		t.Errorf("decode: %d FLOPs, want %d", got, want)
	}
}

// TestUpdateWire: an all-reduce moves twice (k−1)/k of what it sums, a gather
// and a scatter once; copies move their range alone.
func TestUpdateWire(t *testing.T) {
	b := program.New("test", program.Layout{Mesh: program.Mesh{Data: 4, Pipe: 3, Tensor: 8}, Sum: f32})
	b.UpdatePhase()
	x, w := b.State("x", f32, program.Rows, 48), weight(b, "w", program.Rows, 48)
	b.SumOver(x, program.Data)
	b.SumOver(x, program.Ends)
	b.SumCopies(x, 16, 32, 2, false)
	b.Publish(w, b.ShardSum(x, 12))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, op := range p.Ops {
		got = append(got, op.Wire(p.Mesh))
	}
	if want := []int{2 * 48 * 4 * 3 / 4, 48 * 4, 16 * 4, 48 * 4 * 3 / 4, 12 * 4 * 3}; !slices.Equal(got, want) {
		t.Errorf("bytes on the wire %v, want %v", got, want)
	}
}
