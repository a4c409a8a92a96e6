// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"pleach/half"
)

// int8s is n numbers −127 … 127, that end or begin at a page which must not be touched.
func (b bench) int8s(n int) []int8 {
	x := b.words((n + 1) / 2)
	q := unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
	q = q[len(q)-n:]
	for i := range q {
		q[i] = int8(b.IntN(255) - 127)
	}
	return q
}

// weights are weights of int8, and the same as bf16 numbers, row by row.
func (b bench) weights(O, I int) (Int8, []uint16) {
	w := Int8{b.int8s(O * I), O, I}
	plain, same := make([]int8, O*I), b.halves(O*I)
	w.Get(plain, 0)
	for i, v := range plain {
		same[i] = half.ToBF16(float32(v))
	}
	return w, same
}

// inner is a number of steps, of which four often make a block.
func (b bench) inner() int {
	k := b.size(300)
	if b.IntN(4) > 0 {
		k = roundUp(k, groupCols)
	}
	return k
}

// TestGemm8 compares products with weights of int8 with those of bf16, bit for bit: for
// all rows of the weights and for some.
func TestGemm8(t *testing.T) { each16(t, testGemm8) }

func testGemm8(t *testing.T, l Level) {
	b := newBench(t, l)
	scratch := b.out(l.GemmScratch16())
	for n := range 150 {
		m, O, I := 1+b.IntN(12), b.size(300), b.inner()
		if n%10 == 0 {
			m, I = 1+b.IntN(70), 4*fewLong8/groupCols+b.IntN(3)*groupCols
			O = min(O, 64)
		}
		if l.tiled() { // few rows are multiplied in pairs
			m += 2 * fewest
		}
		w, same16 := b.weights(O, I)
		j := 0
		if O > 0 && n%2 == 0 {
			j = b.IntN(O)
		}
		cols := b.IntN(O - j + 1)
		lda, ldc := I+b.IntN(3), cols+b.IntN(3)
		a := b.halves(span(m, I, lda))
		got, want := b.out(span(m, cols, ldc)), make([]float32, span(m, cols, ldc))
		l.GemmNT8(got, a, w, m, j, cols, b.IntN(O+1), ldc, lda, scratch)
		if cols > 0 && I > 0 {
			l.packedNT16(want, a, same16[j*I:], m, cols, I, ldc, lda, I, false, scratch)
		}
		for i := range m {
			if cols == 0 {
				break
			}
			same(t, shape(m, j, cols, I), got[i*ldc:][:cols], want[i*ldc:][:cols])
			if i+1 < m {
				untouched(t, "between rows of c", got[i*ldc+cols:(i+1)*ldc])
			}
		}
	}
}

// TestPack8: panels of weights of int8 are those of the same numbers as bf16.
func TestPack8(t *testing.T) { each16(t, testPack8) }

func testPack8(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 40 {
		O, I := b.size(300), b.inner()
		w, same16 := b.weights(O, I)
		j := 0
		if O > 0 {
			j = b.IntN(O)
		}
		n := O - j
		got, want := b.out(l.PanelLen16(n, I)), b.out(l.PanelLen16(n, I))
		l.PackNT8(got, w, j, n)
		l.PackNT16(want, same16[j*I:], n, I, I)
		width, steps := tilings[l.multiplies()].width, l.steps(I)
		for c := 0; c < n && I > 0; c += width { // what fills up a vector means nothing
			cols, ld := min(width, n-c), roundUp(min(width, n-c), tilings[l].lanes)
			if l.tiled() {
				ld = width
			}
			for p := range steps {
				at := l.PanelLen16(c, I) + p*ld
				sameBits(t, shape(O, I, j, c, p), got[at:][:cols], want[at:][:cols])
			}
		}
	}
}

// TestInt8Set: weights are read as they were written, whole or in parts, and every
// element has a place of its own.
func TestInt8Set(t *testing.T) {
	b := newBench(t, Portable)
	for range 50 {
		O, I := b.size(67), 1+b.size(67)
		want := b.int8s(O * I)
		w := Int8{b.int8s(O * I), O, I}
		for at := b.cut(len(want)); len(at) > 1; at = at[1:] {
			w.Set(at[0], want[at[0]:at[1]])
		}
		got := make([]int8, len(want))
		for at := b.cut(len(want)); len(at) > 1; at = at[1:] {
			w.Get(got[at[0]:at[1]], at[0])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("[%d,%d]: read other numbers than were written", O, I)
		}
		for o := range O {
			for i := range I {
				if w.Q[w.at(o, i)] != want[o*I+i] {
					t.Fatalf("[%d,%d]: element %d,%d is not where it should be", O, I, o, i)
				}
			}
		}
	}
}

// TestAllInt8: every number, in every place of a block, as left and right operands
// have it.
func TestAllInt8(t *testing.T) { each16(t, testAllInt8) }

func testAllInt8(t *testing.T, l Level) {
	const O, I = 16, 256
	w := Int8{make([]int8, O*I), O, I}
	all := make([]int8, O*I)
	for i := range all {
		all[i] = int8((i+i/I)%255 - 127)
	}
	w.Set(0, all)
	a, c, scratch := make([]uint16, I), make([]float32, O), make([]float32, l.GemmScratch16())
	for i := range I {
		clear(a)
		a[i] = half.ToBF16(1)
		l.GemmNT8(c, a, w, 1, 0, O, O, O, I, scratch)
		for o, v := range c {
			if want := float32(all[o*I+i]); v != want || math.Signbit(float64(v)) != (want < 0) {
				t.Fatalf("row %d, step %d: got %v, want %v", o, i, v, want)
			}
		}
	}
}

// TestScaleColumns compares with the formula: products are rounded once.
func TestScaleColumns(t *testing.T) { each(t, testScaleColumns) }

func testScaleColumns(t *testing.T, l Level) {
	b := newBench(t, l)
	for range 30 {
		m, n := b.size(9), b.size(257)
		ldc := n + b.IntN(3)
		c, s := b.normal(span(m, n, ldc)), b.normal(n)
		want := slices.Clone(c)
		for i := range m {
			for j := range n {
				want[i*ldc+j] *= s[j]
			}
		}
		l.ScaleColumns(c, s, m, n, ldc)
		same(t, shape(m, n, ldc), c, want)
	}
}
