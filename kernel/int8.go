// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// Int8 is weights [O,I] of int8, −127 … 127. In memory they are not row by row but in
// the order in which decoding reads them: 16 rows at a time, and of these four columns
// at a time, so that what a vector loads is 16 rows by four steps of k.
//
//	Q[16·I·⌊o/16⌋ + 64·⌊i/4⌋ + 4·(o mod 16) + i mod 4]
//
// The last O mod 16 rows, or all where I is no multiple of 4, are row by row. So a
// number of whole groups of rows takes as many bytes as in any order.
type Int8 struct {
	Q    []int8
	O, I int
}

// groupRows and groupCols are the sides of a block of weights of int8.
const (
	groupRows = 16
	groupCols = 4
)

// grouped is the number of rows that lie in groups.
func (w Int8) grouped() int {
	if w.I%groupCols != 0 {
		return 0
	}
	return w.O / groupRows * groupRows
}

// at is where element i of row o lies.
func (w Int8) at(o, i int) int {
	if o >= w.grouped() {
		return o*w.I + i
	}
	return o/groupRows*groupRows*w.I + i/groupCols*groupRows*groupCols + o%groupRows*groupCols + i%groupCols
}

// Set writes elements lo … lo+len(x)−1 of the weights as they are row by row.
func (w Int8) Set(lo int, x []int8) {
	for len(x) > 0 && w.I > 0 {
		o, i := lo/w.I, lo%w.I
		n := min(w.I-i, len(x))
		if i == 0 && n == w.I && o < w.grouped() {
			w.setRow(o, x)
		} else {
			w.each(lo, n, func(at, from, n int) { copy(w.Q[at:at+n], x[from:]) })
		}
		lo, x = lo+n, x[n:]
	}
}

// setRow is Set for a whole row of a group.
func (w Int8) setRow(o int, x []int8) {
	to := w.Q[w.at(o, 0):]
	for i := 0; i < w.I; i += groupCols {
		*(*[groupCols]int8)(to[i*groupRows:]) = [groupCols]int8(x[i:])
	}
}

// Get reads elements lo … lo+len(x)−1 of the weights as they are row by row.
func (w Int8) Get(x []int8, lo int) {
	w.each(lo, len(x), func(at, from, n int) { copy(x[from:from+n], w.Q[at:]) })
}

// each calls f with where elements lo … lo+n−1 lie, as many at a time as lie together.
func (w Int8) each(lo, n int, f func(at, from, n int)) {
	for from := 0; from < n; {
		o, i := (lo+from)/w.I, (lo+from)%w.I
		together := w.I - i
		if o < w.grouped() {
			together = groupCols - i%groupCols
		}
		together = min(together, n-from)
		f(w.at(o, i), from, together)
		from += together
	}
}
