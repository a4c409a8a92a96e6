// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"slices"
	"sync"
)

// A slot is one byte or character of a word. A symbol covers as many slots as it
// is long and stands in the first and the last of them, so that both of its
// neighbours are one step away; the slots between are dead.
const (
	noWord = -1 // before, between and behind words
	wall   = -2 // inside of a word, a character that joins no other
	dead   = -3
)

// pairRules is what the families of tokenizers differ in.
type pairRules interface {
	// allowed reports whether two symbols may be joined.
	allowed(left, right int32) bool
	// less orders pairs that occur equally often.
	less(p, q uint64) bool
	// join is the symbol that a pair becomes. again says that it was made of
	// another pair before; a negative one is not made.
	join(left, right int32) (sym int32, again bool)
}

// learner finds which pairs to merge. All words lie one behind the other in
// slots, with noWord before, between and behind them. Counts of pairs are kept
// up to date at every merge; the queue is looked at again only where it is stale.
type learner struct {
	rules  pairRules
	slots  []int32
	words  []uint32 // borders in front of each line of slots
	counts []int64  // of each word
	size   []int32  // of each symbol, in slots

	pairs pairTable
	queue pairQueue
	lists lists

	// twice is the pairs that came up again, because a symbol was made in two
	// ways, and may have two lists of places.
	twice map[uint64]bool

	left, right neighbours // of the pair that is being merged
	places      []uint32
}

// neighbours gathers what happens on one side of a pair that is being merged: by
// symbol on that side, and by place.
type neighbours struct {
	index  []int32 // by symbol, the neighbour plus one, or 0
	all    []neighbour
	events []event
}

type neighbour struct {
	sym   int32
	n     int64  // how often
	where uint32 // the places of the new pair; first their number
}

type event struct{ at, place uint32 }

// see notes that a symbol stands beside the pair in a word that occurs n times,
// and that the new pair begins at a place.
func (s *neighbours) see(sym int32, n int64, place uint32) {
	k := s.index[sym]
	if k == 0 {
		s.all = append(s.all, neighbour{sym: sym})
		k = int32(len(s.all))
		s.index[sym] = k
	}
	b := &s.all[k-1]
	b.n += n
	b.where++
	s.events = append(s.events, event{uint32(k - 1), place})
}

func (s *neighbours) clear() {
	for i := range s.all {
		s.index[s.all[i].sym] = 0
	}
	s.all, s.events = s.all[:0], s.events[:0]
}

// newLearner counts the pairs of neighbouring symbols. size is the slots of each
// symbol so far.
func newLearner(rules pairRules, slots []int32, counts []int64, size []int32, threads int) *learner {
	l := &learner{rules: rules, slots: slots, counts: counts, size: size, pairs: *newPairTable()}
	l.queue.less = rules.less
	l.left.index = make([]int32, len(size))
	l.right.index = make([]int32, len(size))
	l.number()
	l.first(threads)
	return l
}

// line is how many slots a cache line holds.
const line = 16

// number counts the borders in front of each line.
func (l *learner) number() {
	l.words = make([]uint32, 0, len(l.slots)/line+1)
	n := uint32(0)
	for i, sym := range l.slots {
		if i%line == 0 {
			l.words = append(l.words, n)
		}
		if sym == noWord {
			n++
		}
	}
}

// word is the number of the word that a slot belongs to.
func (l *learner) word(p uint32) uint32 {
	n := l.words[p/line]
	for _, sym := range l.slots[p&^(line-1) : p] {
		if sym == noWord {
			n++
		}
	}
	return n - 1
}

// share is the slots of one thread, between two borders, and the pairs in it.
type share struct {
	lo, hi int
	index  *pairTable
	pairs  []firstPair
}

type firstPair struct {
	pair uint64
	n    int64
	many uint32 // places
	next uint32 // in the list
}

// first fills the queue with the pairs of the words.
func (l *learner) first(threads int) {
	shares := l.deal(threads)
	each := func(f func(*share)) {
		var wg sync.WaitGroup
		for i := range shares {
			wg.Go(func() { f(&shares[i]) })
		}
		wg.Wait()
	}
	each(l.countPairs)
	l.list(shares)
	each(l.placePairs)
	for i := len(l.queue.heap)/2 - 1; i >= 0; i-- {
		l.queue.down(i, l.queue.heap[i])
	}
}

