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
)

// Philox is Philox4x32-10: ten rounds on a counter of four words under a key of
// two. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011,
// table 2; its outputs are those of Random123.
func Philox(key [2]uint32, ctr [4]uint32) [4]uint32 {
	for range 10 {
		h0, l0 := bits.Mul32(0xD2511F53, ctr[0])
		h1, l1 := bits.Mul32(0xCD9E8D57, ctr[2])
		ctr = [4]uint32{h1 ^ ctr[1] ^ key[0], l1, h0 ^ ctr[3] ^ key[1], l0}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return ctr
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

// Block is words 4i to 4i+3 of the stream.
func (s Stream) Block(i uint64) [4]uint32 {
	return Philox(s.key, [4]uint32{uint32(i), uint32(i >> 32), s.lo, s.hi})
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

// Normal is number i of a stream of numbers from the standard normal
// distribution: words 2i and 2i+1, by the polar form of Box and Muller ("A Note
// on the Generation of Random Normal Deviates", 1958) without its sine twin.
// The largest absolute value is 6.7.
func (s Stream) Normal(i uint64) float64 {
	b := s.Block(i / 2)
	u := (float64(b[i%2*2]) + 0.5) * 0x1p-32 // (0,1): the logarithm is finite
	v := float64(b[i%2*2+1]) * 0x1p-32
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
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
