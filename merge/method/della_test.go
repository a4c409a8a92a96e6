// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math"
	"math/rand/v2"
	"testing"

	"pleach/internal/rng"
	"pleach/kernel"
)

// plainDella is d with 0 for what is not kept: the definition, by sorting every row.
func plainDella(d []float32, shape []int, density, epsilon float64, s rng.Stream) []float32 {
	outer, m, inner := 1, 1, 1
	switch len(shape) {
	case 0:
	case 1:
		m = shape[0]
	default:
		outer, m = shape[0], shape[1]
		for _, n := range shape[2:] {
			inner *= n
		}
	}
	y := make([]float32, len(d))
	for a := range outer {
		for c := range inner {
			row := make([]float32, m)
			for j := range row {
				row[j] = d[(a*m+j)*inner+c]
			}
			for j, r := range plainRanks(row) {
				p := density
				if m > 1 {
					p = (density - epsilon) + float64(float64(r-1)/float64(m-1)*(2*epsilon))
				}
				e := (a*m+j)*inner + c
				if float64(s.Word(uint64(e))>>8)*0x1p-24 < p {
					y[e] = row[j]
				}
			}
		}
	}
	return y
}

// TestDella: what is kept is what is kept after sorting every row.
func TestDella(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, shape := range [][]int{
		{}, {1}, {5}, {3000}, {1, 700}, {700, 1}, {37, 65}, {4, 2000}, {3, 129, 4}, {2, 5, 3, 7}, {6, 1, 9}, {1, 20000},
	} {
		n := 1
		for _, d := range shape {
			n *= d
		}
		for name, d := range magnitudesOf(r, n) {
			for _, e := range []float64{0.15, 0.45, 0, -0.2} {
				s := rng.Keyed([2]uint32{r.Uint32(), 7})
				q := newPruner(shape, 0.5, e)
				size := Rows(q.size())
				got := make([]float32, n)
				for lo := 0; lo < n; lo += size {
					part := d[lo:min(lo+size, n)]
					mask := make([]uint64, (len(part)+63)/64)
					q.keep(kernel.Best(), mask, part, s, lo, make([]float32, q.scratch(len(part))))
					kernel.Portable.KeepBits(got[lo:], part, mask)
				}
				for i, want := range plainDella(d, shape, 0.5, e, s) {
					if got[i] != want {
						t.Fatalf("%v %s epsilon %v: element %d of %v: got %v, want %v",
							shape, name, e, i, d[i], got[i], want)
					}
				}
			}
		}
	}
}

// TestDellaChance: the probabilities of a worked example, and how many stay.
func TestDellaChance(t *testing.T) {
	for i, want := range []float64{.55, .45, .35, .65, .65, .45, .55, .35} {
		b, m := vectorB, vectorM1
		d := []float32{m[0] - b[0], m[1] - b[1], m[2] - b[2], m[3] - b[3]}
		if i >= 4 {
			d = []float32{m[4] - b[4], m[5] - b[5], m[6] - b[6], m[7] - b[7]}
		}
		if got := chanceOf(plainRanks(d)[i%4], 4, 0.5, 0.15); math.Abs(got-want) > 1e-15 {
			t.Errorf("element %d: got p = %v, want %v", i, got, want)
		}
	}
	const rows, m = 3000, 50
	q := newPruner([]int{rows, m}, 0.4, 0.3)
	d := fill(rows*m, func(i int) float32 { return float32(1 + i%m) })
	mask := make([]uint64, (len(d)+63)/64)
	q.keep(kernel.Best(), mask, d, rng.Keyed([2]uint32{1, 2}), 0, make([]float32, q.scratch(len(d))))
	for j := range m {
		n := 0
		for i := j; i < len(d); i += m {
			n += int(mask[i/64] >> (i % 64) & 1)
		}
		p := chanceOf(j+1, m, 0.4, 0.3)
		if z := (float64(n) - rows*p) / math.Sqrt(rows*p*(1-p)); math.Abs(z) > 4.5 {
			t.Errorf("rank %d: kept %d of %d, want %.0f: %.1f standard errors", j+1, n, rows, rows*p, z)
		}
	}
}
