// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"pleach/kernel"
)

// ranking finds order statistics of the keys of a tensor that passes by in chunks: the
// key at a place of the ascending order, exactly, however many are equal, without
// keeping the tensor.
//
// A sample says between which two keys it probably lies. A walk over all chunks keeps
// the keys between them and counts those that are not, so that the answer is known if
// the sample was right and the keys are not too many. If not, a second such walk follows
// the sample that the first took of all chunks. If that fails too, walks that count in
// buckets narrow the range, each by a factor of 2¹⁰ at least, until another walk that
// keeps keys must succeed.
//
// The calls are sampled, then walk and settle in turn until settle says that all is
// known. sampled and walk may run at the same time for different chunks.
type ranking struct {
	n, size int // keys in all, and in a chunk
	room    int // of keys that a statistic may keep
	targets []*statistic
	picked  []int    // chunks to sample, ascending; none if there is room for all keys
	each    int      // keys of the sample in a picked chunk
	sample  []uint32 // those of a picked chunk stand together

	eachWide int // keys of a second sample in every chunk
	wide     []uint32
	widening bool // the walk takes it
}

// Sizes of rankings.
const (
	leastRoom  = 1 << 16 // keys; a tensor of so many is not sampled
	mostRoom   = 1 << 21
	roomPart   = 32 // of the keys of a tensor, between leastRoom and mostRoom
	leastEach  = 1 << 10
	sampleSize = 1 << 16
	leastWide  = 1 << 4
	buckets    = 1 << 11
)

// newRanking asks for the keys at places of the ascending order, from 0, of n.
func newRanking(n, size int, places ...int) *ranking {
	r := &ranking{n: n, size: size, room: min(n, max(leastRoom, min(n/roomPart, mostRoom)))}
	if r.room < n {
		r.pick()
	}
	for _, p := range places {
		r.add(p)
	}
	return r
}

// add asks for one more, before the first walk.
func (r *ranking) add(place int) {
	r.targets = append(r.targets, &statistic{place: place, hi: largestKey})
}

// pick chooses chunks that are spread over the tensor, and so many keys of them that
// those near a place of the sample fit in the room.
func (r *ranking) pick() {
	whole := max(1, r.n/r.size) // the last chunk may be small
	part := float64(r.n) / float64(r.room)
	size := max(sampleSize, int(24*part*part))
	count := min(whole, size/leastEach)
	r.each = min(r.size, (size+count-1)/count)
	r.picked = make([]int, count)
	for i := range r.picked {
		r.picked[i] = i * whole / count
	}
	r.eachWide = min(r.size, max(leastWide, size/Chunks(r.n, r.size)))
}

// memory is an upper bound of the bytes that it holds, for so many statistics.
func (r *ranking) memory(places int) int64 {
	each := int64(unsafe.Sizeof(part{}))*int64(Chunks(r.n, r.size)) + int64(4*r.room) + 8*buckets
	return int64(4*len(r.picked)*r.each) + int64(4*Chunks(r.n, r.size)*r.eachWide) + int64(places)*each
}

// wants says whether a chunk is to be sampled.
func (r *ranking) wants(chunk int) bool {
	_, ok := slices.BinarySearch(r.picked, chunk)
	return ok
}

// sampled takes the sample of a picked chunk of n elements, of which at gives one.
func (r *ranking) sampled(chunk, n int, at func(i int) float32) {
	slot, ok := slices.BinarySearch(r.picked, chunk)
	if !ok {
		return
	}
	draw(r.sample[slot*r.each:][:r.each], chunk, n, at)
}

// draw sets keys to those of a sample of a chunk of n elements: one of each of so many
// parts, anywhere in it, so that no column of a matrix is preferred.
func draw(keys []uint32, chunk, n int, at func(i int) float32) {
	each := len(keys)
	width := n / each
	for k := range keys {
		i := k * width
		if width == 0 {
			i = k * n / each
		} else {
			h := uint64(chunk*each+k+1) * 0x9E3779B97F4A7C15
			i += int(h >> 32 * uint64(width) >> 32)
		}
		keys[k] = key(at(i))
	}
}

// begin prepares the memory of a sample.
func (r *ranking) begin() { r.sample = make([]uint32, len(r.picked)*r.each) }

