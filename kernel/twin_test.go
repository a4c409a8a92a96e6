// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random shapes, 0 for a new one")

// eps is half a unit in the last place of 1: what one rounding may cost.
const eps = 0x1p-24

// bench is a test with random numbers, and with slices that notice when
// something writes beside them.
type bench struct {
	testing.TB
	level Level
	*rand.Rand
}

func newBench(t testing.TB, l Level) bench {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("re-run: go test ./kernel -run '^%s$' -seed %d", t.Name(), seed)
	return bench{t, l, rand.New(rand.NewPCG(seed, 1))}
}

// size is a dimension: small, often at the edge of an unrolled loop.
func (b bench) size(most int) int {
	all := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 31, 32, 33, 48, 61, 64, 65, 67, 127, 128, 129, 255, 257}
	for {
		if n := all[b.IntN(len(all))]; n <= most {
			return n
		}
	}
}

// canary is a NaN that no kernel makes.
const canary = 0x7fabcdef

// out is n canaries between canaries and, where the system can, pages that must
// not be touched: an output of which all else must stay.
func (b bench) out(n int) []float32 {
	x, before, after := b.guarded(n)
	before, after = before[max(0, len(before)-20):], after[:min(20, len(after))]
	for _, part := range [][]float32{before, x, after} {
		for i := range part {
			part[i] = math.Float32frombits(canary)
		}
	}
	b.Cleanup(func() {
		untouched(b, "before an output", before)
		untouched(b, "after an output", after)
	})
	return x
}

// words is n numbers of 16 bits, guarded like an output.
func (b bench) words(n int) []uint16 {
	x := b.out((n + 1) / 2)
	all := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
	if n%2 == 0 {
		return all
	}
	at := n * b.IntN(2) // of the one too many
	was := all[at]
	b.Cleanup(func() {
		if all[at] != was {
			b.Fatalf("beside %d words: %#04x was written", n, all[at])
		}
	})
	if at == 0 {
		return all[1:]
	}
	return all[:n]
}

// random16 is n numbers of all bits, guarded likewise.
func (b bench) random16(n int) []uint16 {
	x := b.words(n)
	for i := range x {
		x[i] = uint16(b.Uint32())
	}
	return x
}

// untouched checks that x is all canaries.
func untouched(b testing.TB, what string, x []float32) {
	b.Helper()
	for i, v := range x {
		if math.Float32bits(v) != canary {
			b.Fatalf("%s: element %d of %d was written: %v", what, i, len(x), v)
		}
	}
}

// normal is n numbers N(0,1), guarded like an output.
func (b bench) normal(n int) []float32 {
	x := b.out(n)
	for i := range x {
		x[i] = float32(b.NormFloat64())
	}
	return x
}

// zeros is n zeros, guarded like an output.
func (b bench) zeros(n int) []float32 {
	x := b.out(n)
	clear(x)
	return x
}

// cut is a way to cut 0 … n into calls.
func (b bench) cut(n int) []int {
	at := []int{0}
	for at[len(at)-1] < n {
		at = append(at, min(n, at[len(at)-1]+1+b.IntN(n)))
	}
	return at
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// near checks |got − want| ≤ tol·scale elementwise; scale[i] is the size of the
// terms that were added up, |want[i]| if scale is nil.
func near(b testing.TB, what string, got []float32, want, scale []float64, tol float64) {
	b.Helper()
	if len(got) != len(want) {
		b.Fatalf("%s: got %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		s := math.Abs(w)
		if scale != nil {
			s = scale[i]
		}
		g := float64(got[i])
		if w != w && g != g || w == g {
			continue
		}
		if d := math.Abs(g - w); !(d <= tol*s+0x1p-149) {
			b.Fatalf("%s: element %d of %d: got %v, want %v: off by %.3g of %.3g, want %.3g",
				what, i, len(want), g, w, d/s, s, tol)
		}
	}
}

// same checks equal bits, with every NaN equal.
func same(b testing.TB, what string, got, want []float32) {
	b.Helper()
	if len(got) != len(want) {
		b.Fatalf("%s: got %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			b.Fatalf("%s: element %d of %d: got %x, want %x", what, i, len(want), g, w)
		}
	}
}

// ulps is |got − want| in units of the last place of want as a float32.
func ulps(got float32, want float64) float64 {
	if float64(got) == want || got != got && want != want {
		return 0
	}
	if float32(want) == got { // Inf by rounding
		return 0
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

func report(b *testing.B, flops int) {
	b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GF/s")
}

// equal fails unless got is want.
func equal[T comparable](b testing.TB, what string, got, want T) {
	b.Helper()
	if got != want {
		b.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func fill(n int, f func(i int) float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(f(i))
	}
	return x
}

func shape(n ...int) string { return fmt.Sprint(n) }

// each runs a test on every level of this processor.
func each(t *testing.T, f func(t *testing.T, l Level)) {
	for _, l := range Levels() {
		t.Run(l.String(), func(t *testing.T) { f(t, l) })
	}
}
