// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"pleach/program"
)

// Spec is the architecture. Letters as in docs/shapes.md: L layers, D width, H
// query and G key/value heads of width K, F feed-forward width, V words.
type Spec struct {
	L, D, H, G, K, F, V int
	MaxT                int // positions that the model was made for
	Eps                 float64
	Rope                program.Rope
	Tied                bool // the head is the embedding table
	AttnBias            bool // q, k, v and o have biases
	MLPBias             bool // gate, up and down have biases
}

// Check refuses what no layout could make work. Sizes are bounded so that Count
// cannot overflow; the bytes of so many parameters could.
func (s Spec) Check() error {
	for _, f := range []struct {
		name   string
		n, max int
	}{
		{"layers", s.L, 10_000},
		{"width", s.D, 1 << 20},
		{"query heads", s.H, 1 << 14},
		{"key/value heads", s.G, 1 << 14},
		{"head width", s.K, 1 << 14},
		{"feed-forward width", s.F, 1 << 22},
		{"vocabulary", s.V, 1 << 24},
		{"positions", s.MaxT, 1 << 30},
	} {
		if f.n < 1 || f.n > f.max {
			return fmt.Errorf("model: %s: got %d, want 1 to %d", f.name, f.n, f.max)
		}
	}
	switch {
	case s.H%s.G != 0:
		return fmt.Errorf("model: %d query heads and %d key/value heads: want a multiple", s.H, s.G)
	case s.K%2 != 0:
		return fmt.Errorf("model: head width %d: want an even one", s.K)
	case s.H*s.K > 1<<26:
		return fmt.Errorf("model: %d query heads of width %d: want at most %d in all", s.H, s.K, 1<<26)
	case !(s.Eps > 0 && s.Eps < 1):
		return fmt.Errorf("model: eps of the norms: got %g, want between 0 and 1", s.Eps)
	}
	return s.checkRope()
}

func (s Spec) checkRope() error {
	r := s.Rope
	bad := func(what string, x float64) error { return fmt.Errorf("model: rope: %s: got %g", what, x) }
	switch {
	case !(r.Theta > 1 && r.Theta < 1e12):
		return bad("theta", r.Theta)
	case r.Scaling == program.NoScaling:
		return nil
	case !(r.Factor >= 1 && r.Factor < 1e6):
		return bad("factor", r.Factor)
	case r.Scaling == program.LinearScaling:
		return nil
	case !(r.LowFreq > 0 && r.LowFreq < r.HighFreq && r.HighFreq < 1e6):
		return fmt.Errorf("model: rope: low and high frequency factors: got %g and %g", r.LowFreq, r.HighFreq)
	case !(r.Original >= 1 && r.Original < 1e9):
		return bad("original positions", r.Original)
	}
	return nil
}

// Batch is the shape of a micro-batch: B rows of T tokens.
type Batch struct{ B, T int }

// N is the number of tokens.
func (b Batch) N() int { return b.B * b.T }

// CheckLayout says whether s and micro-batches of this shape can be laid out so.
func (s Spec) CheckLayout(l program.Layout, batch Batch) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := l.Check(); err != nil {
		return err
	}
	t, p := l.Mesh.Size(program.Tensor), l.Mesh.Size(program.Pipe)
	switch {
	case s.H%t != 0 || s.F%t != 0 || s.V%t != 0:
		return fmt.Errorf("model: tensor degree %d does not divide %d heads, feed-forward width %d and vocabulary %d",
			t, s.H, s.F, s.V)
	case s.G%t != 0 && t%s.G != 0:
		return fmt.Errorf("model: tensor degree %d and %d key/value heads: one must divide the other", t, s.G)
	case l.Sequence && batch.N()%t != 0:
		return fmt.Errorf("model: tensor degree %d does not divide %d tokens of a micro-batch", t, batch.N())
	case p > s.L:
		return fmt.Errorf("model: %d stages for %d layers", p, s.L)
	case batch.B < 1 || batch.T < 1:
		return fmt.Errorf("model: micro-batch of %d rows of %d tokens", batch.B, batch.T)
	}
	return nil
}

// checkStage is CheckLayout for a program of stage at.
func (s Spec) checkStage(l program.Layout, at int, batch Batch) error {
	if p := l.Mesh.Size(program.Pipe); at < 0 || at >= p {
		return fmt.Errorf("model: stage %d of %d", at, p)
	}
	return s.CheckLayout(l, batch)
}

// heads is what one of t ranks holds. Where t exceeds the key/value heads, each
// is held by t/G ranks. T is the bound of positions.
func (s Spec) heads(t, T int) program.Heads {
	return program.Heads{H: s.H / t, G: max(s.G/t, 1), K: s.K, T: T}
}

// layers is the range of layers of a stage.
func (s Spec) layers(stage, stages int) (lo, hi int) {
	return s.L * stage / stages, s.L * (stage + 1) / stages
}

// Groups is the number of rows of norm slots: the embedding, the layers, the
// head.
func (s Spec) Groups() int { return s.L + 2 }
