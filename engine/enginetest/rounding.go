// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"fmt"
	"math"
	"testing"

	"pleach/engine"
	"pleach/half"
	"pleach/internal/rng"
	"pleach/program"
)

// shrunk is an update whose numbers float32 holds exactly, so that what they are
// rounded to is known to the bit: without a gradient it multiplies p, if lr is
// one and there are no moments, or m and v, if lr is zero, with 1 − 2⁻¹⁰.
type shrunk struct {
	*draw
	seed    uint64
	t       float64
	lr      float64
	moments half.DType
	grows   bool // by 2⁻¹⁰ instead
}

const keeps = 1 - 1.0/1024

func (s *suite) shrunk(t *testing.T, n int, how shrunk, value func(i int) float64) shrunk {
	t.Helper()
	d := s.begin("rounding", 9, program.KeepAll)
	how.draw = d
	build(t, d, func() {
		d.b.UpdatePhase()
		p := d.values(d.weight("layer.w", n), value)
		state := func(name string, typ half.DType) *program.Value {
			return d.values(d.b.State(name, typ, program.Same, n), func(i int) float64 {
				if how.lr != 0 || name == "dlayer.w" {
					return 0
				}
				return math.Abs(value(i))
			})
		}
		m, v := state("m.layer.w", how.moments), state("v.layer.w", how.moments)
		report := d.values(d.b.Input("report", half.F64, program.ReportLen), func(int) float64 { return 1 })
		adam := program.Adam{Beta1: keeps, Beta2: keeps, Eps: 1e-8, Decay: 1 - keeps}
		if how.grows {
			adam.Decay = keeps - 1
		}
		r := program.Rounding{Stochastic: true, Seed: how.seed}
		d.b.AdamW(p, m, v, state("dlayer.w", half.F32), report, d.scalar("lr", how.lr), d.scalar("t", how.t), adam, r, false)
	})
	return how
}

// bits runs the update and returns a state of it.
func (h shrunk) bits(t *testing.T, e engine.Engine, name string) []uint16 {
	t.Helper()
	for _, r := range h.run(t, e) {
		if r.name == name {
			return program.View[uint16](r.Array)
		}
	}
	t.Fatalf("no state %s", name)
	return nil
}

// rounded is x·keeps, rounded as the contract says element i of a name is.
func (h shrunk) rounded(x float64, name string, i int) uint16 {
	number := rng.New(h.seed, "round "+name).Word(uint64(h.t)<<34 + uint64(i/2))
	if i%2 == 1 {
		number >>= 16
	}
	return uint16((math.Float32bits(float32(x*keeps)) + number&0xffff) >> 16)
}

func (s *suite) roundingNumbers(t *testing.T) {
	if s.kind != half.BF16 {
		t.Skip("for bf16")
	}
	const n = 4099
	value := func(i int) float64 { // of every fraction, both signs, and zero
		return float64(half.FromBF16(uint16(0x3e80+i%0x200))) * float64(i%3-1)
	}
	seen := map[string]string{}
	for _, how := range []shrunk{
		{seed: 0, t: 1, lr: 1, moments: half.F32},
		{seed: 0, t: 2, lr: 1, moments: half.F32},
		{seed: 1<<63 + 5, t: 1, lr: 1, moments: half.BF16},
		{seed: 0, t: 1 << 20, lr: 0, moments: half.BF16},
	} {
		h := s.shrunk(t, n, how, value)
		names := []string{"layer.w"}
		if how.lr == 0 {
			names = []string{"m.layer.w", "v.layer.w"}
		}
		for _, name := range names {
			got := h.bits(t, s.engine(t), name)
			for i, g := range got {
				x := value(i)
				if how.lr == 0 {
					x = math.Abs(x)
				}
				if want := h.rounded(x, name, i); g != want && !(g<<1 == 0 && want<<1 == 0) {
					t.Fatalf("seed %d, step %v: %s[%d] was %g: got bits %#x, want %#x", h.seed, h.t, name, i, x, g, want)
				}
			}
			all := fmt.Sprint(got)
			if other, ok := seen[all]; ok {
				t.Errorf("%s at step %v with seed %d is rounded like %s", name, h.t, h.seed, other)
			}
			seen[all] = name
		}
	}
}

func (s *suite) roundingMean(t *testing.T) {
	if s.kind != half.BF16 {
		t.Skip("for bf16")
	}
	const n, kinds = 1 << 15, 4
	values := [kinds]float64{1.5, -1.25, 0.01171875, 3.9375}
	h := s.shrunk(t, n, shrunk{seed: 3, t: 7, lr: 1, moments: half.F32}, func(i int) float64 { return values[i%kinds] })
	got := h.bits(t, s.engine(t), "layer.w")
	for k, v := range values {
		exact, sum, lo := v*keeps, 0.0, math.Inf(1)
		hi := -lo
		for i := k; i < n; i += kinds {
			x := float64(half.FromBF16(got[i]))
			sum, lo, hi = sum+x, min(lo, x), max(hi, x)
		}
		if !(lo < exact && exact < hi) || half.ToBF16(float32(hi))-half.ToBF16(float32(lo)) != 1 && v > 0 {
			t.Errorf("%g becomes %g to %g, want the two neighbours of %g", v, lo, hi, exact)
		}
		deviation := math.Sqrt((exact - lo) * (hi - exact) / (n / kinds)) // of the mean of two values
		if z := (sum/(n/kinds) - exact) / deviation; math.Abs(z) > 4.5 {
			t.Errorf("%g: the mean is %.1f standard errors off %g", v, z, exact)
		}
	}
	again := h.bits(t, s.engine(t), "layer.w")
	for i := range got {
		if got[i] != again[i] {
			t.Fatalf("a second run: element %d is %#x, was %#x", i, again[i], got[i])
		}
	}
}

func (s *suite) roundingLargest(t *testing.T) {
	if s.kind != half.BF16 {
		t.Skip("for bf16")
	}
	const n = 300
	values := []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0, float64(half.FromBF16(0x7f7f)), float64(half.FromBF16(0xff7f))}
	want := []uint16{0x7f80, 0xff80, 0x7fc0, 0, 0x7f7f, 0xff7f}
	h := s.shrunk(t, n, shrunk{t: 3, lr: 1, moments: half.F32, grows: true}, func(i int) float64 { return values[i%len(values)] })
	for i, g := range h.bits(t, s.engine(t), "layer.w") {
		w := want[i%len(values)]
		if nan := w == 0x7fc0 && g&0x7fff > 0x7f80; g != w && !nan && g<<1|w<<1 != 0 {
			t.Fatalf("%v that grows: got bits %#x, want %#x", values[i%len(values)], g, w)
		}
	}
}
