// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"math/bits"
	"slices"
)

// noPair stands for "these two symbols do not merge": a rank after all ranks.
const noPair = ^uint64(0)

// mergeTable says which pairs of symbols merge: (left, right) → (rank, result).
// It is a hash table with open addressing, since most of the time of encoding
// goes into asking it.
type mergeTable struct {
	shift uint
	slots []mergeSlot
	size  int
}

type mergeSlot struct {
	key   uint64 // left<<32 | right, plus one, so that 0 is an empty slot
	value uint64 // rank<<32 | result
}

func newMergeTable(n int) *mergeTable {
	log := bits.Len(uint(2*n + 2)) // at most half full
	return &mergeTable{shift: uint(64 - log), slots: make([]mergeSlot, 1<<log)}
}

// add stores a pair; of two entries for one pair the later one stays, as in
// the reference.
func (m *mergeTable) add(left, right, rank, result int32) {
	key := pairKey(left, right)
	i := m.find(key)
	if m.slots[i].key == 0 {
		m.size++
	}
	m.slots[i] = mergeSlot{key, uint64(uint32(rank))<<32 | uint64(uint32(result))}
}

func pairKey(left, right int32) uint64 {
	return uint64(uint32(left))<<32 | uint64(uint32(right)) + 1
}

// find is the slot that holds the key, or the empty one where it belongs.
func (m *mergeTable) find(key uint64) int {
	mask := len(m.slots) - 1
	i := int(key * 0x9e3779b97f4a7c15 >> m.shift)
	for m.slots[i].key != key && m.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	return i
}

// get is rank<<32 | result of a pair, or [noPair].
func (m *mergeTable) get(left, right int32) uint64 {
	slot := &m.slots[m.find(pairKey(left, right))]
	if slot.key == 0 {
		return noPair
	}
	return slot.value
}

// short is the longest word for which looking at every pair after each merge
// is faster than a queue.
const short = 32

// merger is the working memory of merging one word. Its slices grow to the
// longest word seen and are used again.
type merger struct {
	sym  []int32 // the symbols of the word
	at   []int32 // where each begins, in bytes, and where the last one ends
	rank []uint64
	prev []int32
	next []int32
	heap []uint64 // rank<<32 | position: the order in which merges happen

	pairs [short]pair // of a short word
}

// pair is a symbol of a short word, and its merge with the next one.
type pair struct {
	merge   uint64 // as in a mergeTable
	sym, at int32
}

// reset makes room for a word of n bytes, which has no more symbols than that.
func (w *merger) reset(n int) {
	w.sym, w.at = slices.Grow(w.sym[:0], n+1), slices.Grow(w.at[:0], n+1)
}

func (w *merger) push(sym int32, at int) {
	w.sym = append(w.sym, sym)
	w.at = append(w.at, int32(at))
}

// rankShort looks up the pairs of a short word.
func (w *merger) rankShort(m *mergeTable) {
	for i := range len(w.sym) - 1 {
		w.pairs[i].merge = m.get(w.sym[i], w.sym[i+1])
	}
}

// mergeShort joins, again and again, the pair with the lowest rank, the
// leftmost among equals, until no pair is in the table. The merges of the pairs
// are known.
//
// Sennrich, Haddow & Birch, "Neural Machine Translation of Rare Words with
// Subword Units", 2016, arXiv:1508.07909, section 3.2; the order of ties is
// that of Hugging Face tokenizers and of SentencePiece.
func (w *merger) mergeShort(m *mergeTable) {
	n := len(w.sym)
	if n < 2 {
		return
	}
	p := w.pairs[:n]
	for i := range p {
		p[i].sym, p[i].at = w.sym[i], w.at[i]
	}
	p[n-1].merge = noPair
	for {
		best, k := noPair, 0
		for i := range p {
			if r := p[i].merge; r>>32 < best>>32 {
				best, k = r, i
			}
		}
		if best == noPair {
			break
		}
		p[k].sym = int32(uint32(best))
		for i := k + 1; i < len(p)-1; i++ { // a call of copy costs more
			p[i] = p[i+1]
		}
		p = p[:len(p)-1]
		if k > 0 {
			p[k-1].merge = m.get(p[k-1].sym, p[k].sym)
		}
		p[k].merge = noPair
		if k+1 < len(p) {
			p[k].merge = m.get(p[k].sym, p[k+1].sym)
		}
	}
	end := w.at[n]
	w.sym, w.at = w.sym[:len(p)], w.at[:len(p)+1]
	for i := range p {
		w.sym[i], w.at[i] = p[i].sym, p[i].at
	}
	w.at[len(p)] = end
}

