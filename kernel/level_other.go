// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 && !arm64

package kernel

// detect is the levels beside Portable.
func detect() []Level { return nil }
