// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	mathbits "math/bits"
	"slices"
	"testing"
	"unsafe"

	"pleach/half"
	"pleach/internal/rng"
)

// eachLength runs a test for lengths around vectors, and for some that need several
// calls into assembly.
func (b bench) eachLength(f func(n int)) {
	for n := range 71 {
		f(n)
	}
	for _, n := range []int{257, piece, 2*piece + 1, 3*piece - 7} {
		f(n)
	}
}

// uint32s is n words, guarded like an output.
func (b bench) uint32s(n int) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b.out(n)))), n)
}

// uint64s is n words of 64 bits, guarded likewise.
func (b bench) uint64s(n int) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b.out(2*n)))), n)
}

// sameList checks that two slices are equal.
func sameList[T uint16 | uint32 | uint64](t testing.TB, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if got[i] != w {
			t.Fatalf("%s: element %d of %d: got %#x, want %#x", what, i, len(want), got[i], w)
		}
	}
}

// odd is numbers like those of weights, and special ones between them.
func (b bench) odd(n int) []float32 {
	x := b.normal(n)
	b.special(x)
	for i := range x {
		if b.IntN(6) == 0 {
			x[i] = float32(b.IntN(5)-2) / 2 // ties with thresholds
		}
	}
	return x
}

// mergeElements are the elementwise kernels and their formulas.
var mergeElements = []struct {
	name string
	read int
	call func(l Level, y []float32, x [][]float32)
	want func(x []float32) float32
}{
	{
		"Sub", 2,
		func(l Level, y []float32, x [][]float32) { l.Sub(y, x[0], x[1]) },
		func(x []float32) float32 { return x[0] - x[1] },
	},
	{
		"AddScaled", 2,
		func(l Level, y []float32, x [][]float32) { copy(y, x[0]); l.AddScaled(y, x[1], 0.3) },
		func(x []float32) float32 { return x[0] + float32(0.3*x[1]) },
	},
	{
		"AddScaled to itself", 1,
		func(l Level, y []float32, x [][]float32) { copy(y, x[0]); l.AddScaled(y, y, -0.7) },
		func(x []float32) float32 { return x[0] + float32(-0.7*x[0]) },
	},
	{
		"Divide", 1,
		func(l Level, y []float32, x [][]float32) { l.Divide(y, x[0], 0.3) },
		func(x []float32) float32 { return x[0] / 0.3 },
	},
	{
		"Elect", 3,
		func(l Level, y []float32, x [][]float32) {
			l.Elect(y, Votes{Sum: x[0], Plus: x[1], Minus: x[2]}, false)
		},
		func(x []float32) float32 {
			switch {
			case x[0] != x[0]:
				return x[0]
			case x[0] >= 0:
				return x[1]
			}
			return x[2]
		},
	},
	{
		"Elect the mean", 5,
		func(l Level, y []float32, x [][]float32) { l.Elect(y, Votes{x[0], x[1], x[2], x[3], x[4]}, true) },
		func(x []float32) float32 {
			v, w := x[2], x[4]
			if x[0] != x[0] {
				return x[0]
			}
			if x[0] >= 0 {
				v, w = x[1], x[3]
			}
			if w == 0 {
				w = 1
			}
			return v / w
		},
	},
}

func kept(x float32, keep bool) float32 {
	if keep {
		return x
	}
	return 0
}

// TestMergeElements: every element is what its formula says to the bit, in place
// too.
func TestMergeElements(t *testing.T) { each(t, testMergeElements) }

func testMergeElements(t *testing.T, l Level) {
	b := newBench(t, l)
	for _, c := range mergeElements {
		b.eachLength(func(n int) {
			var x [][]float32
			for range c.read {
				x = append(x, b.odd(n))
			}
			want, one := make([]float32, n), make([]float32, c.read)
			for i := range want {
				for j := range one {
					one[j] = x[j][i]
				}
				want[i] = c.want(one)
			}
			y := b.out(n)
			c.call(l, y, x)
			same(t, c.name, y, want)
			c.call(l, x[0], x)
			same(t, c.name+" in place", x[0], want)
		})
	}
}

// TestMergeKeeps: the sign of zeros and of what is dropped.
func TestKeepKeys(t *testing.T) { each(t, testKeepKeys) }

