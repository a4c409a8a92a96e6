// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// spFile is what a SentencePiece model file holds, as far as it matters here.
type spFile struct {
	pieces []spPiece
	kind   uint64 // spUnigram, spBPE, or 3 words, 4 characters
	spec   spSpec
	rules  []byte // the normalization table
	bos    int64
	eos    int64
}

type spPiece struct {
	text  string
	score float32
	kind  uint64
}

// spSpec is the part of the settings that encoding and decoding depend on.
type spSpec struct {
	prefix     bool // add_dummy_prefix
	trim       bool // remove_extra_whitespaces
	escape     bool // escape_whitespaces
	fallback   bool // byte_fallback
	suffix     bool // treat_whitespace_as_suffix
	denormal   bool // there is a normalization table for decoding
	name       string
	unkSurface string
}

// Types of a model.
const (
	spUnigram = 1
	spBPE     = 2
)

// errField has words of its own: those of the protobuf module vary on purpose.
var errField = errors.New("a field is cut off or malformed")

// fields calls f for each field of a message. Field numbers and types are those
// of sentencepiece_model.proto.
func fields(b []byte, f func(num protowire.Number, val uint64, data []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errField
		}
		b = b[n:]
		var val uint64
		var data []byte
		switch typ {
		case protowire.VarintType:
			val, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			val = uint64(v)
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(b)
			if data == nil {
				data = []byte{}
			}
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return errField
		}
		if err := f(num, val, data); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func parseSentencePiece(b []byte) (*spFile, error) {
	f := &spFile{
		kind: spUnigram, bos: 1, eos: 2,
		spec: spSpec{prefix: true, trim: true, escape: true, unkSurface: " \u2047 "},
	}
	err := fields(b, func(num protowire.Number, _ uint64, data []byte) error {
		switch {
		case num == 1 && data != nil:
			return f.piece(data)
		case num == 2 && data != nil:
			return f.trainer(data)
		case num == 3 && data != nil:
			return f.normalizer(data)
		case num == 5 && data != nil:
			return fields(data, func(num protowire.Number, _ uint64, data []byte) error {
				f.spec.denormal = f.spec.denormal || num == 2 && len(data) > 0
				return nil
			})
		}
		return nil
	})
	return f, err
}

func (f *spFile) piece(b []byte) error {
	p := spPiece{kind: spNormal}
	err := fields(b, func(num protowire.Number, val uint64, data []byte) error {
		switch num {
		case 1:
			p.text = string(data)
		case 2:
			p.score = math.Float32frombits(uint32(val))
		case 3:
			p.kind = val
		}
		return nil
	})
	f.pieces = append(f.pieces, p)
	return err
}

func (f *spFile) trainer(b []byte) error {
	return fields(b, func(num protowire.Number, val uint64, data []byte) error {
		switch num {
		case 3:
			f.kind = val
		case 24:
			f.spec.suffix = val != 0
		case 35:
			f.spec.fallback = val != 0
		case 41:
			f.bos = int64(int32(val))
		case 42:
			f.eos = int64(int32(val))
		case 44:
			f.spec.unkSurface = string(data)
		}
		return nil
	})
}

func (f *spFile) normalizer(b []byte) error {
	return fields(b, func(num protowire.Number, val uint64, data []byte) error {
		switch num {
		case 1:
			f.spec.name = string(data)
		case 2:
			f.rules = data
		case 3:
			f.spec.prefix = val != 0
		case 4:
			f.spec.trim = val != 0
		case 5:
			f.spec.escape = val != 0
		}
		return nil
	})
}

// check refuses what would encode to other ids here than in the reference.
func (f *spFile) check() error {
	switch {
	case len(f.pieces) == 0:
		return fmt.Errorf("not a SentencePiece model: no pieces")
	case f.kind != spUnigram && f.kind != spBPE:
		return fmt.Errorf("model type %d: not supported, only unigram and BPE", f.kind)
	case f.spec.denormal:
		return fmt.Errorf("denormalizer with a character map: not yet")
	}
	return nil
}

// newSentencePiece builds the tables of a model.
func newSentencePiece(f *spFile) (*Tokenizer, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	m := &spModel{spec: f.spec, bytes: map[int32]byte{}}
	t := &Tokenizer{family: "SentencePiece BPE", sp: m, lookup: map[string]int32{}, bos: -1, eos: -1}
	b := spBuilder{m: m, t: t, kind: f.kind, symbols: map[string]int32{}, unk: -1}
	if err := b.pieces(f); err != nil {
		return nil, err
	}
	if len(f.rules) > 0 {
		var err error
		if m.rules, err = parseCharsmap(f.rules); err != nil {
			return nil, fmt.Errorf("normalizer %q: %w", f.spec.name, err)
		}
	}
	b.usersFirst(f)
	if f.kind == spUnigram {
		t.family = "SentencePiece unigram"
		if err := b.finishUnigram(f); err != nil {
			return nil, err
		}
	} else {
		b.finish(f)
	}
	if f.bos >= 0 && f.bos < int64(len(f.pieces)) {
		t.bos = int32(f.bos)
	}
	if f.eos >= 0 && f.eos < int64(len(f.pieces)) {
		t.eos = int32(f.eos)
	}
	t.describeSentencePiece(f)
	return t, nil
}

// maxPiece bounds a piece: its merges are looked for at each of its characters,
// and pieces are looked for at each character of a text.
const maxPiece = 4096

// spBuilder gathers the symbols of a model: its pieces, and the characters that
// are part of a piece without being one.
type spBuilder struct {
	m       *spModel
	t       *Tokenizer
	kind    uint64
	symbols map[string]int32
	users   []int32
	unk     int32
}

// check refuses a piece that no model needs, or that the reference refuses.
func (p *spPiece) check() error {
	if p.text == "" || len(p.text) >= maxPiece || !utf8.ValidString(p.text) {
		return fmt.Errorf("want a text that is UTF-8, not empty and under %d bytes", maxPiece)
	}
	if p.score != p.score || math.Abs(float64(p.score)) > maxScore {
		return fmt.Errorf("score: got %g, want a number of at most %g", p.score, maxScore)
	}
	if strings.Contains(p.text, "\x00") && p.kind != spUnused {
		return fmt.Errorf("want a text without a zero byte")
	}
	return nil
}

// pieces adds all pieces and looks for those that must be there.
func (b *spBuilder) pieces(f *spFile) error {
	for i, p := range f.pieces {
		if p.text == "\x00" && f.spec.fallback {
			p.kind = spUnused // some converters write it beside <0x00>
			f.pieces[i] = p
		}
		if err := b.add(int32(i), p); err != nil {
			return fmt.Errorf("piece %d %q: %w", i, p.text, err)
		}
	}
	if b.unk < 0 {
		return fmt.Errorf("no piece is of the type unknown")
	}
	if f.spec.fallback && len(b.m.bytes) != 256 {
		return fmt.Errorf("byte_fallback: got %d byte pieces, want 256", len(b.m.bytes))
	}
	return nil
}

func (b *spBuilder) add(id int32, p spPiece) error {
	if err := p.check(); err != nil {
		return err
	}
	if _, ok := b.t.lookup[p.text]; ok {
		return fmt.Errorf("stands twice in the model")
	}
	switch p.kind {
	case spNormal:
		b.symbols[p.text] = id
	case spUser:
		b.symbols[p.text] = id
		b.users = append(b.users, id)
	case spUnknown:
		if b.unk >= 0 {
			return fmt.Errorf("a second piece of the type unknown")
		}
		b.unk = id
	case spControl:
	case spByte:
		v, ok := byteToken(p.text)
		if !ok || !b.m.spec.fallback || p.text != fmt.Sprintf("<0x%02X>", v) {
			return fmt.Errorf("a byte piece is <0x00> to <0xFF>, with byte_fallback set")
		}
		b.m.bytes[id] = v
	case spUnused:
		if b.kind != spUnigram && p.text != "\x00" {
			return fmt.Errorf("type UNUSED in a BPE model: not supported")
		}
	default:
		return fmt.Errorf("unknown type %d", p.kind)
	}
	b.t.lookup[p.text] = id
	b.t.words.set(id, p.text)
	b.m.kinds = append(b.m.kinds, byte(p.kind))
	return nil
}

// usersFirst makes the pieces known that the normalizer passes over.
func (b *spBuilder) usersFirst(f *spFile) {
	if len(b.users) > 0 {
		b.m.users = newTrie()
	}
	for _, id := range b.users {
		b.m.users.add(f.pieces[id].text, id)
	}
	b.m.findPlain()
}

// finishUnigram fills the model with a unigram model. A user-defined piece is
// worth more the longer it is, and more than any other.
func (b *spBuilder) finishUnigram(f *spFile) error {
	lowest := float32(math.Inf(1))
	var tokens []string
	var ids []int32
	var scores []float64
	for i, p := range f.pieces {
		id, score := int32(-1), p.score
		switch p.kind {
		case spNormal:
			id, lowest = int32(i), min(lowest, score)
		case spUser:
			id, score = int32(i), float32(0.1*float64(len(p.text)-1))
		}
		tokens, ids, scores = append(tokens, p.text), append(ids, id), append(scores, float64(score))
	}
	if math.IsInf(float64(lowest), 1) {
		return fmt.Errorf("no piece is of the type normal")
	}
	m := newUnigram(tokens, ids, scores, float64(lowest-unkPenalty))
	m.unk, m.narrow = b.unk, true
	if b.m.spec.fallback {
		m.fallback = new([256]int32)
		for id, v := range b.m.bytes {
			m.fallback[v] = id
		}
	}
	b.m.model.unigram = m
	return nil
}

// finish fills the model. A pair of symbols merges if their texts joined are a
// piece; the rank of the merge is the place of the piece's score among all.
func (b *spBuilder) finish(f *spFile) {
	mod := &b.m.model
	mod.size, mod.unk, mod.piece = int32(len(f.pieces)), b.unk, true
	if b.m.spec.fallback {
		mod.fallback = new([256]int32)
		for id, v := range b.m.bytes {
			mod.fallback[v] = id
		}
	}
	b.characters(f)
	for _, id := range b.users {
		if mod.frozen == nil {
			mod.frozen = newTrie()
		}
		mod.frozen.add(f.pieces[id].text, b.extraSymbol(id))
	}
	b.merges(f)
	mod.joins = newJoins(maps.Keys(b.symbols))
}

// extraSymbol makes a symbol that is no id but stands for one, or for none.
func (b *spBuilder) extraSymbol(id int32) int32 {
	mod := &b.m.model
	mod.extra = append(mod.extra, id)
	return mod.size + int32(len(mod.extra)) - 1
}

// characters fills the symbol of each character.
func (b *spBuilder) characters(f *spFile) {
	mod := &b.m.model
	mod.runes = map[rune]int32{}
	for i := range mod.first {
		mod.first[i] = -1
	}
	for _, p := range f.pieces {
		if p.kind != spNormal && p.kind != spUser {
			continue
		}
		for _, r := range p.text {
			s := string(r)
			sym, ok := b.symbols[s]
			if !ok {
				sym = b.extraSymbol(-1)
				b.symbols[s] = sym
			}
			if r < utf8.RuneSelf {
				mod.first[r] = sym
			} else {
				mod.runes[r] = sym
			}
		}
	}
}

func (b *spBuilder) merges(f *spFile) {
	type merge struct{ left, right, id int32 }
	var list []merge
	for i, p := range f.pieces {
		if p.kind != spNormal && p.kind != spUser {
			continue
		}
		for at := range p.text {
			left, ok1 := b.symbols[p.text[:at]]
			right, ok2 := b.symbols[p.text[at:]]
			if ok1 && ok2 {
				list = append(list, merge{left, right, int32(i)})
			}
		}
	}
	scores := make([]float32, 0, len(f.pieces))
	for _, p := range f.pieces {
		scores = append(scores, p.score)
	}
	slices.SortFunc(scores, func(a, b float32) int { // high scores first
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	scores = slices.Compact(scores)
	b.m.model.merges = newMergeTable(len(list))
	for _, e := range list {
		score := f.pieces[e.id].score
		rank := sort.Search(len(scores), func(i int) bool { return scores[i] <= score })
		b.m.model.merges.add(e.left, e.right, int32(rank), e.id)
	}
}
