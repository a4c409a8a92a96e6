// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"testing"
)

// each16 is each, and AMX in plain Go where the rest of it can run.
func each16(t *testing.T, f func(t *testing.T, l Level)) {
	each(t, f)
	if slices.Contains(Levels(), AVX512) {
		t.Run("AMXPlain", func(t *testing.T) { f(t, AMXPlain) })
	}
}

// tile16 adds steps p … p+31 of element i,j as TDPBF16PS does: the products of even
// and of odd steps are chains from zero, added to each other and then to c.
func (g product) tile16(c float32, a, b []uint16, i, j, p int) float32 {
	var sums [2]float32
	for q := range 32 {
		var v, w uint16
		if p+q < g.k {
			x, y := g.at(i, j, p+q)
			v, w = a[x], b[y]
		}
		sums[q%2] = flushedFMA(v, w, sums[q%2])
	}
	return flushed(flushed(c) + flushed(sums[0]+sums[1]))
}
