// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

const (
	// lanes is the length of a vector in the language of kernel/gen, whatever the
	// registers of a level hold.
	lanes = 16
	// piece is how many elements a call into assembly gets: Go cannot stop a
	// goroutine there, so a call must be short. A fold begins anew in each.
	piece = 1 << 15

	columns    = 64              // that a sum over rows takes at once, and
	columnRows = piece / columns // the rows of a call
)

// whole is the part of n ≤ piece elements that fills vectors.
func whole(n int) int { return n / lanes * lanes }

// foldDot is Σ x·y. In each piece, element i is added to lane i mod 16, products
// fused, and then the lanes are folded: lane i and i+8, i+4, i+2, i+1. Pieces are
// added in order.
func foldDot(l Level, x, y []float32) (sum float32) {
	y = y[:len(x)]
	for len(x) > 0 {
		n := min(len(x), piece)
		w := whole(n)
		if w == n {
			sum += atDot(l, &x[0], &y[0], n, nil)
		} else {
			var t [2][lanes]float32
			copy(t[0][:], x[w:n])
			copy(t[1][:], y[w:n])
			sum += atDot(l, &x[0], &y[0], w, &t[0][0])
		}
		x, y = x[n:], y[n:]
	}
	return sum
}

// foldDot3 is Σ x·y·z in the order of foldDot; x·y is rounded, the product with z
// is fused.
func foldDot3(l Level, x, y, z []float32) (sum float32) {
	y, z = y[:len(x)], z[:len(x)]
	for len(x) > 0 {
		n := min(len(x), piece)
		w := whole(n)
		if w == n {
			sum += atDot3(l, &x[0], &y[0], &z[0], n, nil)
		} else {
			var t [3][lanes]float32
			copy(t[0][:], x[w:n])
			copy(t[1][:], y[w:n])
			copy(t[2][:], z[w:n])
			sum += atDot3(l, &x[0], &y[0], &z[0], w, &t[0][0])
		}
		x, y, z = x[n:], y[n:], z[n:]
	}
	return sum
}

// lowest is t with x and −Inf behind it, nil if x is empty.
func lowest(t *[lanes]float32, x []float32) *float32 {
	if len(x) == 0 {
		return nil
	}
	for i := range t {
		t[i] = negInf()
	}
	copy(t[:], x)
	return &t[0]
}

// foldHighest is the largest of m and x, NaN left out.
func foldHighest(l Level, m float32, x []float32) float32 {
	for len(x) > 0 {
		n := min(len(x), piece)
		w := whole(n)
		var t [lanes]float32
		tail := lowest(&t, x[w:n])
		if v := atHighest(l, &x[0], w, tail); v > m {
			m = v
		}
		x = x[n:]
	}
	return m
}

// foldExp is Σ e^(x−c) in the order of foldDot, for c no smaller than any x.
func foldExp(l Level, x []float32, c float32) (sum float32) {
	for len(x) > 0 {
		n := min(len(x), piece)
		w := whole(n)
		var t [lanes]float32
		tail := lowest(&t, x[w:n])
		sum += atExpSum(l, &x[0], w, tail, c)
		x = x[n:]
	}
	return sum
}

// foldSquares adds weight·Σ x² to sum in float64, in the order of foldDot; the
// sum of a piece is multiplied once.
func foldSquares(l Level, sum float64, x []float32, weight float64) float64 {
	for len(x) > 0 {
		n := min(len(x), piece)
		w, tail := whole(n), (*float32)(nil)
		var t [lanes]float32
		if w < n {
			copy(t[:], x[w:n])
			tail = &t[0]
		}
		var s [lanes]float64
		atSquares(l, &s[0], &x[0], w, tail)
		sum += float64(weight * fold16(&s))
		x = x[n:]
	}
	return sum
}
