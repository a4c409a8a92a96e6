// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"testing"

	"pleach/internal/rng"
)

// TestRandomBits: the numbers are those of the stream, wherever a call begins and
// ends.
func TestRandomBits(t *testing.T) { each(t, testRandomBits) }

func testRandomBits(t *testing.T, l Level) {
	b := newBench(t, l)
	for i := range 60 {
		n := b.size(257)
		if i == 0 {
			n = 2*piece + 1
		}
		s, step, lo := rng.New(b.Uint64(), "bits"), b.Uint32(), b.Uint64()>>(29+b.IntN(35))
		want := make([]uint16, n)
		for i := range want {
			n := lo + uint64(i)
			w := s.Block(n/8%(1<<32) + uint64(step)<<32)[n/2%4]
			want[i] = uint16(w >> (16 * (n % 2)))
		}
		r := b.words(n)
		l.RandomBits(r, s, step, lo)
		sameWords(t, "RandomBits "+shape(n, int(lo)), r, want)
		at := b.cut(n)
		for i := range len(at) - 1 {
			l.RandomBits(r[at[i]:at[i+1]], s, step, lo+uint64(at[i]))
		}
		sameWords(t, "RandomBits in parts "+shape(n, int(lo)), r, want)
	}
}

// TestRandomBitsEnd: behind the last number of a step comes the first.
func TestRandomBitsEnd(t *testing.T) { each(t, testRandomBitsEnd) }

func testRandomBitsEnd(t *testing.T, l Level) {
	s := rng.New(3, "end")
	end, begin := make([]uint16, 300), make([]uint16, 200)
	l.RandomBits(end, s, 7, 1<<35-100)
	l.RandomBits(begin, s, 7, 0)
	sameWords(t, "behind the end", end[100:], begin)
}

// TestRandomBitsKnown compares with the known answers of Random123 (kat_vectors,
// philox4x32 10).
func TestRandomBitsKnown(t *testing.T) { each(t, testRandomBitsKnown) }

func testRandomBitsKnown(t *testing.T, l Level) {
	want := []uint16{0xe8d5, 0x6627, 0xc58d, 0xe169, 0xac4c, 0xbc57, 0xdbd8, 0x9b00}
	got := make([]uint16, len(want))
	l.RandomBits(got, rng.Stream{}, 0, 0)
	sameWords(t, "zeros", got, want)
	if l == Portable {
		return
	}
	const m = 0xffffffff
	for _, c := range []struct {
		key  [2]uint32
		ctr  [4]uint32
		want []uint16
	}{
		{
			[2]uint32{m, m},
			[4]uint32{m, m, m, m},
			[]uint16{0x276d, 0x408f, 0x3b0e, 0x41c8, 0xc7c6, 0xa20b, 0x51fd, 0x6d54},
		},
		{
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[]uint16{0xfe09, 0xd16c, 0xcceb, 0x94fd, 0xe420, 0x5001, 0x6ea1, 0x2412},
		},
	} {
		var r [philoxStride]uint16
		p := newPhilox(c.key, c.ctr)
		atPhilox(l, &r[0], len(r), &p)
		sameWords(t, "known answer", r[:8], c.want)
	}
}
