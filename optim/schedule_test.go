// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package optim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pleach/optim"
)

// TestClosedForms compares every schedule with its formula, written as one
// would on paper, at every step and beyond the last.
func TestClosedForms(t *testing.T) {
	const peak, floor = 3e-3, 3e-4
	const W, L = 10, 90 // warm-up, length
	x := func(s float64) float64 { return (s - W) / (L - W) }
	tests := []struct {
		name     string
		schedule optim.Schedule
		after    func(s float64) float64 // W ≤ s ≤ L
	}{
		{"cosine", optim.Schedule{Shape: optim.Cosine, Floor: floor}, func(s float64) float64 {
			return floor + 0.5*(peak-floor)*(1+math.Cos(math.Pi*x(s)))
		}},
		{"cosine to zero", optim.Schedule{Shape: optim.Cosine}, func(s float64) float64 {
			return 0.5 * peak * (1 + math.Cos(math.Pi*x(s)))
		}},
		{"HLAT", optim.Schedule{Shape: optim.Cosine, Cut: floor}, func(s float64) float64 {
			return math.Max(floor, 0.5*peak*(1+math.Cos(math.Pi*x(s))))
		}},
		{"linear", optim.Schedule{Shape: optim.Linear, Floor: floor}, func(s float64) float64 {
			return peak*(1-x(s)) + floor*x(s)
		}},
		{"constant", optim.Schedule{Shape: optim.Constant}, func(float64) float64 { return peak }},
		{"wsd", optim.Schedule{Shape: optim.WSD, Floor: floor, Decay: 30}, func(s float64) float64 {
			if s <= 60 {
				return peak
			}
			return peak - (peak-floor)*(s-60)/30
		}},
		{"wsd all decay", optim.Schedule{Shape: optim.WSD, Decay: L - W}, func(s float64) float64 {
			return peak * (1 - x(s))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.schedule
			s.Peak, s.Warmup, s.Length = peak, W, L
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			for step := int64(1); step <= L+20; step++ {
				want := tt.after(math.Min(float64(step), L)) // the last rate stays
				if step < W {
					want = peak * float64(step) / W
				}
				if got := s.Rate(step); math.Abs(got-want) > 1e-15*peak {
					t.Errorf("step %d: %.17g, want %.17g", step, got, want)
				}
			}
		})
	}
}

// TestEnds: the peak stands at the last step of the warm-up, or the first of
// all; the floor, or the cut, at the last.
func TestEnds(t *testing.T) {
	for _, shape := range []optim.Shape{optim.Cosine, optim.Linear, optim.WSD} {
		for _, warmup := range []int64{0, 1, 7} {
			s := optim.Schedule{Shape: shape, Peak: 1, Floor: 0.125, Warmup: warmup, Length: 40}
			if shape == optim.WSD {
				s.Decay = 5
			}
			if got := s.Rate(40); got != s.Floor {
				t.Errorf("%+v: the last rate is %g", s, got)
			}
			if got := s.Rate(max(warmup, 1)); warmup > 0 && got != s.Peak {
				t.Errorf("%+v: after the warm-up the rate is %g", s, got)
			}
			if got := s.Rate(39); got <= s.Floor {
				t.Errorf("%+v: the rate before the last is %g", s, got)
			}
		}
	}
	hlat := optim.Schedule{Shape: optim.Cosine, Peak: 1, Cut: 0.25, Length: 40}
	if hlat.Rate(40) != 0.25 || hlat.Rate(30) != 0.25 || hlat.Rate(20) <= 0.25 {
		t.Errorf("cut: rates %g, %g, %g", hlat.Rate(20), hlat.Rate(30), hlat.Rate(40))
	}
	only := optim.Schedule{Shape: optim.Cosine, Peak: 1, Warmup: 4, Length: 4}
	if only.Rate(1) != 0.25 || only.Rate(4) != 1 || only.Rate(9) != 1 {
		t.Errorf("all warm-up: rates %g, %g, %g", only.Rate(1), only.Rate(4), only.Rate(9))
	}
	one := optim.Schedule{Shape: optim.Linear, Peak: 1, Floor: 0.5, Length: 1}
	if one.Rate(1) != 0.5 {
		t.Errorf("one step: rate %g", one.Rate(1))
	}
}

func TestScheduleCheck(t *testing.T) {
	good := optim.Schedule{Shape: optim.WSD, Peak: 1e-3, Floor: 1e-4, Warmup: 5, Decay: 5, Length: 10}
	tests := []struct {
		want   string
		change func(s *optim.Schedule)
	}{
		{"", func(*optim.Schedule) {}},
		{"", func(s *optim.Schedule) { s.Shape, s.Warmup = optim.Constant, 100 }},
		{"optim: learning rate: got 0", func(s *optim.Schedule) { s.Peak = 0 }},
		{"optim: learning rate: got NaN", func(s *optim.Schedule) { s.Peak = math.NaN() }},
		{"optim: learning rate: got +Inf", func(s *optim.Schedule) { s.Peak = math.Inf(1) }},
		{"floor of the schedule: got 0.1, want 0 to 0.001", func(s *optim.Schedule) { s.Floor = 0.1 }},
		{"floor of the schedule: got 0.1, want 0 to 0.001", func(s *optim.Schedule) { s.Cut = 0.1 }},
		{"floor of the schedule", func(s *optim.Schedule) { s.Floor = math.NaN() }},
		{"schedule of 0 steps", func(s *optim.Schedule) { s.Length = 0 }},
		{"with -1 of warm-up", func(s *optim.Schedule) { s.Warmup = -1 }},
		{"shorter than its warm-up of 5 and decay of 6", func(s *optim.Schedule) { s.Decay = 6 }},
		{`schedule "square": want cosine, linear, constant or wsd`, func(s *optim.Schedule) { s.Shape = "square" }},
	}
	for _, tt := range tests {
		s := good
		tt.change(&s)
		err := s.Check()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: got %v, want %q", s, err, tt.want)
		}
	}
}

func ExampleSchedule() {
	s := optim.Schedule{Shape: optim.Cosine, Peak: 3e-3, Floor: 3e-4, Warmup: 5, Length: 20}
	for _, step := range []int64{1, 5, 20} {
		fmt.Printf("%.2g ", s.Rate(step))
	}
	// Output: 0.0006 0.003 0.0003
}