func testKeepKeys(t *testing.T, l Level) {
	b := newBench(t, l)
	limits := []uint32{0, 1, math.Float32bits(0.5), math.Float32bits(1), math.Float32bits(1) + 1, infinity, magnitude, 1 << 31}
	b.eachLength(func(n int) {
		x, y, want := b.odd(n), b.out(n), make([]float32, n)
		for _, lo := range limits {
			for _, end := range limits {
				if n > 257 && (lo != limits[2] || end != limits[4]) {
					continue
				}
				for i, v := range x {
					bits := math.Float32bits(v) & magnitude
					want[i] = kept(v, lo <= bits && bits < end)
				}
				l.KeepKeys(y, x, lo, end)
				same(t, "KeepKeys "+shape(n, int(lo), int(end)), y, want)
			}
		}
		copy(y, x)
		l.KeepKeys(y, y, limits[2], 1<<31)
		l.KeepKeys(want, x, limits[2], 1<<31)
		same(t, "KeepKeys of itself "+shape(n), y, want)
	})
}

func TestKeepBits(t *testing.T) { each(t, testKeepBits) }

func testKeepBits(t *testing.T, l Level) {
	b := newBench(t, l)
	b.eachLength(func(n int) {
		x, keep, y := b.odd(n), b.uint64s((n+63)/64), b.out(n)
		for i := range keep {
			keep[i] = b.Uint64()
		}
		want := make([]float32, n)
		for i, v := range x {
			want[i] = kept(v, keep[i/64]&(1<<(i%64)) != 0)
		}
		l.KeepBits(y, x, keep)
		same(t, "KeepBits", y, want)
		l.KeepBits(x, x, keep)
		same(t, "KeepBits in place", x, want)
	})
}

func TestVote(t *testing.T) { each(t, testVote) }

func testVote(t *testing.T, l Level) {
	b := newBench(t, l)
	b.eachLength(func(n int) {
		v := Votes{b.odd(n), b.odd(n), b.odd(n), b.odd(n), b.odd(n)}
		all := [][]float32{v.Sum, v.Plus, v.Minus, v.WPlus, v.WMinus}
		var want [][]float32
		for _, s := range all {
			want = append(want, slices.Clone(s))
		}
		x := b.odd(n)
		const w = -0.6
		for i, x := range x {
			x = float32(w * x)
			add := [5]float32{x}
			if x > 0 {
				add[1], add[3] = x, w
			} else if x < 0 {
				add[2], add[4] = x, w
			}
			for j, a := range add {
				want[j][i] += a
			}
		}
		l.Vote(v, x, w)
		for j, s := range all {
			same(t, "Vote "+shape(n, j), s, want[j])
		}
	})
}

// inLanes is a sum in the order of Dot64.
func inLanes(n int, f func(i int) float64) float64 {
	var s [16]float64
	for i := range n {
		s[i%16] += f(i)
	}
	a := func(i int) float64 { return s[i] + s[i+8] }
	c := func(i int) float64 { return a(i) + a(i+4) }
	return c(0) + c(2) + (c(1) + c(3))
}

func TestSums64(t *testing.T) { each(t, testSums64) }

func testSums64(t *testing.T, l Level) {
	b := newBench(t, l)
	b.eachLength(func(n int) {
		x, y := b.normal(n), b.normal(n)
		for i := range x { // sizes that show the order
			x[i] = float32(math.Ldexp(float64(x[i]), b.IntN(60)-30))
		}
		dot := inLanes(n, func(i int) float64 { return float64(x[i]) * float64(y[i]) })
		equal(t, "Dot64 "+shape(n), l.Dot64(x, y), dot)
		sum := inLanes(n, func(i int) float64 { return math.Abs(float64(x[i])) })
		equal(t, "SumAbs64 "+shape(n), l.SumAbs64(x), sum)
		bits := b.uint64s((n + 63) / 64)
		for i := range bits {
			bits[i] = b.Uint64()
		}
		l.KeepBits(y, x, bits)
		all, kept := l.SumAbs64Bits(x, bits)
		equal(t, "SumAbs64Bits, all, "+shape(n), all, sum)
		equal(t, "SumAbs64Bits "+shape(n), kept, l.SumAbs64(y))
	})
	x := []float32{1, float32(math.Inf(-1)), 2}
	equal(t, "an infinite sum", l.SumAbs64(x), math.Inf(1))
	x[0] = float32(math.NaN())
	if d, s := l.Dot64(x, x), l.SumAbs64(x); d == d || s == s {
		t.Errorf("with NaN: got %v and %v, want NaN", d, s)
	}
}

