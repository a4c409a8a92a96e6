// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pleach/kernel"
)

// kept says which elements a window of a whole tensor keeps: the definition, by sorting.
func kept(x []float32, bottom, top int) []bool {
	n := len(x)
	sorted := ascendingKeys(x)
	keep := make([]bool, n)
	low, high := sorted[bottom], sorted[n-top-1]
	lows, highs := 0, 0 // how many of these stay
	for _, k := range sorted[bottom : n-top] {
		switch k {
		case low:
			lows++
		case high:
			highs++
		}
	}
	for i, v := range x {
		switch k := key(v); {
		case k == low:
			keep[i] = lows > 0
			lows--
		case k == high:
			keep[i] = highs > 0
			highs--
		default:
			keep[i] = low < k && k < high
		}
	}
	return keep
}

// TestWindow: what stays is what stays after a sort, in whatever order the chunks come.
func TestWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, 3, 777, 150_000} {
		for name, x := range magnitudesOf(r, n) {
			for range 4 {
				top := r.IntN(n)
				if r.IntN(2) == 0 {
					top = 0
				}
				bottom := r.IntN(n - top)
				w := newWindow(n, 1<<10, bottom, top)
				windowOf(w, x, r.Perm(Chunks(n, 1<<10)))
				got := keptBy(w, x)
				for i, k := range kept(x, bottom, top) {
					want := x[i]
					if !k {
						want = 0
					}
					if got[i] != want {
						t.Fatalf("%s of %d, bottom %d, top %d: element %d of %v: got %v, want %v",
							name, n, bottom, top, i, x[i], got[i], want)
					}
				}
			}
		}
	}
}

// windowOf settles a window, with chunks in an order.
func windowOf(w *window, x []float32, order []int) {
	size := w.rank.size
	scratch := make([]uint32, size)
	chunk := func(i int) []float32 { return x[i*size : min((i+1)*size, len(x))] }
	w.rank.begin()
	for _, i := range order {
		w.rank.sampled(i, len(chunk(i)), func(k int) float32 { return chunk(i)[k] })
	}
	for w.settle() {
		for _, i := range order {
			w.rank.walk(kernel.Best(), i, chunk(i), scratch)
		}
	}
}

// keptBy is x with 0 for what does not stay, in blocks of 100.
func keptBy(w *window, x []float32) []float32 {
	y := slices.Clone(x)
	for i, lo := 0, 0; lo < len(x); i, lo = i+1, lo+1<<10 {
		hi := min(lo+1<<10, len(x))
		v := w.view(i, hi-lo, func(k int) float32 { return x[lo+k] })
		for at := lo; at < hi; at += 100 {
			v.keep(kernel.Best(), y[at:min(at+100, hi)], at-lo)
		}
	}
	return y
}

// TestWindowNaN: a NaN is larger than all numbers, and stays if they do.
func TestWindowNaN(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	x := []float32{1, nan, 3, inf, 2, -4}
	for _, tt := range []struct {
		bottom, top int
		want        string
	}{
		{3, 0, "[0 NaN 0 -Inf 0 -4]"},
		{5, 0, "[0 NaN 0 0 0 0]"},
		{1, 2, "[0 0 3 0 2 -4]"},
		{0, 1, "[1 0 3 -Inf 2 -4]"},
	} {
		w := newWindow(len(x), 1<<10, tt.bottom, tt.top)
		windowOf(w, x, []int{0})
		if got := fmt.Sprint(keptBy(w, x)); got != tt.want {
			t.Errorf("bottom %d, top %d: got %s, want %s", tt.bottom, tt.top, got, tt.want)
		}
	}
}

// TestTies: of equal magnitudes the first stay.
func TestTies(t *testing.T) {
	x := []float32{1, -2, 2, 3, -3, 2, 3, 1}
	for _, tt := range []struct {
		bottom, top int
		want        []float32
	}{
		{4, 0, []float32{0, -2, 0, 3, -3, 0, 3, 0}},
		{7, 0, []float32{0, 0, 0, 3, 0, 0, 0, 0}},
		{3, 2, []float32{0, -2, 2, 3, 0, 0, 0, 0}},
		{1, 4, []float32{1, -2, 2, 0, 0, 0, 0, 0}},
		{5, 1, []float32{0, 0, 0, 3, -3, 0, 0, 0}},
	} {
		w := newWindow(len(x), 1<<10, tt.bottom, tt.top)
		windowOf(w, x, []int{0})
		if got := keptBy(w, x); !slices.Equal(got, tt.want) {
			t.Errorf("bottom %d, top %d: got %v, want %v", tt.bottom, tt.top, got, tt.want)
		}
	}
}

// plainRanks are the ranks of a row, from 1.
func plainRanks(x []float32) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(x[a]), key(x[b])) })
	ranks := make([]int, len(x))
	for r, i := range order {
		ranks[i] = r + 1
	}
	return ranks
}
