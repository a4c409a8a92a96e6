// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import "math/bits"

// pairTable is a number for each pair of symbols: open addressing with linear
// probing. No pair is ever taken out.
type pairTable struct {
	slots []pairSlot // a power of two, at most three quarters in use
	shift uint
	n     int
}

type pairSlot struct {
	key uint64 // the pair plus one; 0: empty
	val int64
}

// pairOf is left<<32 | right. Symbols are under 2³¹, so that a pair plus one is
// no other number.
func pairOf(left, right int32) uint64 { return uint64(left)<<32 | uint64(right) }

func parts(pair uint64) (left, right int32) { return int32(pair >> 32), int32(uint32(pair)) }

func newPairTable() *pairTable {
	t := &pairTable{}
	t.resize(1 << 10)
	return t
}

func (t *pairTable) home(key uint64) uint64 {
	return (key ^ key>>29) * 0x9e3779b97f4a7c15 >> t.shift
}

// at is the number of a pair, or nil if it has none. It holds until the next new
// pair.
func (t *pairTable) at(pair uint64) *int64 {
	key, mask := pair+1, uint64(len(t.slots)-1)
	for i := t.home(key); ; i = (i + 1) & mask {
		switch s := &t.slots[i]; s.key {
		case key:
			return &s.val
		case 0:
			return nil
		}
	}
}

// put is the number of a pair, which gets 0 if it had none.
func (t *pairTable) put(pair uint64) (val *int64, old bool) {
	if t.n >= len(t.slots)/4*3 {
		t.resize(2 * len(t.slots))
	}
	key, mask := pair+1, uint64(len(t.slots)-1)
	for i := t.home(key); ; i = (i + 1) & mask {
		switch s := &t.slots[i]; s.key {
		case key:
			return &s.val, true
		case 0:
			s.key = key
			t.n++
			return &s.val, false
		}
	}
}

func (t *pairTable) resize(n int) {
	old := t.slots
	t.slots = make([]pairSlot, n)
	t.shift = uint(64 - bits.Len(uint(n-1)))
	mask := uint64(n - 1)
	for _, s := range old {
		if s.key == 0 {
			continue
		}
		i := t.home(s.key)
		for t.slots[i].key != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// candidate is a pair that may be merged.
type candidate struct {
	count int64 // when it was put into the queue
	pair  uint64
	where uint32 // of the list of its places; lists made later lie behind
}

// pairQueue is a heap of candidates: the most frequent first, of equals the one
// that less puts in front, and of equal pairs the older one.
type pairQueue struct {
	heap []candidate
	less func(p, q uint64) bool
}

func (q *pairQueue) before(c, d *candidate) bool {
	if c.count != d.count {
		return c.count > d.count
	}
	if c.pair != d.pair {
		return q.less(c.pair, d.pair)
	}
	return c.where < d.where
}

func (q *pairQueue) push(c candidate) {
	q.heap = append(q.heap, c)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		p := (i - 1) / 2
		if !q.before(&c, &h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = c
}

func (q *pairQueue) pop() candidate {
	top, n := q.heap[0], len(q.heap)-1
	last := q.heap[n]
	q.heap = q.heap[:n]
	if n > 0 {
		q.down(0, last)
	}
	return top
}

// down puts c in the place of the candidate at i, and then where it belongs.
func (q *pairQueue) down(i int, c candidate) {
	h := q.heap
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && q.before(&h[k+1], &h[k]) {
			k++
		}
		if !q.before(&h[k], &c) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = c
}

// lists holds lists of places in blocks, so that nothing moves when it grows.
// The last place of a list is marked.
type lists struct {
	blocks [][]uint32
	next   uint32
}

const (
	listBits = 18 // a mebibyte a block
	lastMark = 1 << 31
)

// make reserves a list of n places, at least one.
func (l *lists) make(n uint32) uint32 {
	at := l.next
	l.next += n
	for int(l.next-1)>>listBits >= len(l.blocks) {
		l.blocks = append(l.blocks, make([]uint32, 1<<listBits))
	}
	*l.at(l.next - 1) = lastMark
	return at
}

func (l *lists) at(i uint32) *uint32 { return &l.blocks[i>>listBits][i&(1<<listBits-1)] }

// set writes a place, and keeps the mark.
func (l *lists) set(i, place uint32) { *l.at(i) |= place }
