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
// counts of magnitudes in buckets tell enough of the rank, but near the edge.
//
// Deep, Bhardwaj & Poria, "DELLA-Merging", 2024, arXiv:2406.11617, section 2.1.
type pruner struct {
	m, stride     int     // elements of a row and the distance between them
	first, spread float64 // p of rank 1, and what is added up to rank m
	single        float64 // p in rows of one element
	perChance     float64 // ranks by which p rises by 1
	trust         uint64  // 1 if perChance can be computed with
	low, high     uint32  // words of 24 bits below low are kept always, from high on never
}

func newPruner(shape []int, density, epsilon float64) *pruner {
	q := &pruner{m: 1, stride: 1, first: density - epsilon, spread: 2 * epsilon, single: density}
	switch len(shape) {
	case 0:
	case 1:
		q.m = shape[0]
	default:
		q.m = shape[1]
		for _, d := range shape[2:] {
			q.stride *= d
		}
	}
	if q.m > 1 && q.spread > 1e-6 {
		q.perChance, q.trust = float64(q.m-1)/q.spread, 1
	}
	a, b := q.chance(1), q.chance(q.m)
	q.low, q.high = belowChance(min(a, b)), belowChance(max(a, b))
	return q
}

// size is the number of elements in which whole rows lie.
func (q *pruner) size() int { return q.m * q.stride }

// chance is p of a rank.
func (q *pruner) chance(rank int) float64 {
	if q.m == 1 {
		return q.single
	}
	return q.first + float64(float64(rank-1)/float64(q.m-1)*q.spread)
}

