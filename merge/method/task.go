// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

// taskArithmetic are the methods that select among differences from a base.
func taskArithmetic() []*Method { return nil }
