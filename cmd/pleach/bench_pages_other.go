// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// largeWords is n words.
func largeWords(n int) (words []uint64, free func()) { return make([]uint64, n), func() {} }
