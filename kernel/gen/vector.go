// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

// vectorFiles are the kernels that work along rows.
func vectorFiles() map[string]*text { return nil }
