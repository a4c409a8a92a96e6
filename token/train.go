// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"pleach/internal/fault"
)

// TrainOptions says what [Train] makes.
type TrainOptions struct {
	// Size is the number of tokens: special tokens, 256 bytes, characters of a
	// SentencePiece model, and merges. A corpus with few different words can end
	// up with less.
	Size int

	// Specials are cut out of a text before anything else and never come out of
	// other text. They get the ids from 0 on; none means "<|endoftext|>". A
	// SentencePiece model has <unk>, <s> and </s> in front of them, and none means
	// that there are no others.
	Specials []string

	// Split is the pattern by which a byte-level tokenizer divides text into
	// words, one of [Splits]; "" is "gpt2". A SentencePiece model has none.
	Split string

	// Pieces asks for a SentencePiece model; nil: byte-level BPE.
	Pieces *PieceOptions

	// MinFrequency is how often a pair must occur to become a token; 0 counts
	// as 1.
	MinFrequency int

	// MaxMemory is the bytes that words and pairs may take, about; 0 is 1 GiB. If
	// there are too many different words, the rarest are left out.
	MaxMemory int64

	// Pruned, if set, is called once if words were left out.
	Pruned func(Pruning)

	// Progress, if set, is called now and then with the tokens made so far.
	Progress func(done, total int)

	// Stop, if set, is asked now and then; an error of it ends the training and
	// is what [Train] returns.
	Stop func() error

	// Threads count words and pairs at the same time; 0 counts as 1. The result
	// does not depend on them.
	Threads int
}

const (
	// MaxSize is the most tokens that [Train] makes.
	MaxSize = maxID - 1

	// LeastMemory is the least MaxMemory that [Train] takes.
	LeastMemory = 16 << 20

	defaultMemory = 1 << 30
)

// endOfText is the special token of a tokenizer for which none was named.
const endOfText = "<|endoftext|>"

// splits are the patterns that [Train] can divide text by.
var splits = []struct{ name, pattern string }{
	{"gpt2", patternGPT2},
	{"llama3", patternLlama3},
	{"qwen2", patternQwen2},
	{"o200k", patternO200k},
}

// Splits is the names for [TrainOptions.Split].
func Splits() []string {
	var names []string
	for _, s := range splits {
		names = append(names, s.name)
	}
	return names
}

// Train learns a tokenizer from documents: it joins the most frequent pair of
// neighbouring tokens until there are enough tokens. No token reaches over a
// border between words. Documents need not be UTF-8, and a special token in them
// counts as text for byte-level BPE and parts the text for a SentencePiece model.
//
// Byte-level BPE has the tokens that the BpeTrainer of Hugging Face tokenizers
// makes of the same documents, with the same ids: of pairs that are equally
// frequent the one with the lowest ids comes first. A SentencePiece model has
// the pieces that the BPE trainer of SentencePiece makes of the lines of the
// documents; see [PieceOptions].
//
// A document may be reused by docs as soon as it asks for the next one. What
// docs holds beside it is not bounded by MaxMemory.
//
// Sennrich, Haddow & Birch, 2016, arXiv:1508.07909, algorithm 1.
func Train(docs iter.Seq[[]byte], opt TrainOptions) (*Tokenizer, error) {
	if len(opt.Specials) == 0 && opt.Pieces == nil {
		opt.Specials = []string{endOfText}
	}
	opt.Threads = max(opt.Threads, 1)
	if opt.MaxMemory == 0 {
		opt.MaxMemory = defaultMemory
	}
	if err := opt.check(); err != nil {
		return nil, err
	}
	words, pruned := countWords(docs, opt.Threads, opt.MaxMemory, opt.splitter())
	if pruned.Words > 0 && opt.Pruned != nil {
		opt.Pruned(pruned)
	}
	if words.words == 0 {
		return nil, fault.Dataf("token: training: the documents hold no text")
	}
	if opt.Pieces != nil {
		return opt.trainPieces(words)
	}
	return opt.trainBytes(words)
}

func (o *TrainOptions) check() error {
	seen := map[string]bool{}
	for _, s := range o.Specials {
		if seen[s] || s == "" || !utf8.ValidString(s) {
			return fault.Configf("token: training: special token %q: want UTF-8 text, not empty, each once", s)
		}
		seen[s] = true
	}
	least := 256 + len(o.Specials)
	what := "the bytes and the special tokens"
	if o.Pieces != nil {
		least += len(pieceNames())
		what = "the bytes and the special tokens, without characters"
		if err := o.Pieces.check(seen); err != nil {
			return err
		}
	}
	if o.Size < least || o.Size > MaxSize {
		return fault.Configf("token: training: size: got %d tokens, want %d (%s) to %d", o.Size, least, what, MaxSize)
	}
	if o.MaxMemory < LeastMemory {
		return fault.Configf("token: training: memory: got %d bytes, want %d or more", o.MaxMemory, LeastMemory)
	}
	if o.pattern() == "" {
		return fault.Configf("token: training: split: got %q, want one of %s", o.Split, strings.Join(Splits(), ", "))
	}
	return nil
}