func TestLargest(t *testing.T) { each(t, testLargest) }

func testLargest(t *testing.T, l Level) {
	b := newBench(t, l)
	equal(t, "of none", l.Largest(nil), 0)
	b.eachLength(func(n int) {
		x := b.normal(n)
		var want float32
		for _, v := range x {
			want = max(want, v, -v)
		}
		equal(t, "Largest "+shape(n), l.Largest(x), want)
		if n == 0 {
			return
		}
		x[b.IntN(n)] = -1e30
		equal(t, "a negative one", l.Largest(x), 1e30)
		nan, signalling := float32(math.NaN()), math.Float32frombits(0xff800001)
		for _, v := range []float32{nan, signalling, negInf(), -negInf()} {
			y := slices.Clone(x)
			y[b.IntN(n)] = v
			if got := l.Largest(y); got == got {
				t.Fatalf("Largest of %d with %v: got %v, want NaN", n, v, got)
			}
		}
	})
}

func TestRandomWords(t *testing.T) { each(t, testRandomWords) }

func testRandomWords(t *testing.T, l Level) {
	b := newBench(t, l)
	b.eachLength(func(n int) {
		s, lo := rng.New(b.Uint64(), "words"), b.Uint64()>>(1+b.IntN(63))
		if n > 20 && n%2 == 0 { // over the end of a step
			lo = lo>>34<<34 + stepWords - uint64(n)/2
		}
		w, want := b.uint32s(n), make([]uint32, n)
		for i := range want {
			want[i] = s.Word(lo + uint64(i))
		}
		l.RandomWords(w, s, lo)
		sameList(t, "RandomWords "+shape(n), w, want)
		at := b.cut(n)
		for i := range len(at) - 1 {
			l.RandomWords(w[at[i]:at[i+1]], s, lo+uint64(at[i]))
		}
		sameList(t, "RandomWords in parts "+shape(n), w, want)
	})
}

func TestRandomBelow(t *testing.T) { each(t, testRandomBelow) }

func testRandomBelow(t *testing.T, l Level) {
	b := newBench(t, l)
	b.eachLength(func(n int) {
		for _, threshold := range []uint32{0, 1, 1 << 23, b.Uint32N(1 << 24), 1<<24 - 1, 1 << 24, 1<<32 - 1} {
			s, lo := rng.New(b.Uint64(), "below"), b.Uint64()>>(1+b.IntN(63))/64*64
			got, want := b.uint64s((n+63)/64), make([]uint64, (n+63)/64)
			for i := range n {
				if s.Word(lo+uint64(i))>>8 < threshold {
					want[i/64] |= 1 << (i % 64)
				}
			}
			l.RandomBelow(got, s, lo, n, threshold)
			sameList(t, "RandomBelow "+shape(n, int(threshold)), got, want)
			if n > 300 && threshold > 1 {
				break
			}
		}
	})
}

// TestRandomBelowKnown: the first elements of a tensor's mask, whose key is of a hash
// of seed 42, the name model.layers.0.mlp.up_proj.weight and model 0.
func TestRandomBelowKnown(t *testing.T) { each(t, testRandomBelowKnown) }

