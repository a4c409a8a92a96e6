// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Tokenizer turns text into ids and back. It does not change after [Open] or
// [Train], and any number of goroutines may use it at once.
type Tokenizer struct {
	family string
	words  vocabulary
	lookup map[string]int32 // token → id, added tokens included

	pipe    *pipeline // of a tokenizer.json, or
	sp      *spModel  // of a SentencePiece model
	parts   []part    // what the post-processor makes of a text; nil: the text
	steps   []decodeStep
	special map[string]bool  // tokens that DecodeText leaves out
	forms   map[int32]string // what decoding sees where it is not the token

	bos, eos int32 // -1: none
	files    map[string][]byte
	about    [][2]string // for Describe

	ready  sync.Once // for prepare
	pool   sync.Pool // of *work
	failed atomic.Pointer[error]
}

// part is one piece of a post-processor's template: ids, or the text.
type part struct {
	ids  []int32
	text bool
}

// vocabulary is the tokens by id; ids may have gaps.
type vocabulary struct {
	tokens []string
	has    []bool
}

func (v *vocabulary) set(id int32, tok string) {
	for int(id) >= len(v.tokens) {
		v.tokens = append(v.tokens, "")
		v.has = append(v.has, false)
	}
	v.tokens[id], v.has[id] = tok, true
}

func (v *vocabulary) get(id int32) (string, bool) {
	if id < 0 || int(id) >= len(v.tokens) || !v.has[id] {
		return "", false
	}
	return v.tokens[id], true
}

// Encode appends the ids of text to dst, without those of the post-processor.
//
// text need not be UTF-8. A byte-level tokenizer encodes any bytes, so that
// [Tokenizer.Decode] gives them back; for the others U+FFFD stands in for what
// is wrong, as their references do.
//
// Differs: Hugging Face tokenizers takes valid strings only. On those the ids
// are equal.
func (t *Tokenizer) Encode(dst []int32, text []byte) []int32 {
	w := t.take()
	defer t.give(w)
	if t.sp != nil {
		return t.sp.encode(w, dst, text)
	}
	return t.pipe.encode(w, dst, text)
}

// EncodeSpecial appends the ids of text with the tokens that the post-processor
// puts around it, such as begin-of-sequence.
func (t *Tokenizer) EncodeSpecial(dst []int32, text []byte) []int32 {
	if t.parts == nil {
		return t.Encode(dst, text)
	}
	for _, p := range t.parts {
		if p.text {
			dst = t.Encode(dst, text)
		}
		dst = append(dst, p.ids...)
	}
	return dst
}

// take is memory for one call.
func (t *Tokenizer) take() *work {
	if w, ok := t.pool.Get().(*work); ok {
		return w
	}
	t.ready.Do(t.prepare)
	w := &work{cache: new(wordCache)}
	if t.pipe != nil {
		w.levels = make([]level, len(t.pipe.stages))
	}
	return w
}

// prepare makes the tables for encoding, when it is first done.
func (t *Tokenizer) prepare() {
	if t.sp != nil {
		t.sp.model.prepare(t.sp.spec.escape && t.sp.rules == nil && !t.sp.spec.suffix)
		return
	}
	t.pipe.prepare()
}

// keep is how long a word, or a text under work, may be for its memory to be
// kept: more is given back to the collector after the call.
const keep = 1 << 20

func (t *Tokenizer) give(w *work) {
	if cap(w.sym) > keep {
		w.merger = merger{}
	}
	if cap(w.lattice.nodes) > keep {
		w.lattice.nodes, w.lattice.path = nil, nil
	}
	if cap(w.bufs[0]) > 8*keep || cap(w.bufs[1]) > 8*keep || cap(w.clean) > 8*keep {
		w.bufs, w.clean = [2][]byte{}, nil
	}
	for i := range w.levels {
		if l := &w.levels[i]; cap(l.spans) > keep || cap(l.text) > 8*keep || cap(l.runes) > keep {
			*l = level{}
		}
	}
	t.pool.Put(w)
}

// Decode is the text of ids, special tokens included, as they are written. Ids
// without a token are passed over.
//
// Differs: of a byte-level tokenizer the bytes come back as they are, where
// the reference puts U+FFFD for what is not UTF-8.
func (t *Tokenizer) Decode(ids []int32) string {
	return t.decode(t.newDecoder(false, true), ids)
}

// DecodeText is the text of ids without the special tokens, always UTF-8: for
// showing what a model wrote.
func (t *Tokenizer) DecodeText(ids []int32) string {
	return t.decode(t.newDecoder(true, false), ids)
}

// Stream starts to decode ids one by one. The pieces joined, with the one of
// Flush, are what [Tokenizer.DecodeText] says of all the ids.
func (t *Tokenizer) Stream() *Decoder { return t.newDecoder(true, false) }

func (t *Tokenizer) newDecoder(skip, raw bool) *Decoder {
	d := &Decoder{t: t, skip: skip}
	d.in = d.newSink(t.steps, raw)
	return d
}

func (t *Tokenizer) decode(d *Decoder, ids []int32) string {
	for _, id := range ids {
		d.push(id)
	}
	d.end()
	return string(d.out)
}

// shown is the form of a token that the decoder sees.
func (t *Tokenizer) shown(id int32) (string, bool) {
	if s, ok := t.forms[id]; ok {
		return s, true
	}
	return t.words.get(id)
}

// Size is the largest id plus one: the least number of rows that an embedding
// for these tokens has.
func (t *Tokenizer) Size() int { return len(t.words.tokens) }

// Token is the token of an id, as the vocabulary writes it.
func (t *Tokenizer) Token(id int32) (string, bool) { return t.words.get(id) }

// ID is the id of a token, as the vocabulary writes it.
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.lookup[token]
	return id, ok
}

// BOS is the begin-of-sequence token: what the files beside the tokenizer
// call bos_token, else the one of the SentencePiece model, else a token with
// one of the usual names.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// EOS is the end-of-sequence token, found as in [Tokenizer.BOS].
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos >= 0 }

// Files is what to copy beside a model: file names and contents, as they were
// read or as [Train] made them. A SentencePiece model that stands alone gets a
// tokenizer_config.json that tells Hugging Face tools what it is. The contents
// are shared and must not be changed.
func (t *Tokenizer) Files() map[string][]byte { return maps.Clone(t.files) }

// Err is the first failure of a splitting pattern since the tokenizer was
// opened: a match that took too long or too much memory. The text that it
// happened in was encoded, from there on, without splitting. Patterns with a
// scanner of their own do not fail.
func (t *Tokenizer) Err() error {
	if e := t.failed.Load(); e != nil {
		return *e
	}
	return nil
}

func (t *Tokenizer) report(err error) { t.failed.CompareAndSwap(nil, &err) }