// settle draws conclusions from the last walk, or from the sample, and says whether
// another walk is needed.
func (r *ranking) settle() (more bool) {
	r.widening = false
	for _, s := range r.targets {
		switch {
		case s.known:
			continue
		case s.parts == nil:
			s.parts = make([]part, Chunks(r.n, r.size))
			s.found = make([]uint32, r.room)
			s.a, s.b = r.bracket(s.place, r.sample, r.spread(s.place))
			r.widening = r.picked != nil
		case s.counting:
			s.narrow(r.room)
		default:
			s.conclude(r.n)
			r.again(s)
		}
		more = more || !s.known
	}
	r.sample = nil
	switch {
	case !more:
		r.wide = nil
	case r.widening:
		r.wide = make([]uint32, Chunks(r.n, r.size)*r.eachWide)
	}
	return more
}

// again chooses the next walk for a statistic that is not known yet.
func (r *ranking) again(s *statistic) {
	if s.known {
		return
	}
	s.failures++
	if s.failures == 1 && r.wide != nil {
		if a, b := r.bracket(s.place, r.wide, 0); a < s.hi && b > s.lo {
			s.collectBetween(a, b)
			return
		}
	}
	s.recount()
}

// walk looks at the keys of a chunk. scratch has room for them.
func (r *ranking) walk(l kernel.Level, chunk int, x []float32, scratch []uint32) {
	if r.widening {
		draw(r.wide[chunk*r.eachWide:][:r.eachWide], chunk, len(x), func(i int) float32 { return x[i] })
	}
	for _, s := range r.targets {
		switch {
		case s.known:
		case s.counting:
			s.count(x)
		default:
			s.collect(l, chunk, x, scratch)
		}
	}
}

// bracket is two keys between which a sample expects the one of a place. spread is the
// standard error of the part of the keys below it, if more than that of a random choice.
func (r *ranking) bracket(place int, sample []uint32, spread float64) (a, b uint32) {
	if len(sample) == 0 {
		return 0, largestKey
	}
	size := float64(len(sample))
	p := float64(place) / float64(r.n)
	margin := 4.5*max(math.Sqrt(p*(1-p)/size), spread) + 8/size
	margin = min(margin, 0.45*float64(r.room)/float64(r.n)) * size
	b = largestKey
	if lo := int(p*size - margin); lo > 0 {
		a, _ = nth(sample, lo)
	}
	if hi := int(p*size + margin + 1); hi < len(sample) {
		b, _ = nth(sample, hi)
	}
	return a, max(b, a+1)
}

// spread is the standard error of the part of the keys that lie below the one at a place
// of the sample, judged by how much the picked chunks differ.
func (r *ranking) spread(place int) float64 {
	count := len(r.picked)
	if count < 2 {
		return 0
	}
	p := float64(place) / float64(r.n)
	t, _ := nth(r.sample, min(int(p*float64(len(r.sample))), len(r.sample)-1))
	var sum, square float64
	for i := range count {
		low := 0
		for _, k := range r.sample[i*r.each:][:r.each] {
			if k < t {
				low++
			}
		}
		f := float64(low) / float64(r.each)
		sum += f
		square += float64(f * f)
	}
	c := float64(count)
	return math.Sqrt(max(0, square-sum*sum/c) / (c * (c - 1)))
}

// statistic is a key to find.
type statistic struct {
	place    int    // in ascending order
	lo, hi   uint32 // it is not outside of them
	failures int    // walks that kept keys, in vain
	known    bool
	key      uint32 // if known
	less     int    // number of smaller ones
	equal    int    // number of those that are the same

	// A walk that keeps keys.
	a, b  uint32
	above atomic.Int64
	used  atomic.Int64 // keys between a and b; more than len(found) if they are too many
	found []uint32
	parts []part // of every chunk

	// A walk that counts.
	counting bool
	shift    int
	mutex    sync.Mutex
	under    int // keys below lo
	counts   []int
}

// part is what a walk saw in a chunk: keys found[at:at+n] between a and b, and how
// many are one of the two.
type part struct {
	at          int
	n           uint32
	least, most uint32
}

