// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"pleach/internal/fault"
)

// PieceOptions says what kind of SentencePiece model [Train] makes: BPE over
// characters, with byte fallback, without normalization, with pieces of up to 16
// characters of one script and pieces of spaces only. Those are the settings of
// Llama 2, with which decoding gives back any text.
//
// Differs: SentencePiece leaves out lines of more than 4192 bytes, and makes
// pieces that no longer occur if there are too few others; both are not done
// here. The script of a character is that of the tables of Go, which know newer
// ones.
type PieceOptions struct {
	// Coverage is the part of all characters that the most frequent ones make up
	// which become pieces, 0.98 to 1; 0 is 0.9995. The others are left to bytes.
	Coverage float64

	// SplitDigits makes each digit a piece of its own, which joins no other.
	SplitDigits bool

	// NoPrefix leaves out the space in front of each text.
	NoPrefix bool
}

const (
	pieceLength = 16     // characters
	unknownMark = "▅"    // a line with it is left out
	parting     = '\x1f' // stands for what parts words, and is part of no piece
)

// pieceNames are the first pieces of a model.
func pieceNames() []string { return []string{"<unk>", "<s>", "</s>"} }

func (o *PieceOptions) check(specials map[string]bool) error {
	if o.Coverage != 0 && !(o.Coverage >= 0.98 && o.Coverage <= 1) {
		return fault.Configf("token: training: coverage: got %v, want 0.98 to 1", o.Coverage)
	}
	for s := range specials {
		if _, ok := byteToken(s); ok || slices.Contains(pieceNames(), s) || strings.Contains(s, meta) || len(s) >= maxPiece {
			return fault.Configf("token: training: special token %q: it has a meaning in a SentencePiece model or is too long", s)
		}
	}
	return nil
}

// lineSplitter counts the words of lines: spaces, and what follows up to the
// next one. ▁ counts as a space, and words are kept with spaces.
type lineSplitter struct {
	spec  spModel // how a line is normalized
	metas *trie   // texts that part words
	start [256]bool
	line  []byte
	word  []byte
}

func (o *TrainOptions) newLineSplitter() wordSplitter {
	l := &lineSplitter{metas: newTrie()}
	l.spec.spec.prefix = !o.Pieces.NoPrefix
	for i, s := range slices.Concat(pieceNames(), o.Specials, byteNames()) {
		l.metas.add(s, int32(i))
		l.start[s[0]] = true
	}
	return l
}

// byteNames are the pieces of the bytes.
func byteNames() []string {
	var names []string
	for b := range 256 {
		names = append(names, fmt.Sprintf("<0x%02X>", b))
	}
	return names
}

func (l *lineSplitter) cut(text []byte) int { return bytes.LastIndexByte(text, '\n') + 1 }

func (l *lineSplitter) count(t *wordTable, text []byte) {
	for len(text) > 0 {
		line := text
		if n := bytes.IndexByte(text, '\n'); n >= 0 {
			line, text = text[:n], text[n+1:]
		} else {
			text = nil
		}
		line = bytes.TrimRight(line, "\r") // as its Python module does
		if len(line) > 0 && !bytes.Contains(line, []byte(unknownMark)) {
			l.countLine(t, line)
		}
	}
}

func (l *lineSplitter) countLine(t *wordTable, line []byte) {
	if l.plain(line) {
		if l.spec.spec.prefix {
			n := wordEnd(line)
			l.word = append(append(l.word[:0], ' '), line[:n]...)
			t.add(l.word, 1)
			line = line[n:]
		}
	} else {
		line = l.normal(line)
	}
	for len(line) > 0 {
		n := wordEnd(line)
		t.add(line[:n], 1)
		line = line[n:]
	}
}

// wordEnd is the length of the spaces at the start of s and of what follows.
func wordEnd(s []byte) int {
	n := len(s) - len(bytes.TrimLeft(s, " "))
	if k := bytes.IndexByte(s[n:], ' '); k >= 0 {
		return n + k
	}
	return len(s)
}