// belowChance is the number of random numbers k·2⁻²⁴ that are below p.
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
	var r rows
	r.kept = make([]uint64, (q.m+63)/64)
	if q.stride == 1 {
		for at := 0; at < len(d); at += q.m {
			q.row(l, &r, d[at:][:q.m], random[at:][:q.m])
			orBits(mask, r.kept, at)
		}
		return
	}
	x, w := rest[:q.m], words(rest[q.m:][:q.m])
	for at := 0; at < len(d); at += q.size() {
		for c := at; c < at+q.stride; c++ {
			for j := range x {
				x[j], w[j] = d[c+j*q.stride], random[c+j*q.stride]
			}
			q.row(l, &r, x, w)
			for j := range x {
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

// mostLevels is the number of buckets of a row at most. The elements of a bucket have
// the exponent and the first bits of the mantissa in common; bucket 0 is also of all
// that is smaller.
const mostLevels = 1 << 12

// rows is what work on a row needs.
type rows struct {
	kept   []uint64              // the result: bits
	before [mostLevels + 1]int32 // elements in lower buckets
	odd    [mostLevels]int32
	marked [mostLevels]bool // buckets in which exact ranks are needed
	asked  []int32          // elements whose exact rank is needed
	member []uint64         // elements of marked buckets: key and index

	levels, shift int
	lowest        int // key of bucket 0, shifted; less than 0 if that cannot be
}

// bucket is that of a key.
func (r *rows) bucket(k uint32) int { return max(int(k>>r.shift)-r.lowest, 0) }

// row sets r.kept for one row x with random words w.
func (q *pruner) row(l kernel.Level, r *rows, x []float32, w []uint32) {
	r.scale(l, x)
	r.tally(x)
	q.classify(r, x, w)
	if len(r.asked) == 0 {
		return
	}
	r.gather(x)
	for _, i := range r.asked {
		me := uint64(key(x[i]))<<32 | uint64(i)
		b := r.bucket(key(x[i]))
		first, _ := slices.BinarySearch(r.member, r.floor(b))
		at, _ := slices.BinarySearch(r.member, me)
		if q.keeps(w[i], int(r.before[b])+at-first+1) {
			r.kept[i/64] |= 1 << (i % 64)
		}
		r.marked[b] = false
	}
}

// keeps says whether an element with a random word is kept at a rank.
func (q *pruner) keeps(w uint32, rank int) bool {
	return float64(w>>8)*0x1p-24 < q.chance(rank)
}

// scale chooses buckets for a row: the more, the longer it is.
func (r *rows) scale(l kernel.Level, x []float32) {
	octave := min(max(bits.Len(uint(len(x)))-6, 3), 8)
	r.shift, r.levels = 23-octave, 16<<octave
	most := key(l.Largest(x))
	if most > key(float32(math.MaxFloat32)) {
		for _, v := range x {
			most = max(most, key(v))
		}
	}
	r.lowest = int(most>>r.shift) - r.levels + 1
}

// tally counts the elements in lower buckets of each one. Neighbours are counted apart,
// for they often fall into one bucket.
func (r *rows) tally(x []float32) {
	clear(r.before[:r.levels+1])
	clear(r.odd[:r.levels])
	i := 0
	for ; i+2 <= len(x); i += 2 {
		r.before[r.bucket(key(x[i]))+1]++
		r.odd[r.bucket(key(x[i+1]))]++
	}
	if i < len(x) {
		r.odd[r.bucket(key(x[i]))]++
	}
	for i := range r.levels {
		r.before[i+1] += r.before[i] + r.odd[i]
	}
}

// classify decides on all elements but those in r.asked.
func (q *pruner) classify(r *rows, x []float32, w []uint32) {
	r.asked = r.asked[:0]
	for at := 0; at < len(x); at += 64 {
		kept, below := uint64(0), uint64(0)
		for j, word := range w[at:min(at+64, len(x))] {
			u := uint64(word >> 8)
			kept |= (u - uint64(q.low)) >> 63 << j
			below |= (u - uint64(q.high)) >> 63 << j
		}
		for open := below &^ kept; open != 0; open &= open - 1 {
			j := bits.TrailingZeros64(open)
			b := r.bucket(key(x[at+j]))
			first, last := int(r.before[b])+1, int(r.before[b+1])
			t := q.turn(w[at+j])
			sure := uint64(t-first)>>63&q.trust | uint64(last-t)>>63&q.trust
			kept |= uint64(t-first) >> 63 & q.trust << j
			if sure == 0 && x[at+j] != 0 {
				kept |= q.ask(r, w[at+j], at+j, b) << j
			}
		}
		r.kept[at/64] = kept
	}
}

// turn is near the rank from which on an element with a random word is kept: surely at a
// larger rank, surely not at a smaller one.
func (q *pruner) turn(w uint32) int {
	return int(float64((float64(w>>8)*0x1p-24-q.first)*q.perChance)) + 1
}

// ask is 1 if element i is kept at all ranks of its bucket, and puts it on the list if it
// depends on the rank.
func (q *pruner) ask(r *rows, w uint32, i, b int) uint64 {
	one, other := q.keeps(w, int(r.before[b])+1), q.keeps(w, int(r.before[b+1]))
	switch {
	case one != other:
		r.marked[b] = true
		r.asked = append(r.asked, int32(i))
	case one:
		return 1
	}
	return 0
}

// gather sorts the elements of marked buckets by key and index.
func (r *rows) gather(x []float32) {
	r.member = r.member[:0]
	for i, v := range x {
		if k := key(v); r.marked[r.bucket(k)] {
			r.member = append(r.member, uint64(k)<<32|uint64(i))
		}
	}
	slices.Sort(r.member)
}

// floor is not above what member has for elements of a bucket, and above those before.
func (r *rows) floor(b int) uint64 {
	if b == 0 {
		return 0
	}
	return uint64(b+r.lowest) << r.shift << 32
}

// memory is an upper bound of the bytes that one call of keep allocates.
func (q *pruner) memory() int64 {
	return int64(unsafe.Sizeof(rows{})) + int64(q.m/8+8) + int64(16*q.m) + int64(8*q.m)
}
