// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pleach/kernel"
)

// magnitudesOf are tensors that are hard to select from, by name.
func magnitudesOf(r *rand.Rand, n int) map[string][]float32 {
	return map[string][]float32{
		"normal":    fill(n, func(int) float32 { return float32(r.NormFloat64()) }),
		"zero":      make([]float32, n),
		"constant":  fill(n, func(int) float32 { return -1.5 }),
		"two":       fill(n, func(int) float32 { return []float32{0.25, -3}[r.IntN(2)] }),
		"denormal":  fill(n, func(int) float32 { return math.Float32frombits(uint32(r.IntN(9))) }),
		"mostly 0":  fill(n, func(int) float32 { return float32(max(0, r.IntN(20)-17)) }),
		"ascending": fill(n, func(i int) float32 { return float32(i) }),
		"bf16": fill(n, func(int) float32 {
			return math.Float32frombits(math.Float32bits(float32(r.NormFloat64())) &^ 0xffff)
		}),
		"rows": fill(n, func(i int) float32 { return float32(r.NormFloat64() * math.Exp(float64(i*64/n%7))) }),
		"huge": fill(n, func(i int) float32 { return float32(math.Ldexp(r.Float64(), r.IntN(250)-125)) }),
	}
}

func fill(n int, f func(i int) float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = f(i)
	}
	return x
}

// ascendingKeys are the keys of x in order.
func ascendingKeys(x []float32) []uint32 {
	keys := make([]uint32, len(x))
	for i, v := range x {
		keys[i] = key(v)
	}
	slices.Sort(keys)
	return keys
}

// rankOf settles a ranking of x, and returns the number of walks.
func rankOf(r *ranking, x []float32) (walks int) {
	scratch := make([]uint32, r.size)
	chunk := func(i int) []float32 { return x[i*r.size : min((i+1)*r.size, len(x))] }
	r.begin()
	for _, i := range r.picked {
		r.sampled(i, len(chunk(i)), func(k int) float32 { return chunk(i)[k] })
	}
	for ; r.settle(); walks++ {
		for i := range Chunks(r.n, r.size) {
			r.walk(kernel.Best(), i, chunk(i), scratch)
		}
	}
	return walks
}

// TestRanking: statistics are those of a sort, in tensors with and without a sample.
func TestRanking(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 1000, 300_001} {
		for name, x := range magnitudesOf(r, n) {
			sorted := ascendingKeys(x)
			places := []int{0, n - 1, n / 2, r.IntN(n), r.IntN(n)}
			g := newRanking(n, 1<<12, places...)
			walks := rankOf(g, x)
			for i, s := range g.targets {
				checkStatistic(t, fmt.Sprintf("%s of %d, place %d", name, n, places[i]), s, sorted)
			}
			if name == "normal" && walks != 1 {
				t.Errorf("%s of %d: got %d walks, want 1", name, n, walks)
			}
		}
	}
}

func checkStatistic(t *testing.T, what string, s *statistic, sorted []uint32) {
	t.Helper()
	want := sorted[s.place]
	less, _ := slices.BinarySearch(sorted, want)
	after, _ := slices.BinarySearch(sorted, want+1)
	if s.key != want || s.less != less || s.equal != after-less {
		t.Errorf("%s: got key %x, %d less, %d equal, want %x, %d, %d",
			what, s.key, s.less, s.equal, want, less, after-less)
	}
}

// TestRankingMisled: a sample of other numbers than the rest, and more equal or close
// keys than there is room for, cost more walks and change no result.
func TestRankingMisled(t *testing.T) {
	const n, size = 1 << 18, 1 << 10
	r := rand.New(rand.NewPCG(5, 6))
	misled := fill(n, func(int) float32 { return 1 + r.Float32() })
	g := newRanking(n, size, n/3)
	for _, c := range g.picked {
		for i := range size {
			misled[c*size+i] = 1e-9 * r.Float32()
		}
	}
	uneven := fill(n, func(i int) float32 { // the picked chunks are larger than the others
		return float32(r.NormFloat64()) * float32(1+max(0, 3-(i/size)%4*3))
	})
	close := fill(n, func(i int) float32 { // two thirds lie between neighbours of the sample
		return math.Float32frombits(0x3f800000 + uint32(r.IntN(2)*(1+r.IntN(1<<20))))
	})
	for name, x := range map[string][]float32{"misled": misled, "close": close, "uneven": uneven} {
		sorted := ascendingKeys(x)
		for _, place := range []int{0, n / 8, n / 3, n / 2, n - 1} {
			for _, room := range []int{4, leastRoom} {
				g := newRanking(n, size, place)
				g.room = room
				walks := rankOf(g, x)
				checkStatistic(t, fmt.Sprintf("%s, place %d, room %d", name, place, room), g.targets[0], sorted)
				if most := map[int]int{4: 6, leastRoom: 2}[room]; walks > most {
					t.Errorf("%s, place %d, room %d: got %d walks, want %d at most", name, place, room, walks, most)
				}
				if name == "misled" && place == n/3 && walks < 2 {
					t.Errorf("%s: got %d walks: the sample did not mislead", name, walks)
				}
				checkCuts(t, g, x)
			}
		}
	}
}

// checkCuts compares the end of every so many equal elements with a count.
func checkCuts(t *testing.T, g *ranking, x []float32) {
	t.Helper()
	s := g.targets[0]
	parts, found := s.parts, s.found
	for _, quota := range []int{0, 1, s.equal / 2, s.equal} {
		s.parts, s.found = parts, found
		c := s.cut(quota)
		n := 0
		for i := range parts {
			chunk := x[i*g.size : min((i+1)*g.size, len(x))]
			end := c.in(i, len(chunk), s.key, func(k int) float32 { return chunk[k] })
			for _, v := range chunk[:end] {
				if key(v) == s.key {
					n++
				}
			}
		}
		if n != quota {
			t.Fatalf("got %d of the equal elements, want %d", n, quota)
		}
	}
}

// FuzzNth compares with a sort.
func FuzzNth(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint(1))
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255, 127, 0, 0, 0, 0}, uint(2))
	f.Fuzz(func(t *testing.T, b []byte, place uint) {
		var keys []uint32
		for ; len(b) >= 4; b = b[4:] {
			keys = append(keys, (uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24)&largestKey)
		}
		if len(keys) == 0 {
			return
		}
		at := int(place % uint(len(keys)))
		got, less := nth(keys, at)
		slices.Sort(keys)
		if want := keys[at]; got != want || less != slices.Index(keys, want) {
			t.Errorf("nth(%v, %d) = %d, %d, want %d, %d", keys, at, got, less, want, slices.Index(keys, want))
		}
	})
}

// FuzzRanking: with room for few keys, and so by counting, the statistic is that of a
// sort.
func FuzzRanking(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 5, 6}, uint(1), 2)
	f.Add([]byte{0, 0, 128, 63, 0, 0, 128, 63, 255, 255, 0, 0}, uint(2), 1)
	f.Fuzz(func(t *testing.T, b []byte, place uint, room int) {
		x := make([]float32, len(b)/2)
		for i := range x {
			x[i] = math.Float32frombits(uint32(b[2*i])<<(b[2*i+1]%24) | uint32(b[2*i+1])<<24)
		}
		if len(x) == 0 {
			return
		}
		g := newRanking(len(x), 3, int(place%uint(len(x))))
		g.room = min(max(room, 1), 8)
		rankOf(g, x)
		checkStatistic(t, "ranking", g.targets[0], ascendingKeys(x))
		checkCuts(t, g, x)
	})
}
