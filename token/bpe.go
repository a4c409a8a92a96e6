// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"pleach/internal/strictjson"
)

// model reads the model, by its type.
func (l *loader) model(c *object) {
	switch typ := c.optStr("type", "BPE"); typ {
	case "BPE":
		l.bpe(c)
	case "Unigram":
		l.unigram(c)
	default:
		c.fail("unknown type %q", typ)
	}
}

// bpe reads a vocabulary, and merges in order of rank.
func (l *loader) bpe(c *object) {
	c.refuse("dropout", "continuing_subword_prefix", "end_of_word_suffix")
	m := l.p.model
	m.fuseUnk = c.optBool("fuse_unk", false)
	fallback := c.optBool("byte_fallback", false)
	ignoreMerges := c.optBool("ignore_merges", false)
	vocab, _ := c.want("vocab", strictjson.Object, false)
	unk := c.optStr("unk_token", "")
	list := c.list("merges")
	if l.err != nil {
		return
	}
	ids := l.vocabulary(c, vocab)
	if unk != "" {
		id, ok := ids[unk]
		if !ok {
			c.fail("unk_token: %q is not in the vocabulary", unk)
		}
		m.unk = id
	}
	m.size = int32(len(l.t.words.tokens))
	results := l.merges(c, list, ids)
	if m.byteLevel {
		l.byteSymbols(c, ids, fallback)
	} else {
		l.runeSymbols(ids, fallback)
		m.joins = newJoins(slices.Values(results))
	}
	if ignoreMerges {
		m.whole = ids
		if m.byteLevel {
			m.whole = byteKeys(ids)
		}
	}
	c.done()
}

func (l *loader) vocabulary(c *object, v strictjson.Value) map[string]int32 {
	ids := make(map[string]int32, len(v.Kids)/2)
	for tok, value := range v.Fields() {
		if l.err != nil {
			break
		}
		id, ok := idOf(value)
		if !ok {
			c.fail("vocab: id of %q: got %s, want a whole number from 0 to %d", tok, value.Text, maxID-1)
		}
		if other, ok := l.t.words.get(id); ok && l.err == nil {
			c.fail("vocab: id %d is given to %q and to %q", id, other, tok)
		}
		l.t.words.set(id, tok)
		ids[tok] = id
	}
	l.t.lookup = maps.Clone(ids)
	l.vocab = int32(len(ids))
	return ids
}

// merges fills the table of merges and returns the tokens that they make. An
// entry is "a b" or ["a", "b"].
func (l *loader) merges(c *object, list []strictjson.Value, ids map[string]int32) []string {
	l.p.model.merges = newMergeTable(len(list))
	var results []string
	for rank, v := range list {
		a, b, ok := mergePair(v)
		left, ok1 := ids[a]
		right, ok2 := ids[b]
		result, ok3 := ids[a+b]
		switch {
		case !ok:
			c.fail("merges[%d]: got %s, want two tokens", rank, v)
		case !ok1 || !ok2 || !ok3:
			c.fail("merges[%d]: %q, %q or the two joined is not in the vocabulary", rank, a, b)
		}
		if l.err != nil {
			return nil
		}
		l.p.model.merges.add(left, right, int32(rank), result)
		results = append(results, a+b)
	}
	return results
}

func mergePair(v strictjson.Value) (a, b string, ok bool) {
	if v.Kind == strictjson.String {
		a, b, ok = strings.Cut(v.Text, " ")
		return a, b, ok && !strings.Contains(b, " ")
	}
	if v.Kind != strictjson.Array || len(v.Kids) != 2 || v.Kids[0].Kind != strictjson.String || v.Kids[1].Kind != strictjson.String {
		return "", "", false
	}
	return v.Kids[0].Text, v.Kids[1].Text, true
}

