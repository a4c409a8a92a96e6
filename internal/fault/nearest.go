// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package fault

import "strings"

// Nearest is the word that got was probably meant to be, for a message: the
// first of the nearest, if about a third of the letters at most are wrong; else
// empty.
func Nearest(got string, words []string) string {
	best, dist := "", 1+max(1, len(got)/3)
	for _, w := range words {
		if d := distance(got, w); d < dist {
			best, dist = w, d
		}
	}
	return best
}

// distance is the least number of letters to insert, delete, replace or swap
// with a neighbour that turns a into b (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	if len(x) > 64 || len(y) > 64 {
		return 64
	}
	var d [65][65]int
	for i := range len(x) + 1 {
		for j := range len(y) + 1 {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
				continue
			case x[i-1] == y[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}
