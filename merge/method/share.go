// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"pleach/internal/rng"
	"pleach/kernel"
)

// share is one model's part in task arithmetic: how its difference is thinned.
type share struct {
	input  int
	weight float32

	// One of the four, or none if all elements stay.
	none   bool    // none of them stays
	window *window // of ties and breadcrumbs
	chance *chance // of dare
	pruner *pruner // of della

	stream  rng.Stream // of chance and pruner
	rescale bool
	factor  float32 // of rescaling

	mask []uint64 // for all chunks, if kept, each beginning with a word of its own
	each int      // its words in a chunk
	sums []sums   // of all chunks, to rescale
}

// chance is what dare keeps of random numbers k·2⁻²⁴: those below.
type chance struct{ below uint32 }

// sums are those of |Δ| before and after thinning.
type sums struct{ all, kept float64 }

// choose finds what stays, or what is wrong with the parameters.
func (s *share) choose(p *Problem, t taskRule, size int) error {
	in, n := &p.Inputs[s.input], p.Len()
	d := in.Params.orElse("density", 1)
	if t.thin == byNone || d >= 1 || n == 0 {
		return nil
	}
	wrong := func(what string, got float64, want string) error {
		return p.complain(t.name, "%s of %s: got %v, want %s", what, in.Model, got, want)
	}
	switch t.thin {
	case byMagnitude:
		keep := int(d * float64(n))
		if !(d > 0) || keep == 0 {
			return wrong("density", d, fmt.Sprintf("one that keeps at least 1 of %d elements", n))
		}
		s.window = newWindow(n, size, n-keep, 0)
	case byMiddle:
		gamma := in.Params.orElse("gamma", 0.01)
		if !(d >= 0) {
			return wrong("density", d, "0 or more")
		}
		if !(gamma >= 0) {
			return wrong("gamma", gamma, "0 or more")
		}
		keep := int(d * float64(n))
		top := min(int(min(gamma, 1)*float64(n)), n-keep)
		if s.none = keep == 0; !s.none {
			s.window = newWindow(n, size, n-keep-top, top)
		}
	case byChance:
		if !(d >= 0) {
			return wrong("density", d, "0 or more")
		}
		s.chance = &chance{belowChance(d)}
	case byRank:
		if s.none = d <= 0; s.none {
			return nil
		}
		e := in.Params.orElse("epsilon", 0.15)
		if !(d-e > 0 && d+e < 1) {
			return wrong("epsilon", e, fmt.Sprintf("density %v ± epsilon between 0 and 1", d))
		}
		s.pruner = newPruner(p.Shape, d, e)
	}
	s.stream = streamOf(p, in)
	return nil
}

// streamOf is the random numbers of an input: word e is for element e.
func streamOf(p *Problem, in *Input) rng.Stream {
	h := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%d", p.Seed, p.Name, in.Number))
	return rng.Keyed([2]uint32{binary.LittleEndian.Uint32(h[:]), binary.LittleEndian.Uint32(h[4:])})
}

// thins says whether some elements stay and others do not.
func (s *share) thins() bool { return s.window != nil || s.chance != nil || s.pruner != nil }

// measured says whether there is something to find out in a pass before the last.
func (s *share) measured() bool { return s.rescale || s.pruner != nil }

// allocate makes room for what a pass finds out, of n elements in chunks of a size.
func (s *share) allocate(n, size int) {
	chunks := Chunks(n, size)
	if s.pruner != nil || s.chance != nil && s.rescale {
		s.each = (size + 63) / 64
		s.mask = make([]uint64, chunks*s.each)
	}
	if s.rescale {
		s.sums = make([]sums, chunks)
	}
}

// memory is an upper bound of the bytes that it holds.
func (s *share) memory() int64 {
	n := int64(8*len(s.mask) + 16*len(s.sums))
	if s.window != nil && s.window.rank != nil {
		n += s.window.rank.memory(len(s.window.rank.targets))
	}
	if s.pruner != nil {
		n += s.pruner.memory()
	}
	return n
}

// bits is the mask of a chunk, from element lo on, which is a multiple of 64.
func (s *share) bits(chunk, lo int) []uint64 { return s.mask[chunk*s.each:][:s.each][lo/64:] }

// measure makes the mask and the sums of a chunk, whose difference is d. at is single
// elements of d before anything is set to 0.
func (s *share) measure(l kernel.Level, c *Chunk, d, scratch []float32, at func(i int) float32) {
	switch {
	case s.pruner != nil:
		s.pruner.keep(l, s.bits(c.Index, 0), d, s.stream, c.Lo, scratch)
	case s.chance != nil:
		l.RandomBelow(s.bits(c.Index, 0), s.stream, uint64(c.Lo), len(d), s.chance.below)
	}
	if !s.rescale {
		return
	}
	var t sums
	if s.window == nil {
		t.all, t.kept = l.SumAbs64Bits(d, s.bits(c.Index, 0))
	} else {
		t.all = l.SumAbs64(d)
		s.window.view(c.Index, len(d), at).keep(l, d, 0)
		t.kept = l.SumAbs64(d)
	}
	s.sums[c.Index] = t
}

// keep sets to 0 what does not stay of d, which begins with element lo of the chunk.
func (s *share) keep(l kernel.Level, d []float32, c *Chunk, lo int, v view) {
	switch {
	case s.window != nil:
		v.keep(l, d, lo)
	case s.mask != nil:
		l.KeepBits(d, d, s.bits(c.Index, lo))
	case s.chance != nil:
		var mask [block / 64]uint64
		l.RandomBelow(mask[:], s.stream, uint64(c.Lo+lo), len(d), s.chance.below)
		l.KeepBits(d, d, mask[:])
	}
}

// finish computes the factor of rescaling from the sums of all chunks.
func (s *share) finish() {
	var t sums
	for _, x := range s.sums {
		t.all += x.all
		t.kept += x.kept
	}
	if t.all >= 1e-7 && t.kept >= 1e-7 {
		s.factor = float32(t.all / t.kept)
	}
}