// list makes a candidate of each pair, with room for its places, and tells each
// thread where its part of the places begins.
func (l *learner) list(shares []share) {
	all := share{index: newPairTable()}
	for i := range shares {
		for _, p := range shares[i].pairs {
			q := all.pair(p.pair)
			q.n += p.n
			q.many += p.many
		}
	}
	for i := range all.pairs {
		p := &all.pairs[i]
		if !l.rules.allowed(parts(p.pair)) {
			continue
		}
		p.next = l.lists.make(p.many)
		val, _ := l.pairs.put(p.pair)
		*val = p.n
		l.queue.heap = append(l.queue.heap, candidate{p.n, p.pair, p.next})
	}
	for i := range shares {
		for k := range shares[i].pairs {
			p := &shares[i].pairs[k]
			q := all.pair(p.pair)
			p.next = q.next
			q.next += p.many
		}
	}
}

// deal deals the slots to threads.
func (l *learner) deal(threads int) []share {
	var shares []share
	lo := 0
	for i := range threads {
		hi := max(lo, len(l.slots)*(i+1)/threads)
		for hi < len(l.slots) && l.slots[hi] != noWord {
			hi++
		}
		if hi > lo {
			shares = append(shares, share{lo: lo, hi: hi, index: newPairTable()})
		}
		lo = hi
	}
	return shares
}

// pair is the numbers of a pair.
func (s *share) pair(pair uint64) *firstPair {
	val, old := s.index.put(pair)
	if !old {
		*val = int64(len(s.pairs))
		s.pairs = append(s.pairs, firstPair{pair: pair})
	}
	return &s.pairs[*val]
}

func (l *learner) countPairs(s *share) {
	w := l.word(uint32(s.lo + 1))
	for i := s.lo + 1; i < s.hi; i++ {
		switch a, b := l.slots[i-1], l.slots[i]; {
		case b == noWord:
			w++
		case a >= 0 && b >= 0:
			p := s.pair(pairOf(a, b))
			p.n += l.counts[w]
			p.many++
		}
	}
}

// placePairs writes the places of the pairs into their lists.
func (l *learner) placePairs(s *share) {
	for i := s.lo + 1; i < s.hi; i++ {
		a, b := l.slots[i-1], l.slots[i]
		if a < 0 || b < 0 {
			continue
		}
		if p := s.pair(pairOf(a, b)); l.pairs.at(p.pair) != nil {
			l.lists.set(p.next, uint32(i-1))
			p.next++
		}
	}
}

// next takes the pair to merge from the queue, if one occurs often enough.
func (l *learner) next(least int64) (candidate, bool) {
	for len(l.queue.heap) > 0 {
		c := l.queue.heap[0]
		if n := *l.pairs.at(c.pair); n != c.count {
			c.count = n
			l.queue.down(0, c)
			continue
		}
		return l.queue.pop(), c.count >= least
	}
	return candidate{}, false
}

// merge puts a symbol in the place of each pair, from the left of each word, and
// counts the pairs that go and come.
func (l *learner) merge(c candidate, sym int32, again bool) {
	left, right := parts(c.pair)
	if int(sym) == len(l.size) {
		l.size = append(l.size, l.size[left]+l.size[right])
		l.left.index = append(l.left.index, 0)
		l.right.index = append(l.right.index, 0)
	}
	l.find(c, left, right)
	for _, p := range l.places {
		l.mergeAt(p, left, right, sym)
	}
	l.come(sym)
	l.gone(left, right)
	l.enqueue(sym, again)
	l.left.clear()
	l.right.clear()
}

// find gathers the places where the pair may still stand: those of its list, or,
// if it has more than one list, all in the words of its list, as the reference
// does.
func (l *learner) find(c candidate, left, right int32) {
	l.places = l.places[:0]
	done := uint32(0) // words before it were looked through
	for i := c.where; ; i++ {
		p := *l.lists.at(i)
		if place := p &^ lastMark; !l.twice[c.pair] {
			l.places = append(l.places, place)
		} else if place >= done {
			done = l.findIn(place, left, right)
		}
		if p&lastMark != 0 {
			return
		}
	}
}

