// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pleach/engine"
	"pleach/engine/oracle"
	"pleach/half"
	"pleach/program"
)

// Options say what is expected of an engine.
type Options struct {
	// Tolerance is the largest error of an element, relative to the largest
	// element of its array as the oracle has it. 0 wants equal numbers. Numbers of
	// type bf16 may be off by a place more, see place.
	Tolerance float64
	// Types are the element types of weights and activations to test, float32
	// alone if there is none.
	Types []half.DType
	// Draws is the number of programs drawn for each case; 0 is 8.
	Draws int
}

var seedFlag = flag.Uint64("engine.seed", 0, "seed of the random programs, 0 for a new one")

// Run tests the engines that open makes. Each is closed after use.
func Run(t *testing.T, open func(t *testing.T) engine.Engine, o Options) {
	if len(o.Types) == 0 {
		o.Types = []half.DType{half.F32}
	}
	if o.Draws == 0 {
		o.Draws = 8
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("re-run: go test -run '^%s$' -engine.seed %d", t.Name(), seed)
	for _, kind := range o.Types {
		t.Run(kind.String(), func(t *testing.T) {
			s := &suite{Options: o, open: open, kind: kind, seed: seed}
			t.Run("op", s.ops)
			t.Run("contract", s.contract)
		})
	}
}

// suite is the tests of one element type.
type suite struct {
	Options
	open func(t *testing.T) engine.Engine
	kind half.DType
	seed uint64
}

// engine opens an engine that is closed with the test.
func (s *suite) engine(t *testing.T) engine.Engine {
	t.Helper()
	e := s.open(t)
	t.Cleanup(func() { e.Close() })
	return e
}

// ops runs every case on random shapes, and wants every kind of op that one
// rank can have to be in one of them.
func (s *suite) ops(t *testing.T) {
	var seen [program.Kinds]bool
	for i, c := range opCases {
		if c.only && s.kind != half.BF16 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			worst := 0.0
			for n := range s.Draws {
				d := s.draw(t, c, uint64(100*i+n))
				for _, op := range d.p.Ops {
					seen[op.Kind] = true
				}
				worst = max(worst, s.compare(t, c, d))
			}
			t.Logf("largest relative error %.2g", worst)
			if t.Failed() {
				t.Log("rule: " + c.explanation)
			}
		})
	}
	for k, ok := range seen {
		if k := program.Kind(k); !ok && k != program.OpSend && k != program.OpRecv {
			t.Errorf("no case has the op %v", k)
		}
	}
}

// results are the outputs and then the weights and states of a run.
type results []result

type result struct {
	name string
	program.Array
}

// compare runs a drawn program on a new engine and on the oracle, and again. It
// returns the largest relative error.
func (s *suite) compare(t *testing.T, c opCase, d *draw) (worst float64) {
	t.Helper()
	e, o := s.engine(t), oracle.New()
	got, want := d.run(t, e), d.run(t, o)
	for i, w := range want {
		most := s.tolerance(c, w.Type)
		for _, pair := range c.split(w, got[i]) {
			r := distance(pair[0], pair[1], c.floor)
			worst = max(worst, r)
			if !(r <= most) {
				t.Errorf("%s of %v: relative error %g, want at most %g", w.name, d.shapes(), r, most)
			}
		}
	}
	sameBits(t, "a second run", d.run(t, e), got)
	return worst
}

// place is the last place of a bf16 number, with its 8 significant bits, relative
// to the number: 2⁻⁸ to 2⁻⁷. Engine and oracle round numbers that differ by the
// tolerance of float32, so where these lie on two sides of a midpoint the results
// are neighbours, and not further apart than this relative to the largest. Two
// terms of stochastic rounding are neighbours in the same way.
const place = 1.0 / 128

// tolerance is that of results of a type. What an op sums up in float32 keeps
// the tolerance of float32 in programs of bf16 too: its operands are the same
// numbers, and their products are exact. Where an op rounds numbers of its own
// before it multiplies them (the probabilities p, by 2⁻⁹ each), a sum Σ p·v is off
// by less than half a place of the largest |v|. The result of attention has the
// size of that. The head's counts as 1 at least, while |v| goes up to 4, twice: for
// Σ p and for p − 1 at the label.
func (s *suite) tolerance(c opCase, t half.DType) float64 {
	most := s.Tolerance * max(c.slack, 1)
	if s.kind == half.BF16 && s.Tolerance > 0 {
		if t == half.BF16 {
			return most + max(1, c.inner)*place
		}
		return most + c.inner*place
	}
	return most
}

// distance is the largest difference, relative to the largest finite element of
// want, or floor; NaN if only one of two numbers is finite or they are different
// infinities.
func distance(want, got []float64, floor float64) (worst float64) {
	top := floor
	for _, w := range want {
		if !math.IsInf(w, 0) {
			top = max(top, math.Abs(w))
		}
	}
	for i, w := range want {
		switch g := got[i]; {
		case g == w || math.IsNaN(g) && math.IsNaN(w):
		case math.IsNaN(g-w) || math.IsInf(g-w, 0):
			return math.NaN()
		default:
			worst = max(worst, math.Abs(g-w)/max(top, math.SmallestNonzeroFloat64))
		}
	}
	return worst
}

// sameBits wants two runs to be equal, bit for bit.
func sameBits(t *testing.T, what string, got, want results) {
	t.Helper()
	for i, w := range want {
		if !slices.Equal(got[i].Bytes, w.Bytes) {
			x, y := wide(got[i].Array), wide(w.Array)
			for j := range x {
				if math.Float64bits(x[j]) != math.Float64bits(y[j]) {
					t.Errorf("%s: %s[%d]: got %v, want %v bit for bit", what, w.name, j, x[j], y[j])
					break
				}
			}
		}
	}
}

// wide is the elements of a as float64.
func wide(a program.Array) []float64 {
	var x []float64
	switch a.Type {
	case half.F32:
		for _, v := range program.View[float32](a) {
			x = append(x, float64(v))
		}
	case half.I32:
		for _, v := range program.View[int32](a) {
			x = append(x, float64(v))
		}
	case half.BF16:
		for _, v := range program.View[uint16](a) {
			x = append(x, float64(math.Float32frombits(uint32(v)<<16)))
		}
	case half.I8:
		for _, v := range program.View[int8](a) {
			x = append(x, float64(v))
		}
	default:
		x = slices.Clone(program.View[float64](a))
	}
	return x
}
