// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pleach/internal/fault"

	"pleach/engine/cpu"
)

// at is a machine of one speed.
func at(flops float64) func(candidate) (float64, error) {
	return func(candidate) (float64, error) { return flops, nil }
}

// rank is where a sizing stands among the candidates.
func rank(t *testing.T, s sizing) int {
	for i, c := range candidates() {
		if c.Width == s.Width && c.Layers == s.Layers {
			return i
		}
	}
	t.Fatalf("%+v is no candidate", s)
	return 0
}

func TestCandidates(t *testing.T) {
	last, least := 0.0, 0
	for i, c := range candidates() {
		work, err := c.perToken()
		if err != nil {
			t.Fatalf("candidate %d: %v", i, err)
		}
		if work < 1.3*last || c.Least <= least {
			t.Errorf("candidate %d: %.3g FLOP a token and at least %d tokens, want clearly more than %.3g and %d",
				i, work, c.Least, last, least)
		}
		last, least = work, c.Least
	}
}

func TestSize(t *testing.T) {
	speeds := []float64{1.2e9, 3e9, 1e10, 3e10, 1e11, 1e12, 1e13}
	minutes := []float64{0.5, 1, 5, 20, 60}
	// work is what must not fall when a machine gets faster or has more time.
	work := func(s sizing) float64 {
		w, err := s.perToken()
		if err != nil {
			t.Fatal(err)
		}
		return w * float64(s.tokens())
	}
	before := map[float64]float64{}
	for _, m := range minutes {
		slower, slowerRank := 0.0, 0
		for _, f := range speeds {
			s, err := size(60*m, at(f))
			if err != nil {
				t.Fatalf("%v minutes at %g: %v", m, f, err)
			}
			if s.Seconds > 60*m*(1-reserve)+0.01 {
				t.Errorf("%v minutes at %g: predicted %.1f s, want at most %.1f", m, f, s.Seconds, 60*m*(1-reserve))
			}
			if w, r := work(s), rank(t, s); w < slower || r < slowerRank || w < before[f] {
				t.Errorf("%v minutes at %g: work %.3g with candidate %d: less than with a slower machine or less time", m, f, w, r)
			} else {
				slower, slowerRank, before[f] = w, r, w
			}
			if 2*s.Continue > s.Base || 2*s.Continue < s.Base-1 || math.Abs(0.9*float64(s.Replay)-float64(s.Continue)) > 1 {
				t.Errorf("%v minutes at %g: %d, %d and %d steps", m, f, s.Base, s.Continue, s.Replay)
			}
			if s.Text < 4*s.Base*s.step() || s.HeldOut < 7500 {
				t.Errorf("%v minutes at %g: %d bytes of text for %d tokens, %d held out", m, f, s.Text, s.Base*s.step(), s.HeldOut)
			}
		}
	}
}

// TestWithin shortens continuations of 100 and 111 steps of 1000 tokens.
func TestWithin(t *testing.T) {
	s := sizing{Sequence: 100, Batch: 10, Base: 200, Continue: 100, Replay: 111}
	for _, tt := range []struct {
		seconds        float64
		first, replays int
	}{
		{1000, 100, 111}, // time enough: as planned
		{230, 100, 111},
		{fixed + 211.2*0.6, 60, 66},
		{fixed + 10, 25, 27}, // not less than a quarter
		{-100, 25, 27},
	} {
		got := s.within(tt.seconds, 1000)
		if got.Continue != tt.first || got.Replay != tt.replays {
			t.Errorf("%v seconds: %d and %d steps, want %d and %d", tt.seconds, got.Continue, got.Replay, tt.first, tt.replays)
		}
	}
}

func TestSizeOfKnownMachines(t *testing.T) {
	for _, tt := range []struct {
		minutes, flops float64
		width          int
	}{
		{0.5, 1e10, 64},
		{5, 1e10, 96},
		{5, 1.5e11, 256},
		{60, 1e12, 512},
	} {
		s, err := size(60*tt.minutes, at(tt.flops))
		if err != nil || s.Width != tt.width {
			t.Errorf("%v minutes at %g: width %d, %v; want %d", tt.minutes, tt.flops, s.Width, err, tt.width)
		}
	}
}

func TestSizeTooShort(t *testing.T) {
	_, err := size(3, at(1e9))
	if fault.Exit(err) != 2 || !strings.Contains(err.Error(), "too short for this machine") {
		t.Errorf("three seconds: %v, want exit code 2", err)
	}
	broken := errors.New("no engine")
	if _, err := size(300, func(candidate) (float64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want what the measurement said", err)
	}
}

func TestMeasureSpeed(t *testing.T) {
	f, err := measureSpeed(candidates()[0], cpu.Options{Threads: 1}, time.Millisecond)
	if err != nil || !(f > 1e6 && f < 1e15) {
		t.Errorf("got %g FLOP/s, %v", f, err)
	}
}

func TestClock(t *testing.T) {
	for s, want := range map[float64]string{-1: "0:00", 0: "0:00", 59.4: "0:59", 59.6: "1:00", 61: "1:01", 3600: "60:00"} {
		if got := clock(s); got != want {
			t.Errorf("clock(%v) = %q, want %q", s, got, want)
		}
	}
}