// plain reports whether a line is as it should be.
func (l *lineSplitter) plain(line []byte) bool {
	if !utf8.Valid(line) || bytes.Contains(line, []byte(meta)) {
		return false
	}
	for i, c := range line {
		if l.start[c] {
			if n, _ := l.metas.longest(line[i:]); n > 0 {
				return false
			}
		}
	}
	return true
}

// normal is a line as SentencePiece sees it, with spaces for ▁ and with
// parting for the texts of special pieces.
func (l *lineSplitter) normal(line []byte) []byte {
	s := l.spec.normalize(nil, line)
	s = bytes.ReplaceAll(s, []byte(meta), []byte(" "))
	out := l.line[:0]
	for len(s) > 0 {
		if n, _ := l.metas.longest(s); n > 0 {
			out, s = append(out, parting), s[n:]
			continue
		}
		out, s = append(out, s[0]), s[1:]
	}
	l.line = out
	return out
}

// pieceTraining is the pieces that grow while merges are learned. Symbols are
// first the characters, then the merged pieces.
type pieceTraining struct {
	chars  int
	digits bool
	texts  []string
	traits []pieceTraits
	known  map[string]bool // pieces that were merged
	ids    map[rune]int32  // symbols of characters
}

// pieceTraits are what may be joined depends on.
type pieceTraits struct {
	script int16 // 0: any
	length uint8 // characters
	spaces uint8
}

const (
	noSpace   = iota
	spaceThen // a space and then others
	allSpaces
)

func (o *TrainOptions) trainPieces(words *wordTable) (*Tokenizer, error) {
	tr := o.newPieceTraining(words)
	fixed := len(pieceNames()) + len(o.Specials) + 256
	if o.Size < fixed+tr.chars {
		return nil, fault.Configf("token: training: size: got %d tokens, want %d or more: %d characters make up %.4g %% of the text",
			o.Size, fixed+tr.chars, tr.chars, 100*o.Pieces.coverage())
	}
	slots, counts := tr.layout(words)
	*words = wordTable{} // the collector may have it
	l := newLearner(tr, slots, counts, slices.Repeat([]int32{1}, tr.chars), o.Threads)
	err := o.learn(l, func() int { return fixed + len(tr.texts) }, func(left, right int32) {})
	if err != nil {
		return nil, err
	}
	file := tr.model(o, fixed)
	t, err := parse(file)
	if err != nil {
		return nil, fault.Dataf("token: training: %w", err)
	}
	t.files = map[string][]byte{namePiece: file, nameConfig: o.Pieces.config(t)}
	return t, nil
}

// config is the tokenizer_config.json beside the model. transformers takes the
// space in front of a text from there, and not from the model.
func (o *PieceOptions) config(t *Tokenizer) []byte {
	b := t.pieceConfig()
	if o.NoPrefix {
		b = append(bytes.TrimSuffix(b, []byte("\n}\n")), ",\n  \"add_prefix_space\": false\n}\n"...)
	}
	return b
}

func (o *PieceOptions) coverage() float64 {
	if o.Coverage == 0 {
		return 0.9995
	}
	return o.Coverage
}

