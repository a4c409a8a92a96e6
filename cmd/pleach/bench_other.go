// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

// processSeconds is not known here.
func processSeconds() float64 { return 0 }

// maxRSS is not known here.
func maxRSS() int64 { return 0 }
