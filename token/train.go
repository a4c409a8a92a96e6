// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"iter"
	"slices"
	"sync"
	"unicode/utf8"

	"pleach/internal/fault"
)

// TrainOptions says what [Train] makes.
type TrainOptions struct {
	// Size is the number of tokens: special tokens, 256 bytes, and merges. A
	// corpus with few different words can end up with less.
	Size int

	// Specials are cut out of a text before anything else and never come out of
	// ordinary bytes. They get the ids from 0 on; none means "<|endoftext|>".
	Specials []string

	// MinFrequency is how often a pair must occur to become a token; 0 counts
	// as 1.
	MinFrequency int

	// Progress, if set, is called now and then with the tokens made so far.
	Progress func(done, total int)

	// Threads count words at the same time; 0 counts as 1. The result does not
	// depend on them.
	Threads int
}

// endOfText is the special token of a tokenizer for which none was named.
const endOfText = "<|endoftext|>"

// Train learns byte-level BPE from documents: it joins the most frequent pair
// of neighbouring tokens, of equals the one with the lowest ids, until there
// are enough tokens. Words are split by the pattern of GPT-2, and no token
// reaches over a border between words. Documents need not be UTF-8, and a
// special token in them counts as text.
//
// The tokens are those that the BpeTrainer of Hugging Face tokenizers makes of
// the same documents, with the same ids. A document may be reused by docs as
// soon as it asks for the next one.
//
// Sennrich, Haddow & Birch, 2016, arXiv:1508.07909, algorithm 1.
func Train(docs iter.Seq[[]byte], opt TrainOptions) (*Tokenizer, error) {
	if len(opt.Specials) == 0 {
		opt.Specials = []string{endOfText}
	}
	if err := opt.check(); err != nil {
		return nil, err
	}
	words, counts := sortedWords(countWords(docs, max(opt.Threads, 1)))
	if len(words) == 0 {
		return nil, fault.Dataf("token: training: the documents hold no text")
	}
	tr := newTrainer(opt.Specials, words, counts)
	tr.run(opt)
	file := tr.json(opt.Specials)
	t, err := parse(file)
	if err != nil {
		return nil, fault.Dataf("token: training: %w", err)
	}
	bos, eos := sequenceNames(opt.Specials)
	t.bos, t.eos = t.lookup[bos], t.lookup[eos]
	t.files = map[string][]byte{nameJSON: file, nameConfig: configJSON(bos, eos)}
	return t, nil
}

func (o *TrainOptions) check() error {
	seen := map[string]bool{}
	for _, s := range o.Specials {
		if seen[s] || s == "" || !utf8.ValidString(s) {
			return fault.Configf("token: training: special token %q: want UTF-8 text, not empty, each once", s)
		}
		seen[s] = true
	}
	if least := 256 + len(o.Specials); o.Size < least || o.Size >= maxID {
		return fault.Configf("token: training: size: got %d tokens, want %d (the bytes and the special tokens) to %d",
			o.Size, least, maxID-1)
	}
	return nil
}

// batchSize is how much text goes to a counting thread at a time.
const batchSize = 1 << 20

// countWords is how often each word occurs.
func countWords(docs iter.Seq[[]byte], threads int) map[string]int64 {
	if threads == 1 {
		c := wordCounter{index: map[string]int{}}
		for doc := range docs {
			c.add(doc)
		}
		return c.total()
	}
	batches := make(chan [][]byte)
	counters := make([]wordCounter, threads)
	var wg sync.WaitGroup
	for i := range counters {
		counters[i].index = map[string]int{}
		wg.Go(func() {
			for batch := range batches {
				for _, doc := range batch {
					counters[i].add(doc)
				}
			}
		})
	}
	var batch [][]byte
	size := 0
	for doc := range docs {
		batch = append(batch, slices.Clone(doc))
		if size += len(doc); size >= batchSize {
			batches <- batch
			batch, size = nil, 0
		}
	}
	batches <- batch
	close(batches)
	wg.Wait()
	sum := map[string]int64{}
	for i := range counters {
		for w, n := range counters[i].total() {
			sum[w] += n
		}
	}
	return sum
}

// wordCounter counts words without allocating for one it knows.
type wordCounter struct {
	index  map[string]int
	counts []int64
}

func (c *wordCounter) add(doc []byte) {
	t := classes()
	for i := 0; i < len(doc); {
		end := scanGPT2(t, doc, i)
		k, ok := c.index[string(doc[i:end])]
		if !ok {
			k = len(c.counts)
			c.index[string(doc[i:end])] = k
			c.counts = append(c.counts, 0)
		}
		c.counts[k]++
		i = end
	}
}

func (c *wordCounter) total() map[string]int64 {
	sum := make(map[string]int64, len(c.index))
	for w, k := range c.index {
		sum[w] = c.counts[k]
	}
	return sum
}

// sortedWords puts the words into an order that does not depend on threads.
func sortedWords(count map[string]int64) (words []string, counts []int64) {
	for w := range count {
		words = append(words, w)
	}
	slices.Sort(words)
	for _, w := range words {
		counts = append(counts, count[w])
	}
	return words, counts
}