// pattern is what words are split by, "" if its name is not known.
func (o *TrainOptions) pattern() string {
	if o.Split == "" {
		return patternGPT2
	}
	for _, s := range splits {
		if s.name == o.Split {
			return s.pattern
		}
	}
	return ""
}

func (o *TrainOptions) splitter() func() wordSplitter {
	if o.Pieces != nil {
		return o.newLineSplitter
	}
	scan := scannerFor(o.pattern())
	return func() wordSplitter { return patternSplitter{classes(), scan} }
}

// patternSplitter counts the words of a splitting pattern.
type patternSplitter struct {
	classes *classTable
	scan    scanner
}

func (p patternSplitter) count(t *wordTable, text []byte) {
	for i := 0; i < len(text); {
		end := p.scan(p.classes, text, i)
		t.add(text[i:end], 1)
		i = end
	}
}

// cut finds a letter with a space behind it: in all patterns, the letter ends a
// word and the space begins one.
func (p patternSplitter) cut(text []byte) int {
	for i := len(text) - 1; i > 0; i-- {
		if c := text[i-1] | 0x20; text[i] == ' ' && 'a' <= c && c <= 'z' {
			return i
		}
	}
	return 0
}

// learn merges until there are enough symbols; done is their number now.
func (o *TrainOptions) learn(l *learner, done func() int, accept func(left, right int32)) error {
	least := int64(max(o.MinFrequency, 1))
	for step := 0; done() < o.Size; step++ {
		if step%64 == 0 {
			if o.Progress != nil {
				o.Progress(done(), o.Size)
			}
			if o.Stop != nil {
				if err := o.Stop(); err != nil {
					return err
				}
			}
		}
		c, ok := l.next(least)
		if !ok {
			break
		}
		left, right := parts(c.pair)
		if sym, again := l.rules.join(left, right); sym >= 0 {
			accept(left, right)
			l.merge(c, sym, again)
		}
	}
	if o.Progress != nil {
		o.Progress(done(), o.Size)
	}
	return nil
}

// byteLevelTraining is the vocabulary that grows while merges are learned.
type byteLevelTraining struct {
	specials []string
	pattern  string
	tokens   []string         // by id, as the vocabulary writes them
	ids      map[string]int32 // and the other way
	merges   [][2]int32
}

func (o *TrainOptions) trainBytes(words *wordTable) (*Tokenizer, error) {
	tr := newByteLevelTraining(o)
	slots, counts := tr.layout(words)
	*words = wordTable{} // the collector may have it
	var size []int32
	for _, tok := range tr.tokens {
		size = append(size, int32(utf8.RuneCountInString(tok)))
	}
	l := newLearner(tr, slots, counts, size, o.Threads)
	err := o.learn(l, func() int { return len(tr.tokens) }, func(left, right int32) {
		tr.merges = append(tr.merges, [2]int32{left, right})
	})
	if err != nil {
		return nil, err
	}
	file := tr.json()
	t, err := parse(file)
	if err != nil {
		return nil, fault.Dataf("token: training: %w", err)
	}
	bos, eos := sequenceNames(o.Specials)
	t.bos, t.eos = t.lookup[bos], t.lookup[eos]
	t.files = map[string][]byte{nameJSON: file, nameConfig: configJSON(bos, eos)}
	return t, nil
}

func newByteLevelTraining(o *TrainOptions) *byteLevelTraining {
	tr := &byteLevelTraining{specials: o.Specials, pattern: o.pattern(), ids: map[string]int32{}}
	for _, s := range o.Specials {
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
	return tr
}

// token is the id of a token, a new one if it is not known.
func (tr *byteLevelTraining) token(s string) (id int32, known bool) {
	id, known = tr.ids[s]
	if !known {
		id = int32(len(tr.tokens))
		tr.ids[s] = id
		tr.tokens = append(tr.tokens, s)
	}
	return id, known
}

func (tr *byteLevelTraining) allowed(_, _ int32) bool { return true }

func (tr *byteLevelTraining) less(p, q uint64) bool { return p < q }

// join makes a token of two. Two ways can lead to one token; then a pair can
// come up again later.
func (tr *byteLevelTraining) join(left, right int32) (id int32, again bool) {
	return tr.token(tr.tokens[left] + tr.tokens[right])
}

// layout puts all words into slots.
func (tr *byteLevelTraining) layout(words *wordTable) ([]int32, []int64) {
	var byteID [256]int32
	for b := range byteID {
		byteID[b] = tr.ids[string(runeOf(byte(b)))]
	}
	slots := make([]int32, 1, int(words.size)+words.words+1)
	counts := make([]int64, 0, words.words)
	slots[0] = noWord
	words.each(func(w []byte, n int64) {
		for _, b := range w {
			slots = append(slots, byteID[b])
		}
		slots = append(slots, noWord)
		counts = append(counts, n)
	})
	return slots, counts
}
