// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// Embed copies rows of a table.
//
//	y[n,:] = table[ids[n]−first,:]
//
// table is [V,D] and holds the rows of ids first … first+V−1, y is [N,D] with N
// = len(ids). A row of another id is zero: another rank has it, and the sum over
// ranks is the whole. y must not overlap table.
func Embed[E float32 | uint16](y, table []E, ids []int32, D, first int) {
	V := rows(len(table), D)
	for n, id := range ids {
		row := y[n*D:][:D]
		if v := int(id) - first; 0 <= v && v < V {
			copy(row, table[v*D:][:D])
		} else {
			clear(row)
		}
	}
}

// EmbedGrad adds the gradient of Embed's rows to that of its table, in the
// columns d0 ≤ d < d1.
//
//	dt[ids[n]−first,d] += dy[n,d]   for n = 0, 1, …
//
// dt is [V,D], dy is [N,D]; other ids are left out.
func (l Level) EmbedGrad(dt, dy []float32, ids []int32, D, first, d0, d1 int) {
	V := rows(len(dt), D)
	for n, id := range ids {
		if v := int(id) - first; 0 <= v && v < V {
			l.AddInto(dt[v*D:][d0:d1], dy[n*D:][d0:d1])
		}
	}
}

// rows is the number of rows of D elements in n.
func rows(n, D int) int {
	if D == 0 {
		return 0
	}
	return n / D
}