// newPieceTraining picks the characters that become pieces: the most frequent
// ones, of equals the one with the lowest code point.
func (o *TrainOptions) newPieceTraining(words *wordTable) *pieceTraining {
	all, counts := countRunes(words)
	runes := make([]rune, 0, len(counts))
	for r := range counts {
		runes = append(runes, r)
	}
	slices.SortFunc(runes, func(a, b rune) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	tr := &pieceTraining{digits: o.Pieces.SplitDigits, known: map[string]bool{}, ids: map[rune]int32{}}
	sum := int64(0)
	for _, r := range runes {
		// In float32, as in the reference.
		if float32(float64(sum)/float64(all)) >= float32(o.Pieces.coverage()) {
			break
		}
		sum += counts[r]
		if r == parting {
			continue
		}
		tr.ids[r] = int32(len(tr.texts))
		tr.texts = append(tr.texts, string(r))
		tr.traits = append(tr.traits, traitsOf(r))
	}
	tr.chars = len(tr.texts)
	return tr
}

func traitsOf(r rune) pieceTraits {
	if r == '▁' {
		return pieceTraits{length: 1, spaces: allSpaces}
	}
	return pieceTraits{length: 1, script: scriptOf(r)}
}

// countRunes is how often each character occurs, with ▁ for a space.
func countRunes(words *wordTable) (all int64, counts map[rune]int64) {
	var ascii [utf8.RuneSelf]int64
	counts = map[rune]int64{}
	words.each(func(w []byte, n int64) {
		for i := 0; i < len(w); {
			if w[i] < utf8.RuneSelf {
				ascii[w[i]] += n
				i++
				continue
			}
			r, size := utf8.DecodeRune(w[i:])
			counts[r] += n
			i += size
		}
	})
	ascii[0] = 0 // no part of any piece
	for c, n := range ascii {
		if r := rune(c); n > 0 && r != ' ' {
			counts[r] = n
		} else if n > 0 {
			counts['▁'] = n
		}
	}
	for _, n := range counts {
		all += n
	}
	return all, counts
}

// scripts is the names of the scripts, in an order that does not change.
var scripts = sync.OnceValue(func() []*unicode.RangeTable {
	var names []string
	for name := range unicode.Scripts {
		names = append(names, name)
	}
	slices.Sort(names)
	var tables []*unicode.RangeTable
	for _, name := range names {
		tables = append(tables, unicode.Scripts[name])
	}
	return tables
})

// scriptOf numbers the script of a character from 1 on. Hiragana and Katakana
// count as Han, and a mark that takes on the script of what is before has none.
func scriptOf(r rune) int16 {
	if unicode.In(r, unicode.Hiragana, unicode.Katakana) || r == 'ー' {
		r = '一'
	}
	if unicode.Is(unicode.Inherited, r) {
		return 0
	}
	for i, t := range scripts() {
		if unicode.Is(t, r) {
			return int16(i + 1)
		}
	}
	return scriptOf(' ') // common
}

func isDecimal(r rune) bool { return '0' <= r && r <= '9' || '０' <= r && r <= '９' }

// layout puts all words into slots, one a character. Characters that join no
// others are walls.
func (tr *pieceTraining) layout(words *wordTable) ([]int32, []int64) {
	slots := make([]int32, 1, int(words.size)+words.words+1)
	counts := make([]int64, 0, words.words)
	slots[0] = noWord
	words.each(func(w []byte, n int64) {
		for i := 0; i < len(w); {
			r, size := utf8.DecodeRune(w[i:])
			i += size
			if r == ' ' {
				r = '▁'
			}
			id, ok := tr.ids[r]
			if !ok || tr.digits && isDecimal(r) {
				id = wall
			}
			slots = append(slots, id)
		}
		slots = append(slots, noWord)
		counts = append(counts, n)
	})
	return slots, counts
}

// allowed keeps pieces short, within one script, and with spaces in front only.
func (tr *pieceTraining) allowed(left, right int32) bool {
	a, b := tr.traits[left], tr.traits[right]
	switch {
	case a.length+b.length > pieceLength:
		return false
	case a.script != 0 && b.script != 0 && a.script != b.script:
		return false
	case b.spaces != noSpace:
		return a.spaces == allSpaces && b.spaces == allSpaces
	}
	return a.spaces != allSpaces || a.length == 1
}

// less puts the shorter piece in front, of equally long ones the first by
// alphabet.
func (tr *pieceTraining) less(p, q uint64) bool {
	a, b := parts(p)
	c, d := parts(q)
	m, n := tr.traits[a].length+tr.traits[b].length, tr.traits[c].length+tr.traits[d].length
	if m != n {
		return m < n
	}
	if order := compareJoined(tr.texts[a], tr.texts[b], tr.texts[c], tr.texts[d]); order != 0 {
		return order < 0
	}
	return p < q
}

// compareJoined compares a+b with c+d.
func compareJoined(a, b, c, d string) int {
	n := min(len(a), len(c))
	if order := strings.Compare(a[:n], c[:n]); order != 0 {
		return order
	}
	if len(a) > n {
		a, c = a[n:], d
		n = min(len(a), len(c))
		return cmp.Or(strings.Compare(a[:n], c[:n]), strings.Compare(b, c[n:]))
	}
	c = c[n:]
	n = min(len(b), len(c))
	return cmp.Or(strings.Compare(b[:n], c[:n]), strings.Compare(b[n:], d))
}

// join makes a piece of two. A text that another pair has led to is not made
// again, and that pair stays as it is.
func (tr *pieceTraining) join(left, right int32) (sym int32, again bool) {
	text := tr.texts[left] + tr.texts[right]
	if tr.known[text] {
		return -1, false
	}
	tr.known[text] = true
	a, b := tr.traits[left], tr.traits[right]
	t := pieceTraits{script: max(a.script, b.script), length: a.length + b.length, spaces: a.spaces}
	if a.spaces == allSpaces && b.spaces != allSpaces {
		t.spaces = spaceThen
	}
	tr.texts = append(tr.texts, text)
	tr.traits = append(tr.traits, t)
	return int32(len(tr.texts) - 1), false
}

// model is the model file: the special pieces, then the merged ones, then the
// characters. The score of a piece is how late it comes. Fields are those of
// sentencepiece_model.proto.
func (tr *pieceTraining) model(o *TrainOptions, fixed int) []byte {
	var b []byte
	add := func(text string, score float32, kind uint64) {
		p := appendString(nil, 1, text)
		p = appendFloat(p, 2, score)
		p = appendNumber(p, 3, kind)
		b = appendString(b, 1, string(p))
	}
	for i, s := range pieceNames() {
		kind := uint64(spControl)
		if i == 0 {
			kind = spUnknown
		}
		add(s, 0, kind)
	}
	for _, s := range o.Specials {
		add(s, 0, spUser)
	}
	for _, s := range byteNames() {
		add(s, 0, spByte)
	}
	pieces := slices.Concat(tr.texts[tr.chars:], tr.texts[:tr.chars])
	for i, s := range pieces {
		add(s, -float32(i), spNormal)
	}
	b = appendString(b, 2, string(tr.trainerSpec(o, fixed+len(pieces))))
	return appendString(b, 3, string(normalizerSpec(o)))
}

// trainerSpec says how the model was made. Encoding depends on byte_fallback and
// on the ids, a later training by SentencePiece on all.
func (tr *pieceTraining) trainerSpec(o *TrainOptions, size int) []byte {
	b := appendNumber(nil, 3, 2) // model_type: BPE
	b = appendNumber(b, 4, uint64(size))
	b = appendFloat(b, 10, float32(o.Pieces.coverage()))
	b = appendNumber(b, 20, pieceLength)
	b = appendNumber(b, 25, protowire.EncodeBool(o.Pieces.SplitDigits))
	b = appendNumber(b, 26, 1) // allow_whitespace_only_pieces
	for _, s := range o.Specials {
		b = appendString(b, 31, s) // user_defined_symbols
	}
	b = appendNumber(b, 35, 1) // byte_fallback
	for i := range uint64(3) {
		b = appendNumber(b, protowire.Number(40+i), i) // unk_id, bos_id, eos_id
	}
	return appendNumber(b, 43, math.MaxUint64) // pad_id: -1
}

func normalizerSpec(o *TrainOptions) []byte {
	b := appendString(nil, 1, "identity")
	b = appendNumber(b, 3, protowire.EncodeBool(!o.Pieces.NoPrefix)) // add_dummy_prefix
	b = appendNumber(b, 4, 0)                                        // remove_extra_whitespaces
	return appendNumber(b, 5, 1)                                     // escape_whitespaces
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func appendNumber(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

func appendFloat(b []byte, num protowire.Number, v float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, num, protowire.Fixed32Type), math.Float32bits(v))
}
