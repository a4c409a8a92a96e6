// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"unsafe"

	"pleach/internal/rng"
)

// philox is what blocks of Philox4x32-10 are made from whose counters differ in the
// first word only: that of the first one, and what is added, by exclusive or, to
// the products that depend on it, in the order of kernel/gen.
type philox struct {
	first uint32
	terms [19]uint32
}

const (
	blockNumbers = 8   // of 16 bits in a block
	philoxStride = 256 // numbers that a call into assembly makes at once

	stepWords  = 1 << 34 // in a step: 2³² blocks
	belowWords = 2048    // that RandomBelow has in the first cache at once
)

// RandomBits fills r with the uniform numbers lo, lo+1, … of a step, 16 bits each.
// They are what the stream says, however they are cut into calls:
//
//	number i is half i mod 2, the lower one first, of word i/2 mod 4 of s.Block(i/8 + step·2³²)
//
// A step has 2³⁵ numbers; behind them the first one follows again.
func (l Level) RandomBits(r []uint16, s rng.Stream, step uint32, lo uint64) {
	if l == Portable {
		for len(r) > 0 {
			r, lo = randomBlock(r, s, step, lo)
		}
		return
	}
	key, purpose := s.Parts()
	p := newPhilox(key, [4]uint32{0, step, purpose[0], purpose[1]})
	for len(r) > 0 {
		p.first = uint32(lo / blockNumbers)
		n, before := min(len(r)/philoxStride*philoxStride, piece), int(lo%blockNumbers)
		if n > 0 && before == 0 {
			atPhilox(l, &r[0], n, &p)
		} else {
			var t [philoxStride]uint16
			atPhilox(l, &t[0], philoxStride, &p)
			n = copy(r, t[before:])
		}
		r, lo = r[n:], lo+uint64(n)
	}
}

// randomBlock fills r from lo on to the end of a block, and returns what is left.
func randomBlock(r []uint16, s rng.Stream, step uint32, lo uint64) ([]uint16, uint64) {
	b := s.Block(uint64(step)<<32 | uint64(uint32(lo/blockNumbers)))
	i := int(lo % blockNumbers)
	n := min(len(r), blockNumbers-i)
	for j := range n {
		r[j] = uint16(b[(i+j)/2] >> (16 * ((i + j) % 2)))
	}
	return r[n:], lo + uint64(n)
}

// newPhilox computes the two rounds in which words are the same in all blocks.
func newPhilox(key [2]uint32, ctr [4]uint32) philox {
	p := philox{first: ctr[0]}
	next := func() { key = [2]uint32{key[0] + 0x9E3779B9, key[1] + 0xBB67AE85} }
	y := uint64(ctr[2]) * 0xCD9E8D57
	a, b := uint32(y>>32)^ctr[1]^key[0], uint32(y)
	p.terms[0] = ctr[3] ^ key[1]
	next()
	x := uint64(a) * 0xD2511F53
	p.terms[1], p.terms[2] = b^key[0], uint32(x>>32)^key[1]
	next()
	p.terms[3], p.terms[4] = uint32(x)^key[1], key[0]
	for i := 5; i < len(p.terms); i += 2 {
		next()
		p.terms[i], p.terms[i+1] = key[1], key[0]
	}
	return p
}

// RandomWords fills w with words lo, lo+1, … of a stream, however they are cut into
// calls.
func (l Level) RandomWords(w []uint32, s rng.Stream, lo uint64) {
	if l == Portable {
		for len(w) > 0 {
			b := s.Block(lo / 4)
			n := copy(w, b[lo%4:])
			w, lo = w[n:], lo+uint64(n)
		}
		return
	}
	for len(w) > 0 {
		n := int(min(uint64(len(w)), stepWords-lo%stepWords))
		// Levels in assembly are of processors that store the lower half first.
		halves := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(w))), 2*n)
		l.RandomBits(halves, s, uint32(lo/stepWords), 2*(lo%stepWords))
		w, lo = w[n:], lo+uint64(n)
	}
}

// RandomBelow sets bit i of bits, for 0 ≤ i < n, where the upper 24 bits of word
// lo+i of a stream are below the threshold: with the probability threshold·2⁻²⁴.
// Other bits of its last word become 0. lo is a multiple of 64.
func (l Level) RandomBelow(bits []uint64, s rng.Stream, lo uint64, n int, threshold uint32) {
	bits = bits[:(n+63)/64]
	clear(bits)
	if l == Portable {
		for i := 0; i < n; i += 4 {
			b := s.Block((lo + uint64(i)) / 4)
			for j := range min(4, n-i) {
				bits[(i+j)/64] |= uint64(less(b[j]>>8, threshold)) << ((i + j) % 64)
			}
		}
		return
	}
	threshold = min(threshold, 1<<24)
	var t [belowWords]uint32
	for i := 0; i < n; i += len(t) {
		w := t[:min(len(t), (n-i+lanes-1)/lanes*lanes)]
		l.RandomWords(w, s, lo+uint64(i))
		atBelow(l, &bits[i/64], &w[0], len(w), threshold)
	}
	if r := n % 64; r > 0 {
		bits[len(bits)-1] &= 1<<r - 1
	}
}

// WordsBelow sets bit i of bits where the upper 24 bits of w[i] are below the threshold,
// and clears it elsewhere, also those behind the last w in a word.
func (l Level) WordsBelow(bits []uint64, w []uint32, threshold uint32) {
	bits = bits[:(len(w)+63)/64]
	clear(bits)
	threshold = min(threshold, 1<<24)
	at := 0
	if l != Portable {
		for at+lanes <= len(w) {
			n := min(whole(len(w)-at), piece)
			atBelow(l, &bits[at/64], &w[at], n, threshold)
			at += n
		}
	}
	for i, v := range w[at:] {
		i += at
		bits[i/64] |= uint64(less(v>>8, threshold)) << (i % 64)
	}
}

// Sieve looks up a pair of bounds for each w[i] by its lowest byte, and compares its
// highest byte h with them: bit i of kept is set where h is below the lower byte of the
// pair, and that of open where it is not, nor above the upper byte. Bits behind the last
// w in a word become 0.
func (l Level) Sieve(kept, open []uint64, w []uint32, bounds *[256]uint16) {
	words := (len(w) + 63) / 64
	kept, open = kept[:words], open[:words]
	clear(kept)
	clear(open)
	at := 0
	if l != Portable && l != AVX2 && l != NEON { // two vectors of AVX-512 at once
		for at+2*lanes <= len(w) {
			n := min((len(w)-at)/(2*lanes)*(2*lanes), piece)
			atSieve(l, &kept[at/64], &open[at/64], &w[at], n, &bounds[0])
			at += n
		}
	}
	for i, v := range w[at:] {
		i += at
		t, h := uint32(bounds[uint8(v)]), v>>24
		under := uint64(less(h, t&0xff))
		kept[i/64] |= under << (i % 64)
		open[i/64] |= (1 - under) & (1 - uint64(less(t>>8, h))) << (i % 64)
	}
}
