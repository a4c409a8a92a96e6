// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"iter"
	"sync"
)

// A wordSplitter hands the words of a text to a table. Each thread has its own.
type wordSplitter interface {
	count(t *wordTable, text []byte)

	// cut is an offset in text, over 0, at which it can be divided without a
	// change to its words, as far back as possible; 0: there is none.
	cut(text []byte) int
}

// Pruning is what [Train] left out to stay within its memory.
type Pruning struct {
	Words       int64 // that were dropped; one that came back counts again
	Occurrences int64 // of these words
	Low         int64 // no count of a word that was kept is too low by more
}

const (
	// batchSize is how much text goes to a counting thread at a time.
	batchSize = 1 << 20

	// What counting and learning need for a word and for each of its bytes, with
	// garbage. Of random words, which share nothing, a process took 97 MB at 64 MiB
	// and 217 MB at 256 MiB.
	costWord, costByte = 96, 40

	// mostBytes bounds the bytes of different words: places are 31 bits.
	mostBytes = 1 << 30
)

// counting is the state of counting words. Whether words are dropped is decided
// at places in the text that do not depend on the number of threads: behind each
// round of so many bytes.
type counting struct {
	tables []*wordTable // one of each thread
	round  int          // bytes between two decisions
	limit  int64        // of the cost of all words
	pruned Pruning
}

// countWords is how often each word occurs.
func countWords(docs iter.Seq[[]byte], threads int, memory int64, splitter func() wordSplitter) (*wordTable, Pruning) {
	c := counting{
		round: int(min(max(memory/16, batchSize), 64<<20)),
		limit: min(memory-memory/4, mostBytes*costByte),
	}
	for i := range threads {
		c.tables = append(c.tables, newWordTable(i))
	}
	put, wait := c.direct(splitter())
	stop := func() {}
	if threads > 1 {
		put, wait, stop = c.start(splitter)
	}
	c.feed(docs, splitter(), put, wait)
	stop()
	c.settle()
	return c.merged(), c.pruned
}

// feed takes documents whole, or a large one in parts, so that it keeps all
// threads busy and is not held twice.
func (c *counting) feed(docs iter.Seq[[]byte], s wordSplitter, put func([]byte), wait func()) {
	left := c.round
	for doc := range docs {
		for len(doc) > 0 {
			n := partOf(s, doc)
			put(doc[:n])
			doc = doc[n:]
			if left -= n; left <= 0 {
				wait()
				c.settle()
				left = c.round
			}
		}
	}
	wait()
}

// partOf is the length of the start of a document that is counted by itself.
func partOf(s wordSplitter, doc []byte) int {
	for n := batchSize; n < len(doc); n *= 2 {
		if k := s.cut(doc[:n]); k > 0 {
			return k
		}
	}
	return len(doc)
}

// direct counts in the thread that reads.
func (c *counting) direct(s wordSplitter) (put func([]byte), wait func()) {
	return func(text []byte) { s.count(c.tables[0], text) }, func() {}
}

// batch is copies of texts that one thread counts.
type batch struct {
	text []byte
	ends []int // of each text
}

// start starts the threads.
func (c *counting) start(splitter func() wordSplitter) (put func([]byte), wait, stop func()) {
	work := make(chan *batch)
	free := make(chan *batch, len(c.tables)+1)
	var busy, threads sync.WaitGroup // batches under way, and threads
	for at := range c.tables {
		free <- &batch{}
		s := splitter()
		threads.Go(func() {
			for b := range work {
				start := 0
				for _, end := range b.ends {
					s.count(c.tables[at], b.text[start:end])
					start = end
				}
				free <- b
				busy.Done()
			}
		})
	}
	now := &batch{}
	send := func() {
		busy.Add(1)
		work <- now
		now = <-free
		now.text, now.ends = now.text[:0], now.ends[:0]
	}
	put = func(text []byte) {
		now.text = append(now.text, text...)
		now.ends = append(now.ends, len(now.text))
		if len(now.text) >= batchSize {
			send()
		}
	}
	wait = func() {
		send()
		busy.Wait()
	}
	stop = func() {
		close(work)
		threads.Wait()
	}
	return put, wait, stop
}

func cost(t *wordTable) int64 { return costWord*int64(t.words) + costByte*t.size }

// settle drops rare words if all words together cost too much. The tables of
// the threads cost at least as much as one table of all does, so that what
// happens does not depend on how words fell to threads.
func (c *counting) settle() {
	sum := int64(0)
	for _, t := range c.tables {
		sum += cost(t)
	}
	if sum <= c.limit {
		return
	}
	all := c.merged()
	for i := range c.tables[1:] {
		c.tables[i+1] = newWordTable(i + 1)
	}
	if cost(all) > c.limit {
		all = c.prune(all)
	}
	c.tables[0] = all
}

// merged puts the counts of all threads together.
func (c *counting) merged() *wordTable {
	all := c.tables[0]
	for _, t := range c.tables[1:] {
		all.addAll(t)
	}
	return all
}

// prune keeps the words that occur more than n times, for the smallest n that
// halves what they may cost. A word that comes back later has been counted low
// by n at most: lossy counting.
//
// Manku & Motwani, "Approximate Frequency Counts over Data Streams", 2002,
// section 4.2.
func (c *counting) prune(t *wordTable) *wordTable {
	costs := map[int64]int64{} // by count
	t.each(func(w []byte, n int64) { costs[n] += costWord + costByte*int64(len(w)) })
	left, n := cost(t), int64(0)
	for left > c.limit/2 {
		n++
		left -= costs[n]
	}
	c.pruned.Low += n
	t.each(func(w []byte, count int64) {
		if count <= n {
			c.pruned.Words++
			c.pruned.Occurrences += count
		}
	})
	return t.above(n)
}
