// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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

// TestBelowChance: comparing integers is comparing the numbers.
func TestBelowChance(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		p := r.Float64()
		switch r.IntN(5) {
		case 0:
			p = math.Round(p*(1<<24)) / (1 << 24)
		case 1:
			p = math.Nextafter(math.Round(p*(1<<24))/(1<<24), float64(r.IntN(3))-0.5)
		case 2:
			p = 1 - math.Ldexp(p, -20)
		case 3:
			p = math.Ldexp(p-0.5, -20)
		}
		for d := range 5 {
			k := min(max(int(p*(1<<24))+d-2, 0), 1<<24-1)
			if got, want := uint32(k) < belowChance(p), float64(k)*0x1p-24 < p; got != want {
				t.Fatalf("p = %v: %d of 2^24 is below: got %v, want %v", p, k, got, want)
			}
		}
	}
}

// TestDellaBorders: random numbers beside p of every element are compared as the formula
// says, on all levels.
func TestDellaBorders(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, m := range []int{1, 2, 63, 64, 65, 700, 1000, 5000} {
		for name, x := range magnitudesOf(r, m) {
			for _, p := range [][2]float64{
				{0.5, 0.15}, {0.5, -0.49}, {0.3, 0}, {1 - 1e-9, 5e-10}, {1e-8, 1e-9}, {0.9999999, 9e-8},
			} {
				q := newPruner([]int{1, m}, p[0], p[1])
				w, want := make([]uint32, m), make([]uint64, (m+63)/64)
				for i, rank := range plainRanks(x) {
					chance := chanceOf(rank, m, p[0], p[1])
					u := min(max(int(chance*(1<<24))+r.IntN(5)-2, 0), 1<<24-1)
					w[i] = uint32(u)<<8 | r.Uint32N(256)
					if x[i] != 0 && float64(u)*0x1p-24 < chance {
						want[i/64] |= 1 << (i % 64)
					}
				}
				for _, l := range kernel.Levels() {
					row := newRow(m)
					row.x, row.w = x, slices.Clone(w)
					q.decide(l, row)
					for i, v := range x {
						if v == 0 {
							row.kept[i/64] &^= 1 << (i % 64)
						}
					}
					if !slices.Equal(row.kept, want) {
						t.Fatalf("%d %s, density %v epsilon %v on %v: got %x, want %x",
							m, name, p[0], p[1], l, row.kept, want)
					}
				}
			}
		}
	}
}

// TestDellaLong: rows in which nearly all elements are in one bucket, of few values or of
// many, take no longer than others by orders of magnitude, and are right.
func TestDellaLong(t *testing.T) {
	const m = 100_000
	r := rand.New(rand.NewPCG(1, 3))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, x := range map[string][]float32{
		"constant": fill(m, func(int) float32 { return 0.25 }),
		"close":    fill(m, func(int) float32 { return 1 + float32(r.IntN(1<<12))*0x1p-22 }),
		"spread":   fill(m, func(i int) float32 { return float32(math.Ldexp(1+r.Float64(), -i%120)) }),
		"outlier": fill(m, func(i int) float32 {
			return float32(r.NormFloat64() * math.Pow(1e30, float64(i/(m-1))))
		}),
		"not finite": fill(m, func(i int) float32 {
			return []float32{float32(r.NormFloat64()), nan, inf, -inf}[max(0, r.IntN(99)-95)]
		}),
	} {
		s := rng.Keyed([2]uint32{r.Uint32(), 7})
		q := newPruner([]int{m}, 0.5, 0.3)
		mask := make([]uint64, (m+63)/64)
		begun := time.Now()
		q.keep(kernel.Best(), mask, x, s, 0, make([]float32, q.scratch(m)))
		if d := time.Since(begun); d > time.Second {
			t.Errorf("%s: got %v, want less than a second", name, d)
		}
		for i, want := range plainDella(x, []int{m}, 0.5, 0.3, s) {
			if got := mask[i/64]>>(i%64)&1 == 1; got != (want != 0) {
				t.Fatalf("%s: element %d, %v: got %v, want %v", name, i, x[i], got, want)
			}
		}
	}
}

// BenchmarkDella measures the choice of elements in rows of a length: ns per element.
func BenchmarkDella(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, m := range []int{64, 512, 2048, 5632, 100_000} {
		n := Rows(m)
		for name, d := range magnitudesOf(r, n) {
			if name != "normal" && name != "bf16" && name != "constant" && name != "mostly 0" {
				continue
			}
			b.Run(fmt.Sprint(m, " ", name), func(b *testing.B) {
				q := newPruner([]int{n / m, m}, 0.5, 0.15)
				mask, scratch := make([]uint64, (n+63)/64), make([]float32, q.scratch(n))
				for b.Loop() {
					clear(mask)
					q.keep(kernel.Best(), mask, d, rng.Keyed([2]uint32{1, 2}), 0, scratch)
				}
				b.ReportMetric(float64(b.Elapsed()/time.Nanosecond)/float64(b.N)/float64(n), "ns/element")
			})
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
