// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// unigram cuts a text into the tokens with the highest sum of scores, which are
// logarithms of probabilities:
//
//	best[0] = 0,  best[j] = max over tokens s[i:j] of best[i] + score(s[i:j])
//
// A character that is no token of its own may also stand alone, as unknown, for
// the lowest score less 10. Of equal sums the one that is found first stays:
// starts go from left to right.
//
// Kudo, "Subword Regularization: Improving Neural Network Translation Models
// with Multiple Subword Candidates", 2018, arXiv:1804.10959, §3.2; details and
// rounding are those of the released code of SentencePiece and of Hugging Face
// tokenizers.
type unigram struct {
	trie   *doubleArray // token → id
	scores []float64    // by id; behind the ids, that of an unknown character
	most   float64      // the largest size of a score
	narrow bool         // sums are float32 and start again from 0 when they get large
	border borderKind

	unk      int32
	fallback *[256]int32 // -1 where a byte has no token; nil: no fallback
	fused    bool        // a run of unknown characters may be a token
}

// unkPenalty is what an unknown character costs more than the rarest token.
const unkPenalty = 10

// resetAt is the size of a sum from which the sums of SentencePiece start
// again from 0.
const resetAt = 100_000

// borderKind says where no token can reach across.
type borderKind int

const (
	noBorder    borderKind = iota
	beforeMarks            // between another character and a ▁ behind it
	behindMarks            // between a ▁ and another character behind it
)

// lattice is the memory of the search, kept between calls.
type lattice struct {
	nodes []latticeNode // by offset behind a token
	path  []step
	cache []unigramEntry
}

// latticeNode is the best way to an offset.
type latticeNode struct {
	score float64
	gap   float64 // by how much it is better than the second best
	from  int32   // where its last token starts; -1: no way yet
	sym   int32   // that token
}

// step is a token of the best way; sym is its id, or the unknown character.
type step struct{ sym, end int32 }

// unigramEntry remembers the ids of one short word without unknown characters.
// The word is kept as in [shortWord]. The ids hold for sums of a size up to limit
// in front of the word; see [unigram.limit].
type unigramEntry struct {
	lo, hi uint64
	limit  float32
	n      int32
	ids    [unigramIDs]int32
}

const (
	unigramBits = 15
	unigramIDs  = 10 // entries are 64 bytes
)

// unigramKey is [shortKey] of the n bytes of s from an offset on.
func unigramKey(s []byte, at, n int) (lo, hi uint64) {
	if len(s)-at < 16 {
		return shortKey(s[at : at+n])
	}
	le, mask := binary.LittleEndian, &keyMasks[n&shortLength]
	return le.Uint64(s[at:]) & mask[0], le.Uint64(s[at+8:])&mask[1] | uint64(n)<<56
}

// newUnigram makes the tables. Tokens with a negative id are left out; of two
// that are equal the second one counts. unkScore is the score of an unknown
// character.
func newUnigram(tokens []string, ids []int32, scores []float64, unkScore float64) *unigram {
	m := &unigram{unk: -1}
	order := make([]int, 0, len(tokens))
	for i := range tokens {
		if ids[i] >= 0 && tokens[i] != "" {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(tokens[a], tokens[b]), cmp.Compare(a, b))
	})
	var keys []string
	var values []int32
	for k, i := range order {
		if k+1 < len(order) && tokens[order[k+1]] == tokens[i] {
			continue
		}
		keys, values = append(keys, tokens[i]), append(values, ids[i])
	}
	m.trie = newDoubleArray(keys, values)
	m.scores = append(slices.Clone(scores), unkScore)
	for _, s := range m.scores {
		m.most = max(m.most, math.Abs(s))
	}
	m.border = findBorder(keys)
	return m
}

// findBorder looks for a place that no token reaches across.
func findBorder(tokens []string) borderKind {
	before, behind := true, true
	for _, s := range tokens {
		last := rune(-1)
		for _, r := range s {
			if last >= 0 && (r == '▁') != (last == '▁') {
				before = before && last == '▁'
				behind = behind && last != '▁'
			}
			last = r
		}
	}
	switch {
	case before:
		return beforeMarks
	case behind:
		return behindMarks
	}
	return noBorder
}

// encode appends the ids of one piece.
func (m *unigram) encode(l *lattice, dst []int32, s []byte) []int32 {
	if l.cache == nil {
		l.cache = make([]unigramEntry, 1<<unigramBits)
	}
	e := emitter{m: m, s: s, dst: dst, unknown: -1}
	var sum float64
	for at := 0; at < len(s); {
		n := m.wordEnd(s[at:])
		sum = m.word(l, &e, at, at+n, sum)
		at += n
	}
	e.flush(len(s))
	return e.dst
}

