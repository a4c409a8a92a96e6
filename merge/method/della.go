// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math"
	"math/bits"
	"slices"
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
	below []uint32 // by rank, how many random numbers are below p; the ends twice
	bytes []uint8  // the upper 8 bits of those, up to 255
	falls bool     // whether below does, as ranks rise
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
	q.below, q.bytes, q.falls = make([]uint32, q.m+2), make([]uint8, q.m+2), epsilon < 0
	for i := range q.below {
		rank := min(max(i, 1), q.m)
		q.below[i] = belowChance(chanceOf(rank, q.m, density, epsilon))
		q.bytes[i] = uint8(min(q.below[i]>>16, 255))
	}
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
	r := newRow(q.m)
	if q.stride == 1 {
		for at := 0; at < len(d); at += q.m {
			r.x, r.w = d[at:][:q.m], random[at:][:q.m]
			q.decide(l, r)
			orBits(mask, r.kept, at)
		}
		return
	}
	r.x, r.w = rest[:q.m], words(rest[q.m:][:q.m])
	for at := 0; at < len(d); at += q.size() {
		for c := at; c < at+q.stride; c++ {
			for j := range r.x {
				r.x[j], r.w[j] = d[c+j*q.stride], random[c+j*q.stride]
			}
			q.decide(l, r)
			for j := range r.x {
				i := c + j*q.stride
				mask[i/64] |= r.kept[j/64] >> (j % 64) & 1 << (i % 64)
			}
		}
	}
}

// orBits adds the bits of b to those of mask from bit at on.
func orBits(mask, b []uint64, at int) {
	i, shift := at/64, at%64
	for k, w := range b {
		mask[i+k] |= w << shift
		if over := w >> (64 - shift); over != 0 {
			mask[i+k+1] |= over
		}
	}
}

const (
	rowBuckets = 256 // of [kernel.Level.Bucket]

	fewest = 16 // elements of a row that are worth buckets
	single = 64 // ranks that are worth looking for one by one
)

// row is a row, and what work on it needs.
type row struct {
	x          []float32
	w          []uint32 // random numbers in the upper 24 bits, buckets in the others
	kept, open []uint64 // bits: what is kept; what is not decided

	count  [4][rowBuckets]uint32 // elements of every bucket, in four parts
	before [rowBuckets + 1]int32 // elements in lower buckets
	bounds [rowBuckets]uint16    // of [kernel.Level.Sieve]
	asked  []int32               // elements whose exact rank is needed

	order          []int32   // elements by buckets
	values         []float32 // what they are
	members, spare []uint64
}

func newRow(m int) *row {
	bits := make([]uint64, 2*((m+63)/64))
	return &row{
		kept: bits[:len(bits)/2], open: bits[len(bits)/2:],
		asked: make([]int32, 0, 2*single),
	}
}

// decide sets r.kept.
func (q *pruner) decide(l kernel.Level, r *row) {
	r.asked = r.asked[:0]
	if q.m <= fewest {
		q.few(r)
	} else {
		l.Bucket(r.w, r.x, lowestOf(l, r.x))
		r.tally()
		q.draw(r)
		l.Sieve(r.kept, r.open, r.w, &r.bounds)
		q.classify(r)
	}
	if len(r.asked) > single {
		q.crowd(r, l)
		return
	}
	for _, i := range r.asked {
		r.keepBelow(int(i), q.below[rankAt(l, r.x, int(i))])
	}
}

// few asks for the ranks of all elements.
func (q *pruner) few(r *row) {
	clear(r.kept)
	for i := range r.x {
		r.asked = append(r.asked, int32(i))
	}
}

// keepBelow keeps element i if its random number is below a bound.
func (r *row) keepBelow(i int, bound uint32) {
	r.kept[i/64] |= (uint64(r.w[i]>>8) - uint64(bound)) >> 63 << (i % 64)
}

// rankAt is the rank of x[i].
func rankAt(l kernel.Level, x []float32, i int) int {
	k, part := key(x[i]), i&^15
	rank := 1 + l.CountBelow(x[:part], k+1) + l.CountBelow(x[part:], k)
	for _, v := range x[part:i] {
		if key(v) == k {
			rank++
		}
	}
	return rank
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
func (r *row) tally() {
	clear(r.count[:])
	w := r.w
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

// draw finds the bounds of every bucket from the ranks of its first element and its last
// one.
func (q *pruner) draw(r *row) {
	c, n, bytes := &r.count, uint32(0), q.bytes
	for b := range rowBuckets {
		r.before[b] = int32(n)
		first := uint16(bytes[n+1])
		n += c[0][b] + c[1][b] + c[2][b] + c[3][b]
		r.bounds[b] = first | uint16(bytes[n])<<8
	}
	if q.falls {
		for b, v := range r.bounds {
			r.bounds[b] = bits.RotateLeft16(v, 8)
		}
	}
	r.before[rowBuckets] = int32(n)
}

// classify decides on the open elements but those in r.asked.
func (q *pruner) classify(r *row) {
	x, w := r.x, r.w
	for k, open := range r.open {
		for ; open != 0; open &= open - 1 {
			i := 64*k + bits.TrailingZeros64(open)
			u, b := uint64(w[i]>>8), int(uint8(w[i]))
			first, last := q.below[r.before[b]+1], q.below[r.before[b+1]]
			if u < uint64(min(first, last)) {
				r.kept[k] |= open & -open
			} else if u < uint64(max(first, last)) && x[i] != 0 {
				r.asked = append(r.asked, int32(i))
			}
		}
	}
}

// crowd finds the ranks of many elements, among those of their buckets: one by one, or
// in buckets where there are many, of all.
func (q *pruner) crowd(r *row, l kernel.Level) {
	r.sort()
	var asked [rowBuckets]int32
	for _, i := range r.asked {
		asked[uint8(r.w[i])]++
	}
	for _, i := range r.asked {
		b := int(uint8(r.w[i]))
		if asked[b] <= single {
			before, behind := int(r.before[b]), int(r.before[b+1])
			at, _ := slices.BinarySearch(r.order[before:behind], i)
			r.keepBelow(int(i), q.below[before+rankAt(l, r.values[before:behind], at)])
		}
	}
	for b, n := range asked {
		if n <= single {
			continue
		}
		before := int(r.before[b])
		for j, m := range r.ranked(before, int(r.before[b+1])) {
			r.keepBelow(int(uint32(m)), q.below[before+j+1])
		}
	}
}

// sort puts the elements in the order of buckets.
func (r *row) sort() {
	if r.order == nil {
		r.order, r.values = make([]int32, len(r.x)), make([]float32, len(r.x))
	}
	next := r.before
	for i, e := range r.w {
		p := &next[uint8(e)]
		r.order[*p], r.values[*p] = int32(i), r.x[i]
		*p++
	}
}

// ranked is the elements of r.order from one place to another in the order of their
// ranks: an element in the lower 32 bits and its key above.
func (r *row) ranked(from, to int) []uint64 {
	if r.members == nil {
		r.members, r.spare = make([]uint64, len(r.x)), make([]uint64, len(r.x))
	}
	m, order := r.members[:to-from], r.order[from:to]
	var differ uint32
	first := key(r.values[from])
	for j, v := range r.values[from:to] {
		k := key(v)
		m[j] = uint64(k)<<32 | uint64(order[j])
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
	n := int64(unsafe.Sizeof(row{})) + 5*int64(len(q.below))
	return n + (4+4+4+8+8)*int64(q.m) + int64(q.m)/4 + 16
}
