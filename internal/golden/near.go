// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"math"
)

// Tol is how far a number may lie from the one it is compared with:
//
//	|got - want| ≤ Abs + Rel·|want|
//
// The zero value allows no difference.
type Tol struct {
	Abs, Rel float64
}

// Near says how got misses want, in full digits, or nil if it is within tol.
// NaN is near nothing, an infinity only the same infinity.
func Near(got, want float64, tol Tol) error {
	if got == want {
		return nil
	}
	off := math.Abs(got - want)
	allowed := tol.Abs + float64(tol.Rel*math.Abs(want))
	// An infinite want would allow everything.
	if off <= allowed && !math.IsInf(want, 0) {
		return nil
	}
	return fmt.Errorf("got %v, want %v: off by %.3g (relative %.3g), allowed %.3g",
		got, want, off, off/math.Abs(want), allowed)
}

// NearAll compares two lists and says where got misses want by the most in
// units of what is allowed there, and how many do, or nil if none does.
func NearAll(got, want []float64, tol Tol) error {
	if len(got) != len(want) {
		return fmt.Errorf("got %d values, want %d", len(got), len(want))
	}
	misses, at, worst := 0, 0, -1.0
	for i := range got {
		if Near(got[i], want[i], tol) == nil {
			continue
		}
		misses++
		if m := excess(got[i], want[i], tol); m > worst {
			at, worst = i, m
		}
	}
	if misses == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d values, worst at index %d: %w",
		misses, len(got), at, Near(got[at], want[at], tol))
}

// excess orders misses; one with a NaN is beyond all others.
func excess(got, want float64, tol Tol) float64 {
	m := math.Abs(got-want) / (tol.Abs + float64(tol.Rel*math.Abs(want)))
	if math.IsNaN(m) {
		return math.Inf(1)
	}
	return m
}