func testRandomBelowKnown(t *testing.T, l Level) {
	s := rng.Keyed([2]uint32{0x9a1d0161, 0xbf9d4b32})
	w := make([]uint32, 5)
	l.RandomWords(w, s, 0)
	sameList(t, "words", w, []uint32{0xa1cd2422, 0xdb8ef33d, 0xcadc43fe, 0xe8d4805d, 0xc7c1cb66})
	for i, u := range []float64{0.6320364475, 0.8576499820, 0.7924234271, 0.9094924927} {
		if got := float64(w[i]>>8) * 0x1p-24; math.Abs(got-u) > 1e-10 {
			t.Errorf("u[%d]: got %.10f, want %.10f", i, got, u)
		}
	}
	for p, want := range map[float64]uint64{0.6: 0, 0.7: 0b0001, 0.8: 0b0101, 0.9: 0b0111, 0.95: 0b1111} {
		m := []uint64{^uint64(0)}
		l.RandomBelow(m, s, 0, 4, uint32(math.Ceil(p*0x1p24)))
		if m[0] != want {
			t.Errorf("below %v: got %04b, want %04b", p, m[0], want)
		}
	}
}

// TestRandomBelowShare: the share of ones, within 4.5 standard deviations.
func TestRandomBelowShare(t *testing.T) { each(t, testRandomBelowShare) }

func testRandomBelowShare(t *testing.T, l Level) {
	const n, p = 1 << 18, 5033165 * 0x1p-24
	m, ones := make([]uint64, n/64), 0
	l.RandomBelow(m, rng.New(7, "share"), 0, n, 5033165)
	for _, w := range m {
		ones += mathbits.OnesCount64(w)
	}
	if d := math.Abs(float64(ones) - n*p); d > 4.5*math.Sqrt(n*p*(1-p)) {
		t.Errorf("got %d ones of %d, want about %v", ones, n, n*p)
	}
}

// TestF16: both conversions have the bits of package half: every binary16 number, the
// points halfway between two, what lies beside them, and any float32.
func TestF16(t *testing.T) { each(t, testF16) }

func testF16(t *testing.T, l Level) {
	b := newBench(t, l)
	h, f := make([]uint16, 1<<16), make([]float32, 1<<16)
	for i := range h {
		h[i] = uint16(i)
	}
	l.Widen16F(f, h)
	for i, v := range f {
		if got, want := math.Float32bits(v), math.Float32bits(half.FromF16(h[i])); got != want {
			t.Fatalf("Widen16F(%#04x): got %#08x, want %#08x", i, got, want)
		}
	}
	var x []uint32
	for i := range 1 << 15 {
		middle := (math.Float32bits(f[i]) + math.Float32bits(f[(i+1)%(1<<15)])) / 2
		x = append(x, middle-1, middle, middle+1, middle|1<<31, (middle+1)|1<<31, math.Float32bits(f[i]))
	}
	for range 1 << 15 {
		x = append(x, b.Uint32())
	}
	y := make([]uint16, len(x))
	floats := asFloats(x)
	l.Narrow16F(y, floats)
	for i, got := range y {
		if want := half.ToF16(floats[i]); got != want {
			t.Fatalf("Narrow16F(%#08x): got %#04x, want %#04x", x[i], got, want)
		}
	}
	b.eachLength(func(n int) {
		x, z := b.odd(n), b.words(n)
		want := make([]uint16, n)
		half.F32ToF16(want, x)
		l.Narrow16F(z, x)
		sameList(t, "Narrow16F "+shape(n), z, want)
		y, wide := b.out(n), make([]float32, n)
		half.F16ToF32(wide, z)
		l.Widen16F(y, z)
		same(t, "Widen16F "+shape(n), y, wide)
	})
}

func TestCollect(t *testing.T) { each(t, testCollect) }

func testCollect(t *testing.T, l Level) {
	b := newBench(t, l)
	limits := []uint32{0, 1, math.Float32bits(0.5), math.Float32bits(1), infinity, magnitude, 1 << 31, 1<<32 - 1}
	b.eachLength(func(n int) {
		x, dst := b.odd(n), b.uint32s(n)
		for _, lo := range limits {
			for _, hi := range limits {
				if n > 257 && (lo != limits[2] || hi != limits[3]) {
					continue
				}
				checkCollect(t, l, dst, x, lo, hi)
			}
		}
	})
}

