// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import "testing"

func (s *suite) contract(t *testing.T) {}
