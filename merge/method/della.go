// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math"
	"math/bits"
	"unsafe"

	"pleach/internal/rng"
	"pleach/kernel"
)

// pruner keeps elements at random, the larger ones of a row more likely. Rows are along
// dimension 1, also of a tensor of three dimensions; of one dimension, the whole.
//
//	p = (density−epsilon) + (r−1)/(m−1) · 2·epsilon, for rank r = 1 … m of |x| in its row
//	keep where u < p
//
// Of equal |x| the one that comes first has the lower rank. p is density if m = 1. u is
// a random number of the element, a multiple of 2⁻²⁴. p is computed in float64.
//
// Few elements need their rank exactly: u may be outside of what p can be, and else the
// counts of magnitudes in 256 buckets tell enough of the rank, but near the edge.
//
// Deep, Bhardwaj & Poria, "DELLA-Merging", 2024, arXiv:2406.11617, section 2.1.
type pruner struct {
	slab
	below     []uint32 // by rank, how many random numbers are below p; the ends twice
	low, high uint32   // the least of below and the largest
}

// slab is how the rows of a tensor lie in memory: stride of them, with m elements each
// that are stride apart, fill m·stride elements in a row.
type slab struct{ m, stride int }

// slabOf has rows along dimension 1.
func slabOf(shape []int) slab {
	s := slab{1, 1}
	switch len(shape) {
	case 0:
	case 1:
		s.m = shape[0]
	default:
		s.m = shape[1]
		for _, d := range shape[2:] {
			s.stride *= d
		}
	}
	return s
}

// size is the number of elements in which whole rows lie.
func (s slab) size() int { return s.m * s.stride }

func newPruner(shape []int, density, epsilon float64) *pruner {
	q := &pruner{slab: slabOf(shape)}
	q.below = make([]uint32, q.m+2)
	for i := range q.below {
		rank := min(max(i, 1), q.m)
		q.below[i] = belowChance(chanceOf(rank, q.m, density, epsilon))
	}
	a, b := q.below[0], q.below[q.m+1]
	q.low, q.high = min(a, b), max(a, b)
	return q
}

// chanceOf is p of a rank in rows of m elements.
func chanceOf(rank, m int, density, epsilon float64) float64 {
	if m == 1 {
		return density
	}
	return density - epsilon + float64(float64(rank-1)/float64(m-1)*(2*epsilon))
}

// belowChance is the number of random numbers k·2⁻²⁴ that are below p. The product is
// exact, so k·2⁻²⁴ < p if and only if k is less than the result.
func belowChance(p float64) uint32 { return uint32(math.Ceil(min(max(p, 0), 1) * (1 << 24))) }

// scratch is the number of float32 that keep needs for n elements.
func (q *pruner) scratch(n int) int {
	if q.stride == 1 {
		return n
	}
	return n + 2*q.m
}

// keep sets bit i of mask if d[i] is kept. d is whole rows, from element lo of the
// tensor on. Elements that are 0 may be kept or not. mask is of zeros.
func (q *pruner) keep(l kernel.Level, mask []uint64, d []float32, s rng.Stream, lo int, scratch []float32) {
	random, rest := words(scratch[:len(d)]), scratch[len(d):]
	l.RandomWords(random, s, uint64(lo))
	if q.stride == 1 {
		r := newRows(mask, d, random)
		q.bounds(l, r)
		for at := 0; at < len(d); at += q.m {
			q.row(l, r, at)
		}
		return
	}
	x, w := rest[:q.m], words(rest[q.m:][:q.m])
	r := newRows(make([]uint64, (q.m+63)/64), x, w)
	for at := 0; at < len(d); at += q.size() {
		for c := at; c < at+q.stride; c++ {
			for j := range x {
				x[j], w[j] = d[c+j*q.stride], random[c+j*q.stride]
			}
			q.bounds(l, r)
			q.row(l, r, 0)
			for j := range x {
				i := c + j*q.stride
				mask[i/64] |= r.kept[j/64] >> (j % 64) & 1 << (i % 64)
			}
		}
	}
}