// byteSymbols fills the symbol of each byte.
func (l *loader) byteSymbols(c *object, ids map[string]int32, fallback bool) {
	whole := true
	for b := range 256 {
		id, ok := ids[string(runeOf(byte(b)))]
		if !ok {
			id, whole = -1, false
		}
		l.p.model.first[b] = id
	}
	if fallback && !whole {
		c.fail("byte_fallback with ByteLevel and without tokens for all 256 bytes: not supported")
	}
	l.t.family = "byte-level BPE"
}

// runeSymbols fills the symbol of each character, and the tokens of bytes.
func (l *loader) runeSymbols(ids map[string]int32, fallback bool) {
	m := l.p.model
	m.runes = map[rune]int32{}
	for b := range m.first {
		m.first[b] = -1
	}
	for tok, id := range ids {
		r, n := utf8.DecodeRuneInString(tok)
		switch {
		case n == 0 || n != len(tok):
		case r < utf8.RuneSelf:
			m.first[r] = id
		default:
			m.runes[r] = id
		}
	}
	l.t.family = "BPE"
	if !fallback {
		return
	}
	l.t.family = "BPE with byte fallback"
	m.fallback = new([256]int32)
	for b := range 256 {
		m.fallback[b] = byteID(ids, byte(b))
	}
}

// byteID is the id of the token of a byte, or -1.
func byteID(ids map[string]int32, b byte) int32 {
	if id, ok := ids[fmt.Sprintf("<0x%02X>", b)]; ok {
		return id
	}
	return -1
}

// byteKeys is a vocabulary by the bytes that its tokens stand for. Tokens that
// no text can spell are left out.
func byteKeys(ids map[string]int32) map[string]int32 {
	out := make(map[string]int32, len(ids))
next:
	for tok, id := range ids {
		for _, r := range tok {
			if _, ok := byteOf(r); !ok {
				continue next
			}
		}
		out[string(appendBytes(nil, tok))] = id
	}
	return out
}

// addedTokens reads the tokens that are cut out of the text before the model
// sees it, and gives them ids as Hugging Face tokenizers does: the id of the
// vocabulary, or the next free one.
//
// Differs: a file that says otherwise is refused; the reference warns and goes
// its own way.
func (l *loader) addedTokens(list []strictjson.Value) {
	next := l.vocab
	seen := map[string]bool{}
	for i, v := range list {
		o := newObject(v, fmt.Sprintf("added_tokens[%d]", i), &l.err)
		a := added{
			id: o.int("id"), text: o.str("content"),
			word: o.bool("single_word"), left: o.bool("lstrip"), right: o.bool("rstrip"),
			normalized: o.bool("normalized"), special: o.bool("special"),
		}
		o.done()
		want, known := l.t.lookup[a.text]
		if !known {
			want = next
			next++
		}
		other, taken := l.t.words.get(a.id)
		switch {
		case a.text == "":
			o.fail("content: got nothing")
		case seen[a.text]:
			o.fail("%q stands twice among the added tokens", a.text)
		case taken && other != a.text:
			o.fail("id %d is given to %q and to %q", a.id, other, a.text)
		case a.id != want:
			o.fail("%q: got id %d, want %d, the one that a reader of this file gives it",
				a.text, a.id, want)
		}
		if l.err != nil {
			return
		}
		seen[a.text] = true
		l.t.words.set(a.id, a.text)
		l.t.lookup[a.text] = a.id
		if a.special {
			l.t.special[a.text] = true
		}
		l.add(o, a)
	}
}

// add makes a token known to the matchers.
func (l *loader) add(o *object, a added) {
	a.form = a.text
	which := &l.p.raw
	if a.normalized {
		which = &l.p.cooked
		form := []byte(a.text)
		for _, n := range l.p.norms {
			form, _ = n.normalize(nil, form)
		}
		if a.form = string(form); a.form != a.text {
			l.t.forms[a.id] = a.form
		}
	}
	if *which == nil {
		*which = newTrie()
	}
	if a.form == "" || !(*which).add(a.form, int32(len(l.p.added))) {
		o.fail("%q is normalized to %q, which is empty or another token's form", a.text, a.form)
	}
	l.p.added = append(l.p.added, a)
}
