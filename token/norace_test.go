// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package token

// racing: under the race detector a sync.Pool drops what it is given at random.
const racing = false
