// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestSpikes: a spike is a norm above the mean of the last Window ones plus
// Above, HLAT §5.2; it says nothing before it has seen a window, and norms of
// spikes count in the mean.
func TestSpikes(t *testing.T) {
	type verdict struct {
		norm, mean float64
		spike      bool
		length     int
	}
	for name, c := range map[string]struct {
		window int
		above  float64
		want   []verdict
	}{
		"window 3": {3, 0.5, []verdict{
			{1, 0, false, 0},
			{9, 1, false, 0},
			{2, 5, false, 0},
			{4.5, 4, false, 0}, // not above mean + 0.5
			{6, 15.5 / 3, true, 1},
			{5, 12.5 / 3, true, 2},
			{5.5, 15.5 / 3, false, 0},
			{6.01, 16.5 / 3, true, 1},
		}},
		"window 1": {1, 0, []verdict{{1, 0, false, 0}, {1, 1, false, 0}, {1.5, 1, true, 1}, {1.25, 1.5, false, 0}}},
		"none":     {0, 0, []verdict{{1, 0, false, 0}, {100, 0, false, 0}}},
	} {
		s := Spikes{Window: c.window, Above: c.above}
		for i, w := range c.want {
			mean, spike := s.See(w.norm)
			if math.Abs(mean-w.mean) > 1e-12 || spike != w.spike || s.Length != w.length {
				t.Errorf("%s: norm %d: got mean %v, spike %v, length %d, want %+v", name, i, mean, spike, s.Length, w)
			}
			if len(s.Recent) > c.window {
				t.Errorf("%s: keeps %d norms", name, len(s.Recent))
			}
		}
	}
}

// TestSpikesContinue: recent norms and length are all that a detector needs.
func TestSpikesContinue(t *testing.T) {
	norms := []float64{1, 2, 1, 4, 5, 9, 1, 3, 7, 8, 2}
	whole := Spikes{Window: 2, Above: 0.1}
	for i, x := range norms {
		part := Spikes{Window: 2, Above: 0.1, Recent: slices.Clone(whole.Recent), Length: whole.Length}
		mean, spike := whole.See(x)
		if m, s := part.See(x); m != mean || s != spike || part.Length != whole.Length {
			t.Errorf("norm %d: got %v %v, want %v %v", i, m, s, mean, spike)
		}
	}
}

// TestLedger: every second belongs to the state that was entered last.
func TestLedger(t *testing.T) {
	now := time.Unix(100, 0)
	l := NewLedger()
	l.now, l.since = func() time.Time { return now }, now
	wait := func(s float64) { now = now.Add(time.Duration(s * 1e9)) }
	wait(2)
	if got := l.Enter(WaitingData); got != 2 {
		t.Errorf("starting took %v, want 2", got)
	}
	wait(0.5)
	l.Enter(Computing)
	wait(4)
	l.Enter(WaitingData)
	wait(0.25)
	if got := l.Seconds()[WaitingData]; got != 0.75 {
		t.Errorf("waiting: %v, want 0.75", got)
	}
	wait(1)
	all := l.Seconds()
	if all[Starting] != 2 || all[Computing] != 4 || all[WaitingData] != 1.75 || len(all) != 3 {
		t.Errorf("got %v", all)
	}
	all[Computing] = 0 // a copy
	if l.Seconds()[Computing] != 4 {
		t.Error("the ledger handed out its own map")
	}
}
