// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kernel

// guarded is memory for n numbers, at an odd place between others.
func (b bench) guarded(n int) (x, before, after []float32) {
	m := make([]float32, n+18)
	return m[9 : n+9 : n+9], m[:9], m[n+9:]
}
