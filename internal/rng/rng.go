// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package rng makes random numbers that are a pure function of what they are
// for: (seed, purpose, index). There is no state to save, and no order to keep:
// any rank or thread computes any number alone.
//
// The type to know is [Stream].
package rng

import (
	"math"
	"math/bits"
	"sync"
)

// Philox is Philox4x32-10: ten rounds on a counter of four words under a key of
// two. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011,
// table 2; its outputs are those of Random123.
func Philox(key [2]uint32, ctr [4]uint32) [4]uint32 {
	a, b, c, d, k, q := ctr[0], ctr[1], ctr[2], ctr[3], key[0], key[1]
	for range 10 {
		x, y := uint64(a)*0xD2511F53, uint64(c)*0xCD9E8D57
		a, b, c, d = uint32(y>>32)^b^k, uint32(y), uint32(x>>32)^d^q, uint32(x)
		k, q = k+0x9E3779B9, q+0xBB67AE85
	}
	return [4]uint32{a, b, c, d}
}

// Stream is an endless array of random words for one purpose. The zero value is
// a valid stream, of seed 0 and no purpose. Streams are safe for concurrent use.
type Stream struct {
	key    [2]uint32
	hi, lo uint32 // upper half of the counter: what the purpose hashes to
}

// New is the stream of a purpose ("init model.norm", "shuffle web 3") under a
// seed. Streams of different purposes do not overlap but by a collision of
// 64-bit hashes.
func New(seed uint64, purpose string) Stream {
	h := uint64(14695981039346656037) // FNV-1a, 64 bits
	for i := range len(purpose) {
		h = (h ^ uint64(purpose[i])) * 1099511628211
	}
	return Stream{[2]uint32{uint32(seed), uint32(seed >> 32)}, uint32(h >> 32), uint32(h)}
}

// Keyed is the stream of a key that its user made. Block(i) is Philox with this key
// and the counter i mod 2³², i/2³², 0, 0. No stream of New has the same numbers but
// by a collision.
func Keyed(key [2]uint32) Stream { return Stream{key: key} }

// Block is words 4i to 4i+3 of the stream.
func (s Stream) Block(i uint64) [4]uint32 {
	return Philox(s.key, [4]uint32{uint32(i), uint32(i >> 32), s.lo, s.hi})
}

// Parts is for those who make many blocks at once: Block(i) is Philox with this key
// and the counter i mod 2³², i/2³², purpose[0], purpose[1].
func (s Stream) Parts() (key, purpose [2]uint32) {
	return s.key, [2]uint32{s.lo, s.hi}
}

// Word is word i of the stream. Whoever needs many takes Blocks.
func (s Stream) Word(i uint64) uint32 { return s.Block(i / 4)[i%4] }

// Uint64 is words 2i and 2i+1 of the stream as one.
func (s Stream) Uint64(i uint64) uint64 {
	b := s.Block(i / 2)
	return uint64(b[i%2*2])<<32 | uint64(b[i%2*2+1])
}

// Float64 is number i of a stream of numbers uniform on [0,1), multiples of 2⁻⁵³.
func (s Stream) Float64(i uint64) float64 { return float64(s.Uint64(i)>>11) * 0x1p-53 }

// Normals fills dst with numbers lo, lo+1, … of a stream from the normal
// distribution with mean 0 and a standard deviation: a word each.
//
//	x = ±Φ⁻¹(p)·std, the sign from the lowest bit of the word, p = (n+½)·2⁻³² from the others
//
// The quantile Φ⁻¹ is interpolated between 64 points in every octave of p, with a
// relative error below 1.2e-4. The largest absolute value is 6.3·std.
func (s Stream) Normals(dst []float32, lo uint64, std float32) {
	t := quantiles()
	one := func(n int) {
		b := s.Block(lo / 4)
		for i := range n {
			dst[i] = std * t.normal(b[(int(lo)+i)%4])
		}
		dst, lo = dst[n:], lo+uint64(n)
	}
	if first := int(-lo % 4); first > 0 {
		one(min(first, len(dst)))
	}
	for ; len(dst) >= 8; dst, lo = dst[8:], lo+8 {
		b, d := s.blocks(lo/4), dst[:8]
		for i, w := range b {
			d[i] = std * t.normal(w)
		}
	}
	for len(dst) > 0 {
		one(min(4, len(dst)))
	}
}

// blocks is blocks i and i+1, whose rounds a processor does side by side.
func (s Stream) blocks(i uint64) (w [8]uint32) {
	a, b, c, d := uint32(i), uint32(i>>32), s.lo, s.hi
	e, f, g, h := uint32(i+1), uint32((i+1)>>32), s.lo, s.hi
	k, q := s.key[0], s.key[1]
	for range 10 {
		x, y := uint64(a)*0xD2511F53, uint64(c)*0xCD9E8D57
		u, v := uint64(e)*0xD2511F53, uint64(g)*0xCD9E8D57
		a, b, c, d = uint32(y>>32)^b^k, uint32(y), uint32(x>>32)^d^q, uint32(x)
		e, f, g, h = uint32(v>>32)^f^k, uint32(v), uint32(u>>32)^h^q, uint32(u)
		k, q = k+0x9E3779B9, q+0xBB67AE85
	}
	return [8]uint32{a, b, c, d, e, f, g, h}
}

// The tail p of the normal distribution has octaves 2⁻² ≤ p < 2⁻¹ and below, 32
// of them, with so many points in each.
const points = 64

// tails is the quantile at each point, and what it is more at the next one.
type tails [32 * points][2]float32

// quantiles is made once: a few thousand numbers.
var quantiles = sync.OnceValue(func() *tails {
	var t tails
	at := func(octave, point int) float64 {
		return math.Sqrt2 * math.Erfcinv(math.Ldexp(float64(points+point)/points, -octave-1))
	}
	for i := range t {
		x := at(i/points, i%points)
		t[i] = [2]float32{float32(x), float32(at(i/points, i%points+1) - x)}
	}
	return &t
})

// normal is the number of one word.
func (t *tails) normal(w uint32) float32 {
	odd := w | 1 // p·2³³
	octave := bits.LeadingZeros32(odd)
	m := odd << octave & (1<<31 - 1) // behind the leading one
	x := &t[octave*points+int(m>>25)]
	v := x[0] + float32(x[1]*float32(m&(1<<25-1))*0x1p-25)
	return math.Float32frombits(math.Float32bits(v) ^ w<<31)
}

// Perm is a permutation of 0 … n−1 by Fisher and Yates, taking its choices from
// the words of the stream by Lemire's multiplication ("Fast Random Integer
// Generation in an Interval", 2019, arXiv:1805.10941) without rejection: the
// bias is below n/2⁶⁴.
func (s Stream) Perm(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j, _ := bits.Mul64(s.Uint64(uint64(i)), uint64(i+1))
		p[i], p[j] = p[j], p[i]
	}
	return p
}
