// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// detect is the levels beside Portable: every arm64 has NEON.
func detect() []Level { return []Level{NEON} }