// checkCollect compares with one pass for each result.
func checkCollect(t *testing.T, l Level, dst []uint32, x []float32, lo, hi uint32) {
	t.Helper()
	var want []uint32
	var counts, got [3]int
	for _, v := range x {
		b := math.Float32bits(float32(math.Abs(float64(v))))
		if v != v {
			b = math.Float32bits(v) &^ (1 << 31)
		}
		if lo < b && b < hi {
			want = append(want, b)
		}
		for i, count := range []bool{b > hi, b == lo, b == hi} {
			if count {
				counts[i]++
			}
		}
	}
	n := 0
	n, got[0], got[1], got[2] = l.Collect(dst, x, lo, hi)
	what := shape(len(x), int(lo), int(hi))
	sameList(t, "Collect "+what, dst[:n], want)
	equal(t, "above, least, most "+what, got, counts)
}

// anyWords is n random words, of which the highest and the lowest byte are often extreme.
func (b bench) anyWords(n int) []uint32 {
	w := b.uint32s(n)
	for i := range w {
		w[i] = b.Uint32()
		switch b.IntN(8) {
		case 0:
			w[i] |= 0xff0000ff
		case 1:
			w[i] &^= 0xff0000ff
		}
	}
	return w
}

func TestBucket(t *testing.T) { each(t, testBucket) }

func testBucket(t *testing.T, l Level) {
	b := newBench(t, l)
	b.eachLength(func(n int) {
		for _, lowest := range []uint32{0, 1, math.Float32bits(0.01), math.Float32bits(1), infinity, magnitude} {
			x, w := b.odd(n), b.anyWords(n)
			want := slices.Clone(w)
			for i, v := range x {
				bucket := (int64(math.Float32bits(v)&magnitude) - int64(lowest)) / (1 << 18)
				want[i] = want[i]/256*256 + uint32(min(max(bucket, 0), 255))
			}
			l.Bucket(w, x, lowest)
			sameList(t, "Bucket "+shape(n, int(lowest)), w, want)
		}
	})
}

func TestCountBelow(t *testing.T) { each(t, testCountBelow) }

func testCountBelow(t *testing.T, l Level) {
	b := newBench(t, l)
	b.eachLength(func(n int) {
		x := b.odd(n)
		half, one := math.Float32bits(0.5), math.Float32bits(1)
		for _, c := range []uint32{0, 1, half, one + 1, infinity, magnitude, 1 << 31} {
			want := 0
			for _, v := range x {
				if math.Float32bits(v)&magnitude < c {
					want++
				}
			}
			equal(t, "CountBelow "+shape(n, int(c)), l.CountBelow(x, c), want)
		}
	})
}

func TestWordsBelow(t *testing.T) { each(t, testWordsBelow) }

func testWordsBelow(t *testing.T, l Level) {
	b := newBench(t, l)
	b.eachLength(func(n int) {
		w, got := b.anyWords(n), b.uint64s((n+63)/64)
		for _, threshold := range []uint32{0, 1, 1 << 23, b.Uint32N(1 << 24), 1<<24 - 1, 1 << 24, 1<<32 - 1} {
			want := make([]uint64, len(got))
			for i, v := range w {
				if v>>8 < threshold {
					want[i/64] |= 1 << (i % 64)
				}
			}
			l.WordsBelow(got, w, threshold)
			sameList(t, "WordsBelow "+shape(n, int(threshold)), got, want)
		}
	})
}

func TestSieve(t *testing.T) { each(t, testSieve) }

func testSieve(t *testing.T, l Level) {
	b := newBench(t, l)
	b.eachLength(func(n int) {
		var bounds [256]uint16
		for i := range bounds {
			bounds[i] = uint16(b.Uint32())
			if i%3 == 0 { // one byte twice
				bounds[i] = bounds[i] & 0xff * 0x101
			}
		}
		w := b.anyWords(n)
		kept, open := b.uint64s((n+63)/64), b.uint64s((n+63)/64)
		wantKept, wantOpen := make([]uint64, len(kept)), make([]uint64, len(open))
		for i, v := range w {
			low, high, h := bounds[v%256]%256, bounds[v%256]/256, uint16(v>>24)
			if h < low {
				wantKept[i/64] |= 1 << (i % 64)
			} else if h <= high {
				wantOpen[i/64] |= 1 << (i % 64)
			}
		}
		l.Sieve(kept, open, w, &bounds)
		sameList(t, "Sieve, kept, "+shape(n), kept, wantKept)
		sameList(t, "Sieve, open, "+shape(n), open, wantOpen)
	})
}