// wordEnd is the length of s up to the first border.
func (m *unigram) wordEnd(s []byte) int {
	switch m.border {
	case beforeMarks:
		i := marksEnd(s)
		return i + nextMark(s[i:])
	case behindMarks:
		i := nextMark(s)
		return i + marksEnd(s[i:])
	}
	return len(s)
}

// marksEnd is the length of the marks ▁ at the start of s.
func marksEnd(s []byte) int {
	i := 0
	for i+2 < len(s) && s[i] == meta[0] && s[i+1] == meta[1] && s[i+2] == meta[2] {
		i += len(meta)
	}
	return i
}

// nextMark is the length of s up to the first mark.
func nextMark(s []byte) int {
	for i, b := range s {
		if b == meta[0] && i+2 < len(s) && s[i+1] == meta[1] && s[i+2] == meta[2] {
			return i
		}
	}
	return len(s)
}

// word appends the ids of the word from start up to end, behind text of the
// given sum, and returns the sum behind it.
func (m *unigram) word(l *lattice, e *emitter, start, end int, sum float64) float64 {
	if end-start > shortLength {
		return m.search(l, e, start, end, sum)
	}
	lo, hi := unigramKey(e.s, start, end-start)
	c := &l.cache[(lo^hi*0x9e3779b97f4a7c15)*0xd6e8feb86659fd93>>(64-unigramBits)]
	if c.lo != lo || c.hi != hi {
		return m.learn(l, c, e, start, end, sum)
	}
	if sum != 0 && math.Abs(sum) > float64(c.limit) {
		return m.search(l, e, start, end, sum)
	}
	if e.unknown >= 0 {
		e.flush(start)
	}
	ids := c.ids[:c.n]
	e.dst = append(e.dst, ids...)
	e.at = end
	if m.narrow {
		sum := float32(sum)
		for _, id := range ids {
			sum += float32(m.scores[id])
		}
		return float64(sum)
	}
	for _, id := range ids {
		sum += m.scores[id]
	}
	return sum
}

// add is a + b as the reference rounds it. Rounding the float64 sum of two
// float32 numbers once more gives their float32 sum.
func (m *unigram) add(a, b float64) float64 {
	if m.narrow {
		return float64(float32(a + b))
	}
	return a + b
}

// learn is word for one that is not in the cache, and puts it there unless it
// has unknown characters or too many ids. It is cut as at the start of a text;
// if that need not hold here, it is cut once more.
func (m *unigram) learn(l *lattice, c *unigramEntry, e *emitter, start, end int, sum float64) float64 {
	s := e.s[start:end]
	reach := float64(len(s)) * m.most
	if reach >= resetAt/2 {
		return m.search(l, e, start, end, sum)
	}
	m.viterbi(l, s, 0)
	limit := m.limit(l.back(len(s)), len(s), reach)
	known := len(l.path) <= unigramIDs
	for _, st := range l.path {
		known = known && !m.unknown(st.sym)
	}
	if known {
		c.lo, c.hi = unigramKey(s, 0, len(s))
		c.limit, c.n = float32(limit), int32(len(l.path))
		for i, st := range l.path {
			c.ids[len(l.path)-1-i] = st.sym
		}
	}
	if sum != 0 && math.Abs(sum) > limit {
		return m.search(l, e, start, end, sum)
	}
	for _, st := range slices.Backward(l.path) {
		e.emit(st.sym, start+int(st.end))
		sum = m.add(sum, m.scores[st.sym])
	}
	return sum
}

// limit is how large the sum in front of a word of n bytes may be for the word
// to be cut as it is behind a sum of 0. gap is the least difference, computed
// behind 0, between the best and the second best way to a node of the best way.
//
// Let p be the sum in front, reach what no way adds more than, and h =
// (p + reach)·ε with ε = 2^-24, or 2^-53 in float64: half a unit in the last
// place of any sum. A node has at most n additions on any way to it, so its sum
// is off by at most n·h, and the difference of two ways by 2·n·h; the gap itself
// is off by 2·n·reach·ε. So the order stands if gap > 2·n·(p + 2·reach)·ε. Here
// 2.5 stands for 2.
func (m *unigram) limit(gap float64, n int, reach float64) float64 {
	if m.narrow {
		return min(gap/(2.5*float64(n)*0x1p-24), resetAt) - 2*reach
	}
	return gap/(2.5*float64(n)*0x1p-53) - 2*reach
}

// flushAt is the size of a stretch from which the search hands out what it has
// whenever no token reaches across.
const flushAt = 1 << 12

// search appends the ids of the stretch from start up to end and returns the
// sum behind it.
func (m *unigram) search(l *lattice, e *emitter, start, end int, sum float64) float64 {
	for start < end {
		n := m.viterbi(l, e.s[start:end], sum)
		l.back(n)
		for _, st := range slices.Backward(l.path) {
			e.emit(st.sym, start+int(st.end))
		}
		sum = l.nodes[n].score
		start += n
	}
	return sum
}