// trainer is the state of learning merges. The count of each pair is kept up
// to date at every merge; the queue is looked at again only where it is stale.
type trainer struct {
	tokens []string         // by id, as the vocabulary writes them
	ids    map[string]int32 // and the other way
	words  [][]int32        // each word in tokens
	counts []int64          // how often it occurs
	pairs  map[uint64]int64 // how often a pair occurs
	queue  []candidate
	merges [][2]int32
}

// candidate is a pair that may be merged, with the words that it was seen in.
type candidate struct {
	pair  uint64 // left<<32 | right
	count int64  // when it was put into the queue
	where []int32
}

// before reports whether c is merged before d.
func (c *candidate) before(d *candidate) bool {
	return c.count > d.count || c.count == d.count && c.pair < d.pair
}

func pairOf(left, right int32) uint64 { return uint64(left)<<32 | uint64(right) }

func newTrainer(specials, words []string, counts []int64) *trainer {
	tr := &trainer{ids: map[string]int32{}, counts: counts, pairs: map[uint64]int64{}}
	for _, s := range specials {
		tr.token(s)
	}
	var letters []rune // the bytes in the order of their letters
	for b := range 256 {
		letters = append(letters, runeOf(byte(b)))
	}
	slices.Sort(letters)
	for _, r := range letters {
		tr.token(string(r))
	}
	var byteID [256]int32
	for b := range byteID {
		byteID[b] = tr.ids[string(runeOf(byte(b)))]
	}
	where := map[uint64][]int32{}
	for k, w := range words {
		word := make([]int32, len(w))
		for i := range len(w) {
			word[i] = byteID[w[i]]
			if i > 0 {
				p := pairOf(word[i-1], word[i])
				tr.pairs[p] += counts[k]
				where[p] = appendNew(where[p], int32(k))
			}
		}
		tr.words = append(tr.words, word)
	}
	tr.enqueue(where)
	return tr
}

// token is the id of a token, a new one if it is not known.
func (tr *trainer) token(s string) int32 {
	id, ok := tr.ids[s]
	if !ok {
		id = int32(len(tr.tokens))
		tr.ids[s] = id
		tr.tokens = append(tr.tokens, s)
	}
	return id
}

// appendNew appends a word that is not the last one of the list.
func appendNew(list []int32, word int32) []int32 {
	if n := len(list); n > 0 && list[n-1] == word {
		return list
	}
	return append(list, word)
}

func (tr *trainer) enqueue(where map[uint64][]int32) {
	for pair, list := range where {
		if n := tr.pairs[pair]; n > 0 {
			tr.push(candidate{pair, n, list})
		}
	}
}

// run merges until there are enough tokens.
func (tr *trainer) run(opt TrainOptions) {
	least := int64(max(opt.MinFrequency, 1))
	for len(tr.tokens) < opt.Size && len(tr.queue) > 0 {
		c := tr.pop()
		if n := tr.pairs[c.pair]; n != c.count {
			c.count = n
			tr.push(c)
			continue
		}
		if c.count < least {
			break
		}
		left, right := int32(c.pair>>32), int32(uint32(c.pair))
		// Two ways can lead to one token; then a pair can come up again later.
		id := tr.token(tr.tokens[left] + tr.tokens[right])
		tr.merges = append(tr.merges, [2]int32{left, right})
		where := map[uint64][]int32{}
		for _, k := range c.where {
			tr.mergeIn(k, left, right, id, where)
		}
		tr.enqueue(where)
		if opt.Progress != nil && len(tr.tokens)%64 == 0 {
			opt.Progress(len(tr.tokens), opt.Size)
		}
	}
	if opt.Progress != nil {
		opt.Progress(len(tr.tokens), opt.Size)
	}
}

// mergeIn puts a token in the place of each pair in a word, from the left, and
// counts the pairs that go and come.
func (tr *trainer) mergeIn(k, left, right, id int32, where map[uint64][]int32) {
	w, n := tr.words[k], tr.counts[k]
	come := func(p uint64) {
		tr.pairs[p] += n
		where[p] = appendNew(where[p], k)
	}
	out := 0 // w[:out] is done
	for i := 0; i < len(w); i++ {
		if w[i] != left || i+1 == len(w) || w[i+1] != right {
			w[out] = w[i]
			out++
			continue
		}
		if out > 0 {
			tr.pairs[pairOf(w[out-1], left)] -= n
			come(pairOf(w[out-1], id))
		}
		if i+2 < len(w) {
			tr.pairs[pairOf(right, w[i+2])] -= n
			come(pairOf(id, w[i+2]))
		}
		w[out] = id
		out++
		i++
	}
	tr.words[k] = w[:out]
}

func (tr *trainer) push(c candidate) {
	q := append(tr.queue, c)
	i := len(q) - 1
	for i > 0 {
		p := (i - 1) / 2
		if !c.before(&q[p]) {
			break
		}
		q[i] = q[p]
		i = p
	}
	q[i] = c
	tr.queue = q
}

func (tr *trainer) pop() candidate {
	q := tr.queue
	top, last := q[0], q[len(q)-1]
	q[len(q)-1] = candidate{}
	q = q[:len(q)-1]
	i := 0
	for len(q) > 0 {
		c := 2*i + 1
		if c >= len(q) {
			break
		}
		if c+1 < len(q) && q[c+1].before(&q[c]) {
			c++
		}
		if !q[c].before(&last) {
			break
		}
		q[i] = q[c]
		i = c
	}
	if len(q) > 0 {
		q[i] = last
	}
	tr.queue = q
	return top
}
