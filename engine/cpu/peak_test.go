// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu

import (
	"testing"

	"pleach/half"
	"pleach/kernel"
)

// TestPeakTypes: every level has a peak of either type; how high it is depends on
// the machine.
func TestPeakTypes(t *testing.T) {
	for _, l := range kernel.Levels() {
		e := New(Options{Level: l, Threads: 1})
		for _, of := range []half.DType{half.F32, half.BF16} {
			if got := e.Peak(of); !(got > 1e6) {
				t.Errorf("%v: got %.0f FLOP/s in %v", l, got, of)
			}
		}
		e.Close()
	}
}
