// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"slices"
	"testing"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/engine/enginetest"
	"pleach/half"
	"pleach/kernel"
)

// levels are those of this processor, and that of tiles as plain Go has it, where the
// rest of it can run.
func levels() []kernel.Level {
	all := kernel.Levels()
	if slices.Contains(all, kernel.AVX512) {
		all = append(all, kernel.AMXPlain)
	}
	return all
}

func TestContract(t *testing.T) {
	for _, k := range levels() {
		t.Run(k.String(), func(t *testing.T) {
			open := func(*testing.T) engine.Engine { return cpu.New(cpu.Options{Level: k, Threads: 2}) }
			enginetest.Run(t, open, enginetest.Options{Tolerance: 1e-5, Types: []half.DType{half.F32, half.BF16}})
		})
	}
}