// mergeLong does the same in O(n log n) with a queue over a linked list. An
// entry of the queue is out of date if the pair at its position has another
// rank by now, or if the position is gone.
func (w *merger) mergeLong(m *mergeTable) {
	n := len(w.sym)
	w.links(m, n)
	for len(w.heap) > 0 {
		top := w.pop()
		i := int32(uint32(top))
		if w.rank[i]>>32 != top>>32 {
			continue
		}
		j := w.next[i]
		w.sym[i] = int32(uint32(w.rank[i]))
		w.rank[j] = noPair
		w.sym[j] = -1
		w.next[i] = w.next[j]
		if k := w.next[i]; k < int32(n) {
			w.prev[k] = i
		}
		w.rerank(m, i, n)
		if p := w.prev[i]; p >= 0 {
			w.rerank(m, p, n)
		}
	}
	k := 0
	for i := int32(0); i < int32(n); i = w.next[i] {
		w.sym[k], w.at[k] = w.sym[i], w.at[i]
		k++
	}
	w.at[k] = w.at[n]
	w.sym, w.at = w.sym[:k], w.at[:k+1]
}

// links builds the list and the queue of all pairs.
func (w *merger) links(m *mergeTable, n int) {
	w.rank = slices.Grow(w.rank[:0], n)
	w.prev, w.next = slices.Grow(w.prev[:0], n), slices.Grow(w.next[:0], n)
	w.heap = slices.Grow(w.heap[:0], n)
	for i := range n {
		r := noPair
		if i+1 < n {
			r = m.get(w.sym[i], w.sym[i+1])
		}
		w.rank = append(w.rank, r)
		w.prev = append(w.prev, int32(i-1))
		w.next = append(w.next, int32(i+1))
		if r != noPair {
			w.heap = append(w.heap, r&^0xffffffff|uint64(i))
		}
	}
	for i := len(w.heap)/2 - 1; i >= 0; i-- {
		w.down(i)
	}
}

// rerank looks up the pair at position i after a neighbour has changed.
func (w *merger) rerank(m *mergeTable, i int32, n int) {
	r := noPair
	if j := w.next[i]; j < int32(n) {
		r = m.get(w.sym[i], w.sym[j])
	}
	w.rank[i] = r
	if r != noPair {
		w.heap = append(w.heap, r&^0xffffffff|uint64(i))
		w.up(len(w.heap) - 1)
	}
}

func (w *merger) pop() uint64 {
	top := w.heap[0]
	last := len(w.heap) - 1
	w.heap[0] = w.heap[last]
	w.heap = w.heap[:last]
	if last > 0 {
		w.down(0)
	}
	return top
}

func (w *merger) up(i int) {
	v := w.heap[i]
	for i > 0 {
		p := (i - 1) / 4
		if w.heap[p] <= v {
			break
		}
		w.heap[i] = w.heap[p]
		i = p
	}
	w.heap[i] = v
}

func (w *merger) down(i int) {
	h, v := w.heap, w.heap[i]
	for {
		c := 4*i + 1
		if c >= len(h) {
			break
		}
		least := c
		for k := c + 1; k < min(c+4, len(h)); k++ {
			if h[k] < h[least] {
				least = k
			}
		}
		if v <= h[least] {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = v
}