func (s *statistic) collect(l kernel.Level, chunk int, x []float32, scratch []uint32) {
	n, above, least, most := l.Collect(scratch[:len(x)], x, s.a, s.b)
	s.above.Add(int64(above))
	end := int(s.used.Add(int64(n)))
	if end <= len(s.found) {
		copy(s.found[end-n:], scratch[:n])
	}
	s.parts[chunk] = part{at: end - n, n: uint32(n), least: uint32(least), most: uint32(most)}
}

// conclude looks at what a walk kept, of n keys.
func (s *statistic) conclude(n int) {
	var least, most int
	for _, p := range s.parts {
		least += int(p.least)
		most += int(p.most)
	}
	inside := int(s.used.Load())
	under := n - int(s.above.Load()) - most - least - inside
	place := s.place - under
	switch {
	case place < 0:
		s.hi = s.a - 1
	case place < least:
		s.answer(s.a, under, least)
	case place < least+inside && inside <= len(s.found):
		key, less := nth(s.found[:inside], place-least)
		equal := 0
		for _, k := range s.found[:inside] {
			if k == key {
				equal++
			}
		}
		s.answer(key, under+least+less, equal)
	case place < least+inside:
		s.lo, s.hi = s.a+1, s.b-1
	case place < least+inside+most:
		s.answer(s.b, under+least+inside, most)
	default:
		s.lo = s.b + 1
	}
}

func (s *statistic) answer(key uint32, less, equal int) {
	s.known, s.key, s.less, s.equal = true, key, less, equal
}

// recount begins a walk that counts.
func (s *statistic) recount() {
	s.counting, s.under = true, 0
	s.shift = max(0, bits.Len32(s.hi-s.lo)-bits.Len(buckets-1))
	s.counts = make([]int, buckets)
}

func (s *statistic) count(x []float32) {
	var counts [buckets]int
	under := 0
	for _, v := range x {
		k := key(v)
		if k < s.lo {
			under++
		} else if k <= s.hi {
			counts[(k-s.lo)>>s.shift]++
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.under += under
	for i, c := range counts {
		s.counts[i] += c
	}
}

// narrow goes on in the bucket of the place: it counts again if there are more keys
// than there is room for, unless they are all the same.
func (s *statistic) narrow(room int) {
	place, i := s.place-s.under, 0
	for ; place >= s.counts[i]; i++ {
		place -= s.counts[i]
	}
	s.lo += uint32(i) << s.shift
	s.hi = min(s.hi, s.lo+1<<s.shift-1)
	if s.counts[i] > room && s.lo < s.hi {
		s.recount()
		return
	}
	s.collectBetween(s.lo, max(s.hi, s.lo+1))
}

// collectBetween begins a walk that keeps keys.
func (s *statistic) collectBetween(a, b uint32) {
	s.counting, s.counts = false, nil
	s.a, s.b = a, b
	s.above.Store(0)
	s.used.Store(0)
}

// cut is where the first so many elements of one key end: all of them in chunks before
// one, and so many in it.
type cut struct{ chunk, count int }

// cut finds the end of the first quota elements that have the key, which is known.
// With that, what the walks kept is forgotten.
func (s *statistic) cut(quota int) cut {
	c := cut{len(s.parts), 0}
	for i, p := range s.parts {
		n := s.same(p)
		if quota < n {
			c = cut{i, quota}
			break
		}
		quota -= n
	}
	s.found, s.parts = nil, nil
	return c
}

// same is the number of elements of a chunk that have the key.
func (s *statistic) same(p part) int {
	switch s.key {
	case s.a:
		return int(p.least)
	case s.b:
		return int(p.most)
	}
	n := 0
	for _, k := range s.found[p.at:][:p.n] {
		if k == s.key {
			n++
		}
	}
	return n
}

// nth is the key at a place of the ascending order of keys, and the number of those
// that are less.
func nth(keys []uint32, place int) (key uint32, less int) {
	lo, hi := slices.Min(keys), slices.Max(keys)
	for {
		shift := max(0, bits.Len32(hi-lo)-bits.Len(buckets-1))
		var counts [buckets]int
		for _, k := range keys {
			if k -= lo; k <= hi-lo {
				counts[k>>shift]++
			}
		}
		i := 0
		for ; place >= counts[i]; i++ {
			place -= counts[i]
			less += counts[i]
		}
		lo += uint32(i) << shift
		hi = min(hi, lo+1<<shift-1)
		if shift == 0 {
			return lo, less
		}
	}
}