const (
	rowBuckets = 256 // of [kernel.Level.Bucket]

	// fewest is the length of rows that are worth buckets, and how many ranks of a row
	// are looked for one by one.
	fewest = 64
)

// rows is whole rows one after the other, and what work on one of them needs.
type rows struct {
	x          []float32
	w          []uint32 // random numbers in the upper 24 bits, buckets in the others
	kept, open []uint64 // bits: what is kept; where the rank decides

	count  [4][rowBuckets]uint32 // elements of every bucket, in four parts
	before [rowBuckets + 1]int32 // elements in lower buckets
	edges  [rowBuckets]edge
	asked  []int32 // elements of the row whose exact rank is needed

	order          []int32 // elements of the row by buckets
	members, spare []uint64
}

// edge is what the words of a bucket are compared with: those below low are kept, and
// those that lie width or more above it are not.
type edge struct{ low, width uint32 }

func newRows(kept []uint64, x []float32, w []uint32) *rows {
	return &rows{x: x, w: w, kept: kept, open: make([]uint64, len(kept)), asked: make([]int32, 0, fewest)}
}

// bounds sets r.kept where any rank would be kept, and r.open where some would.
func (q *pruner) bounds(l kernel.Level, r *rows) {
	l.WordsBelow(r.kept, r.w, q.low)
	l.WordsBelow(r.open, r.w, q.high)
	for i, k := range r.kept {
		r.open[i] &^= k
	}
}

// row decides on the row from element at on.
func (q *pruner) row(l kernel.Level, r *rows, at int) {
	x, w := r.x[at:][:q.m], r.w[at:][:q.m]
	r.asked = r.asked[:0]
	if len(x) <= fewest {
		r.eachOpen(at, len(x), func(i int) { r.asked = append(r.asked, int32(i)) })
	} else {
		l.Bucket(w, x, lowestOf(l, x))
		r.tally(w)
		q.draw(r)
		r.classify(at, x, w)
	}
	if len(r.asked) > fewest {
		q.sorted(r, at, x, w)
		return
	}
	for _, i := range r.asked {
		k := key(x[i])
		rank := 1 + l.CountBelow(x[:i], k+1) + l.CountBelow(x[i:], k)
		r.keepBelow(at+int(i), w[i], q.below[rank])
	}
}

// keepBelow keeps element i of all rows if its random number is below a bound.
func (r *rows) keepBelow(i int, w, bound uint32) {
	r.kept[i/64] |= (uint64(w>>8) - uint64(bound)) >> 63 << (i % 64)
}

// lowestOf chooses the buckets of a row: from its mean magnitude, roughly, the last one
// begins at 8 times of it, and the first one ends at a 32nd.
func lowestOf(l kernel.Level, x []float32) uint32 {
	const sample = 64
	step := (len(x) + sample - 1) / sample
	var sum float32
	n := 0
	for i := 0; i < len(x); i += step {
		sum += max(x[i], -x[i])
		n++
	}
	top := 8 * sum / float32(n)
	if !(top > 0 && top <= math.MaxFloat32) {
		top = l.Largest(x)
	}
	if !(top <= math.MaxFloat32) {
		top = math.MaxFloat32
	}
	const all = rowBuckets << 18
	return max(key(top), all) - all
}

// tally counts the elements of every bucket. Neighbours are counted apart, for they
// often fall into one.
func (r *rows) tally(w []uint32) {
	clear(r.count[:])
	c := &r.count
	for ; len(w) >= 4; w = w[4:] {
		c[0][uint8(w[0])]++
		c[1][uint8(w[1])]++
		c[2][uint8(w[2])]++
		c[3][uint8(w[3])]++
	}
	for _, e := range w {
		c[0][uint8(e)]++
	}
}

