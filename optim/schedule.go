// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package optim

import (
	"fmt"
	"math"
)

// Shape is the form of a schedule after its warm-up.
type Shape string

// The shapes.
const (
	Cosine   Shape = "cosine"   // half a cosine from peak to floor
	Linear   Shape = "linear"   // a line from peak to floor
	Constant Shape = "constant" // the peak
	WSD      Shape = "wsd"      // warm up, stay, decay: the peak, then a line to the floor over Decay steps
)

// Schedule is the learning rate as a function of the step, s = 1, 2, …:
//
//	warm-up   Peak·s/Warmup                                  s ≤ Warmup
//	cosine    Floor + (Peak−Floor)·(1 + cos πx)/2,  x = (s−Warmup)/(Length−Warmup)
//	linear    Peak + (Floor−Peak)·x
//	wsd       Peak until Length−Decay, then Peak + (Floor−Peak)·(s−Length+Decay)/Decay
//
// so the floor is reached at step Length, and stays. With Cut, the cosine runs
// as if to a floor of zero and is cut off at that rate from below,
// max(Cut, Peak·(1 + cos πx)/2): HLAT's script.
//
// Loshchilov & Hutter, "SGDR", 2017, arXiv:1608.03983, eq. 5; Hu et al.,
// "MiniCPM", 2024, arXiv:2404.06395, §4 (WSD).
type Schedule struct {
	Shape  Shape
	Peak   float64
	Floor  float64
	Cut    float64 // cosine only; 0 for none
	Warmup int64   // steps
	Decay  int64   // steps, wsd only
	Length int64   // steps
}

// Check refuses a schedule that is not one.
func (s Schedule) Check() error {
	switch {
	case !(s.Peak > 0 && s.Peak < 100):
		return fmt.Errorf("optim: learning rate: got %g", s.Peak)
	case !(s.Floor >= 0 && s.Floor <= s.Peak) || !(s.Cut >= 0 && s.Cut <= s.Peak):
		return fmt.Errorf("optim: floor of the schedule: got %g, want 0 to %g", max(s.Floor, s.Cut), s.Peak)
	case s.Warmup < 0 || s.Decay < 0 || s.Length < 1:
		return fmt.Errorf("optim: schedule of %d steps with %d of warm-up and %d of decay", s.Length, s.Warmup, s.Decay)
	case s.Warmup+s.Decay > s.Length && s.Shape != Constant:
		return fmt.Errorf("optim: schedule of %d steps is shorter than its warm-up of %d and decay of %d",
			s.Length, s.Warmup, s.Decay)
	}
	switch s.Shape {
	case Cosine, Linear, Constant, WSD:
		return nil
	}
	return fmt.Errorf("optim: schedule %q: want cosine, linear, constant or wsd", s.Shape)
}

// Rate is the learning rate of step s, counted from 1.
func (s Schedule) Rate(step int64) float64 {
	if step < s.Warmup {
		return s.Peak * float64(step) / float64(s.Warmup)
	}
	switch s.Shape {
	case Cosine:
		wave := (1 + math.Cos(math.Pi*part(step-s.Warmup, s.Length-s.Warmup))) / 2
		if s.Cut > 0 {
			return max(s.Cut, s.Peak*wave)
		}
		return s.Floor + (s.Peak-s.Floor)*wave
	case Linear:
		return s.Peak + (s.Floor-s.Peak)*part(step-s.Warmup, s.Length-s.Warmup)
	case WSD:
		return s.Peak + (s.Floor-s.Peak)*part(step-s.Length+s.Decay, s.Decay)
	}
	return s.Peak
}

// part is a/b within [0,1], and 0 where b is: a schedule that is all warm-up
// stays at its peak.
func part(a, b int64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return min(float64(a)/float64(b), 1)
}
