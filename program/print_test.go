// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"pleach/half"
	"pleach/program"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt")

// TestPrint keeps printed programs in testdata: a block with its gradient on
// two tensor ranks under sequence parallelism, and an update with ZeRO-1.
func TestPrint(t *testing.T) {
	for name, build := range map[string]func(*program.Builder) []*program.Value{"block": block, "update": finish} {
		b := program.New(name, program.Layout{
			Mesh: program.Mesh{Data: 2, Tensor: 2}, Sequence: true, Zero: true, Recompute: program.Selective,
			Compute: half.BF16, Sum: half.F32,
		})
		p, err := b.Build(build(b)...)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := p.Print(&got); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("the printed program differs from %s; if that is meant, run with -update:\n%s", file, got.Bytes())
		}
	}
}

// block is a block of an MLP between an embedding and a head.
func block(b *program.Builder) []*program.Value {
	w := func(name string, s program.Spread, shape ...int) *program.Value {
		return b.Param(name, half.BF16, s, shape...)
	}
	x := b.Keep(b.ReduceScatter(b.Embed(w("embed", program.Rows, 8, 4), b.Input("tokens", half.I32, 6))))
	h := b.AllGather(b.RMSNorm(x, w("norm", program.Same, 4), 1e-5))
	u := b.SwiGLU(b.Linear(h, w("up", program.Rows, 12, 4)))
	y := b.Bias(b.ReduceScatter(b.Linear(u, w("down", program.Cols, 4, 6))), w("down.bias", program.Same, 4))
	h = b.Keep(b.AllGather(b.Add(x, y)))
	b.HeadLoss(h, w("head", program.Rows, 8, 4), b.Input("labels", half.I32, 6), b.Tally())
	b.Backward()
	return nil
}

// finish is the update of one parameter of which pairs of ranks hold copies.
func finish(b *program.Builder) []*program.Value {
	b.UpdatePhase()
	one := func(name string) *program.Value { return b.Input(name, half.F64, 1) }
	w, sum := b.Param("w", half.BF16, program.Rows, 3, 4), b.State("dw", half.F32, program.Rows, 3, 4)
	state := func(name string) *program.Value { return b.State(name, half.F32, program.Rows, 6) }
	tally, apply, lr, t := b.Tally(), one("apply"), one("lr"), one("t")
	b.SumOver(tally, program.Data)
	g := b.ShardSum(sum, 6)
	b.SumCopies(g, 4, 12, 2, true)
	slots, weights := b.Zeros(1, 2), b.Zeros(1, 1)
	b.SumSquares(slots, g, 0, 6, true, []program.Run{{Lo: 0, Hi: 4, Copies: 1, Weight: 1}, {Lo: 4, Hi: 12, Copies: 2, Weight: 0.5}})
	b.SumSquares(weights, w, 0, 12, false, []program.Run{{Lo: 0, Hi: 12, Copies: 1, Weight: 1}})
	b.SumOver(slots, program.Tensor)
	b.SumOver(slots, program.Data)
	report := b.Clip(slots, weights, tally, apply, 1)
	master := state("master.w")
	b.AdamW(master, state("m.w"), state("v.w"), g, report, lr, t, program.Adam{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}, program.Rounding{}, true)
	b.Publish(w, b.Cast(master, half.BF16))
	b.Clear(sum)
	b.Clear(tally)
	return []*program.Value{report}
}