// draw finds the edges of every bucket from the ranks of its first element and its last
// one. An edge at 2³² is one less, and what lies there is not decided.
func (q *pruner) draw(r *rows) {
	c, n := &r.count, uint32(0)
	for b := range rowBuckets {
		r.before[b] = int32(n)
		first := q.below[n+1]
		n += c[0][b] + c[1][b] + c[2][b] + c[3][b]
		last := q.below[n]
		low := min(uint64(min(first, last))<<8, math.MaxUint32)
		r.edges[b] = edge{uint32(low), uint32(uint64(max(first, last))<<8 - low)}
	}
	r.before[rowBuckets] = int32(n)
}

// classify decides on the open elements of a row but those in r.asked.
func (r *rows) classify(at int, x []float32, w []uint32) {
	for k := at / 64; k*64 < at+len(x); k++ {
		var kept uint64
		first := k*64 - at
		for open := r.openOf(k, at, len(x)); open != 0; open &= open - 1 {
			j := bits.TrailingZeros64(open) & 63
			e := w[first+j]
			t := r.edges[uint8(e)]
			over := uint64(e) - uint64(t.low)
			kept |= over >> 63 << j
			if uint32(over) < t.width && x[first+j] != 0 {
				r.asked = append(r.asked, int32(first+j))
			}
		}
		r.kept[k] |= kept
	}
}

// openOf is those bits of word k of r.open that are of n elements from at on.
func (r *rows) openOf(k, at, n int) uint64 {
	open := r.open[k]
	if from := at - k*64; from > 0 {
		open &= ^uint64(0) << from
	}
	if to := at + n - k*64; to < 64 {
		open &= 1<<to - 1
	}
	return open
}

// eachOpen calls f for the open ones of n elements from at on.
func (r *rows) eachOpen(at, n int, f func(i int)) {
	for k := at / 64; k*64 < at+n; k++ {
		for open := r.openOf(k, at, n); open != 0; open &= open - 1 {
			f(k*64 - at + bits.TrailingZeros64(open))
		}
	}
}

// sorted decides on all elements of the buckets in which exact ranks are needed.
func (q *pruner) sorted(r *rows, at int, x []float32, w []uint32) {
	if r.order == nil {
		r.order = make([]int32, q.m)
		r.members, r.spare = make([]uint64, q.m), make([]uint64, q.m)
	}
	next := r.before
	for i, e := range w {
		p := &next[uint8(e)]
		r.order[*p] = int32(i)
		*p++
	}
	var marked [rowBuckets]bool
	for _, i := range r.asked {
		marked[uint8(w[i])] = true
	}
	for b, asked := range marked {
		if !asked {
			continue
		}
		rank := int(r.before[b])
		for j, m := range r.ranked(x, r.order[rank:r.before[b+1]]) {
			i := int(uint32(m))
			r.keepBelow(at+i, w[i], q.below[rank+j+1])
		}
	}
}

// ranked is elements of x, given in order, in the order of their ranks: an element in
// the lower 32 bits and its key above.
func (r *rows) ranked(x []float32, elements []int32) []uint64 {
	m := r.members[:len(elements)]
	var differ uint32
	first := key(x[elements[0]])
	for j, i := range elements {
		k := key(x[i])
		m[j] = uint64(k)<<32 | uint64(i)
		differ |= k ^ first
	}
	return sortKeys(m, r.spare[:len(m)], differ)
}

// sortKeys sorts m by the bits from 32 on that differ, and leaves equals in order. The
// result is m or spare.
func sortKeys(m, spare []uint64, differ uint32) []uint64 {
	for digit := 0; differ>>digit != 0; digit += 8 {
		if uint8(differ>>digit) == 0 {
			continue
		}
		var at [257]uint32
		for _, v := range m {
			at[1+int(uint8(v>>(32+digit)))]++
		}
		for i := range 256 {
			at[i+1] += at[i]
		}
		for _, v := range m {
			p := &at[uint8(v>>(32+digit))]
			spare[*p] = v
			*p++
		}
		m, spare = spare, m
	}
	return m
}

// memory is an upper bound of the bytes that it holds and that one call of keep
// allocates.
func (q *pruner) memory() int64 {
	n := int64(unsafe.Sizeof(rows{})) + 4*int64(len(q.below))
	return n + (4+4+8+8+4)*int64(q.m) + int64(max(q.m, Flat))/8
}