// findIn gathers the places in the word that a slot belongs to, and returns its
// end.
func (l *learner) findIn(place uint32, left, right int32) uint32 {
	for l.slots[place-1] != noWord {
		place--
	}
	for ; l.slots[place] != noWord; place++ {
		if l.stands(place, left, right) {
			l.places = append(l.places, place)
		}
	}
	return place
}

// stands reports whether a pair is at a place. The left symbol is as long as it
// was when the place was noted, so that it cannot be the end of a longer one.
func (l *learner) stands(place uint32, left, right int32) bool {
	return l.slots[place] == left && l.slots[place+uint32(l.size[left])] == right
}

func (l *learner) mergeAt(p uint32, left, right, sym int32) {
	if !l.stands(p, left, right) {
		return
	}
	q := p + uint32(l.size[left])
	end := q + uint32(l.size[right])
	n := l.counts[l.word(p)]
	if a := l.slots[p-1]; a >= 0 {
		l.left.see(a, n, p-uint32(l.size[a]))
	}
	if b := l.slots[end]; b >= 0 {
		l.right.see(b, n, p)
	}
	l.slots[q-1], l.slots[q] = dead, dead
	l.slots[p], l.slots[end-1] = sym, sym
}

// come counts the pairs that the new symbol makes with its neighbours.
func (l *learner) come(sym int32) {
	for _, b := range l.left.all {
		if l.rules.allowed(b.sym, sym) {
			val, _ := l.pairs.put(pairOf(b.sym, sym))
			*val += b.n
		}
	}
	for _, b := range l.right.all {
		if l.rules.allowed(sym, b.sym) {
			val, _ := l.pairs.put(pairOf(sym, b.sym))
			*val += b.n
		}
	}
}

// gone takes off the pairs that the two symbols made with their neighbours.
func (l *learner) gone(left, right int32) {
	for _, b := range l.left.all {
		if val := l.pairs.at(pairOf(b.sym, left)); val != nil {
			*val -= b.n
		}
	}
	for _, b := range l.right.all {
		if val := l.pairs.at(pairOf(right, b.sym)); val != nil {
			*val -= b.n
		}
	}
}

// enqueue makes candidates of the pairs that came.
func (l *learner) enqueue(sym int32, again bool) {
	if again {
		l.joinEvents(sym)
	}
	l.push(&l.left, func(s int32) uint64 { return pairOf(s, sym) }, again)
	l.push(&l.right, func(s int32) uint64 { return pairOf(sym, s) }, again)
}

// push makes candidates of the pairs on one side. Their places come in the order
// of the words, and in a word from the left.
func (l *learner) push(s *neighbours, pair func(int32) uint64, again bool) {
	for i := range s.all {
		b := &s.all[i]
		p := pair(b.sym)
		val := l.pairs.at(p)
		if b.where == 0 || val == nil || *val <= 0 {
			b.n = -1 // no list
			continue
		}
		if again {
			l.note(p)
		}
		b.n, b.where = 0, l.lists.make(b.where)
		l.queue.push(candidate{*val, p, b.where})
	}
	for _, e := range s.events {
		if b := &s.all[e.at]; b.n >= 0 {
			l.lists.set(b.where, e.place)
			b.where++
		}
	}
}

func (l *learner) note(pair uint64) {
	if l.twice == nil {
		l.twice = map[uint64]bool{}
	}
	l.twice[pair] = true
}

// joinEvents makes one list of the places where a symbol that was made before
// comes to stand beside itself: they are seen from both sides.
func (l *learner) joinEvents(sym int32) {
	i, k := l.left.index[sym], l.right.index[sym]
	if i == 0 || k == 0 {
		return
	}
	for _, e := range l.right.events {
		if e.at == uint32(k-1) {
			l.left.events = append(l.left.events, event{uint32(i - 1), e.place})
			l.left.all[i-1].where++
		}
	}
	l.right.all[k-1].where = 0
	slices.SortStableFunc(l.left.events, func(a, b event) int { return int(a.place) - int(b.place) })
}
