// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package kernel

// Only amd64 has tiles.

func tileGrid(rows, cols int, stream bool, k int, a *uint16, as, ap int, b *float32, bnext int, c *float32, ldc int,
	acc bool, groups, panels int, shapes *tileShapes,
) {
}

func peakAMX(rounds int, shapes *tileShapes) {}

func turnTiles(dst *float32, src *uint16, ss int, blocks int) {}

// Denied is empty: see level_amd64.go.
func Denied() string { return "" }
