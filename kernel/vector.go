// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// Add is y[i] = a[i] + b[i]. y may be a or b itself; all have the length of y.
func (l Level) Add(y, a, b []float32) {
	if l != Portable {
		eachAdd(l, y, a, b)
		return
	}
	a, b = a[:len(y)], b[:len(y)]
	for i, v := range a {
		y[i] = v + b[i]
	}
}

// AddInto is y[i] += x[i]. x has the length of y.
func (l Level) AddInto(y, x []float32) {
	if l != Portable {
		eachAdd(l, y, y, x)
		return
	}
	x = x[:len(y)]
	for i, v := range x {
		y[i] += v
	}
}

// Scale is y[i] = c·x[i]. y may be x itself; x has the length of y.
func (l Level) Scale(y, x []float32, c float32) {
	if l != Portable {
		eachScale(l, y, x, c)
		return
	}
	x = x[:len(y)]
	for i, v := range x {
		y[i] = c * v
	}
}

// AddBias is y[n,o] = x[n,o] + b[o]. x and y are [N,O] with O = len(b) and N =
// len(y)/O; y may be x itself.
func (l Level) AddBias(y, x, b []float32) {
	O := len(b)
	for n := range rows(len(y), O) {
		l.Add(y[n*O:][:O], x[n*O:][:O], b)
	}
}

// BiasGrad adds the columns o0 ≤ o < o1 of dy to the gradient of a bias.
//
//	db[o] += dy[n,o]   for n = 0, 1, …
//
// dy is [N,O] with O = len(db).
func (l Level) BiasGrad(db, dy []float32, o0, o1 int) {
	O := len(db)
	N := rows(len(dy), O)
	if l != Portable {
		for ; o0+columns <= o1; o0 += columns {
			for n := 0; n < N; n += columnRows {
				h := min(columnRows, N-n)
				gs := dy[n*O+o0:][:(h-1)*O+columns]
				atAddRows(l, &db[o0], &gs[0], h, 4*O)
			}
		}
	}
	for n := range N {
		l.AddInto(db[o0:o1], dy[n*O:][o0:o1])
	}
}
