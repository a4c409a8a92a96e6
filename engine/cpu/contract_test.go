// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package cpu_test

import (
	"testing"

	"pleach/engine"
	"pleach/engine/cpu"
	"pleach/engine/enginetest"
	"pleach/half"
	"pleach/kernel"
)

func TestContract(t *testing.T) {
	for _, k := range kernel.Levels() {
		t.Run(k.String(), func(t *testing.T) {
			open := func(*testing.T) engine.Engine { return cpu.New(cpu.Options{Level: k, Threads: 2}) }
			enginetest.Run(t, open, enginetest.Options{Tolerance: 1e-5, Types: []half.DType{half.F32, half.BF16}})
		})
	}
}