// viterbi finds the best way to each offset of s up to the one that it returns:
// the end of s, or a place that every way goes through.
func (m *unigram) viterbi(l *lattice, s []byte, sum float64) int {
	l.nodes = append(l.nodes[:0], latticeNode{score: sum, from: -1, sym: -1})
	frontier := 0 // the last offset with a way to it
	units, unkScore := m.trie.units, m.scores[len(m.scores)-1]
	for at := 0; at < len(s); {
		if at == frontier && at >= flushAt {
			return at
		}
		for top := min(len(s), at+max(m.trie.longest, 4)); len(l.nodes) <= top; {
			l.nodes = append(l.nodes, latticeNode{from: -1})
		}
		if m.narrow && math.Abs(l.nodes[at].score) > resetAt {
			l.reset(at, frontier)
		}
		here := l.nodes[at].score
		width := min(charWidth(s[at]), len(s)-at)
		single := false
		node := int32(0)
		for i := at; i < len(s); i++ {
			next := units[node].base ^ int32(s[i])
			u := &units[next]
			if u.parent != node {
				break
			}
			node = next
			if u.value >= 0 {
				frontier = max(frontier, i+1)
				l.nodes[i+1].offer(m.add(here, m.scores[u.value]), int32(at), u.value)
				single = single || i+1 == at+width
			}
		}
		if !single {
			frontier = max(frontier, at+width)
			l.nodes[at+width].offer(m.add(here, unkScore), int32(at), int32(len(m.scores)-1))
		}
		at += width
	}
	return len(s)
}

// offer takes a way that is better than the one so far.
func (n *latticeNode) offer(score float64, from, sym int32) {
	switch {
	case n.from < 0:
		*n = latticeNode{score: score, gap: math.Inf(1), from: from, sym: sym}
	case score > n.score:
		*n = latticeNode{score: score, gap: score - n.score, from: from, sym: sym}
	default:
		n.gap = min(n.gap, n.score-score)
	}
}

// reset makes the sum at an offset 0 and takes as much from those behind it.
func (l *lattice) reset(at, frontier int) {
	off := l.nodes[at].score
	for i := at; i <= frontier; i++ {
		if n := &l.nodes[i]; i == at || n.from >= 0 {
			n.score = float64(float32(n.score - off))
		}
	}
}

// back leaves the best way to an offset in l.path, from its end to its start,
// and returns the least gap of its nodes.
func (l *lattice) back(end int) float64 {
	l.path = l.path[:0]
	gap := math.Inf(1)
	for at := int32(end); at > 0; at = l.nodes[at].from {
		n := l.nodes[at]
		l.path = append(l.path, step{n.sym, at})
		gap = min(gap, n.gap)
	}
	return gap
}

// charWidth is the length of the character that starts with byte b.
func charWidth(b byte) int {
	switch {
	case b < 0xc0:
		return 1
	case b < 0xe0:
		return 2
	case b < 0xf0:
		return 3
	}
	return 4
}

// unknown reports whether a symbol is an unknown character, or the token of
// that meaning, which joins with them.
func (m *unigram) unknown(sym int32) bool {
	return sym == m.unk || int(sym) == len(m.scores)-1
}

// emitter writes ids and joins unknown characters.
type emitter struct {
	m       *unigram
	s       []byte
	dst     []int32
	at      int // the end of what has been written or joined
	unknown int // where a run of unknown characters starts, or -1
}

func (e *emitter) emit(sym int32, end int) {
	if e.m.unknown(sym) {
		if e.unknown < 0 {
			e.unknown = e.at
		}
	} else {
		e.flush(e.at)
		e.dst = append(e.dst, sym)
	}
	e.at = end
}

// flush ends a run of unknown characters at an offset.
func (e *emitter) flush(at int) {
	if e.unknown >= 0 {
		e.dst = e.m.appendUnknown(e.dst, e.s[e.unknown:at])
		e.unknown = -1
	}
	e.at = at
}

// appendUnknown appends the ids of a run of unknown characters: the token that
// it happens to be, its bytes, or the unknown token.
func (m *unigram) appendUnknown(dst []int32, s []byte) []int32 {
	if m.fused {
		if id := m.trie.exact(s); id >= 0 {
			return append(dst, id)
		}
	}
	if m.fallback == nil {
		return append(dst, m.unk)
	}
	start := len(dst)
	for _, b := range s {
		id := m.fallback[b]
		if id < 0 {
			return append(dst[:start], m.unk)
		}
		dst = append(dst, id)
	}
	return dst
}
