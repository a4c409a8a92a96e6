// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"testing"

	"pleach/engine"
	"pleach/engine/enginetest"
	"pleach/engine/oracle"
	"pleach/half"
)

func TestContract(t *testing.T) {
	open := func(*testing.T) engine.Engine { return oracle.New() }
	enginetest.Run(t, open, enginetest.Options{Types: []half.DType{half.F32, half.BF16}})
}
