// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"pleach/internal/strictjson"
)

// maxID bounds the ids of a file, and so the memory that a few bytes of it can
// ask for. The largest vocabularies in use have about 260 000 tokens.
const maxID = 1 << 22

// loader builds a tokenizer from a tokenizer.json. Its steps go on after a
// fault, on zero values; only the first one is told.
type loader struct {
	t     *Tokenizer
	p     *pipeline
	vocab int32 // tokens of the model
	err   error
}

func loadTokenizerJSON(src string) (*Tokenizer, error) {
	root, err := strictjson.Parse(src)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{
		lookup: map[string]int32{}, special: map[string]bool{}, forms: map[int32]string{},
		bos: -1, eos: -1,
	}
	l := &loader{t: t, p: &pipeline{report: t.report}}
	t.pipe = l.p
	o := newObject(root, "top level", &l.err)
	if v := o.str("version"); v != "1.0" && l.err == nil {
		o.fail("version: got %q, want \"1.0\"", v)
	}
	o.refuse("truncation", "padding")
	l.component(o, "normalizer", l.normalizer)
	l.component(o, "pre_tokenizer", l.preTokenizer)
	l.checkStages()
	model, _ := o.want("model", strictjson.Object, false)
	l.model(newObject(model, "model", &l.err))
	l.addedTokens(o.list("added_tokens"))
	l.component(o, "post_processor", l.postProcessor)
	l.component(o, "decoder", l.decoder)
	o.done()
	if l.err != nil {
		return nil, l.err
	}
	t.describeJSON(root)
	return t, nil
}

// component reads the object under a key, if there is one.
func (l *loader) component(o *object, key string, read func(c *object)) {
	if v, ok := o.field(key); ok {
		l.read(v, key, read)
	}
}

func (l *loader) read(v strictjson.Value, path string, read func(c *object)) {
	if l.err != nil {
		return
	}
	c := newObject(v, path, &l.err)
	read(c)
	c.done()
}

func (l *loader) sequence(c *object, key string, read func(c *object)) {
	for i, v := range c.list(key) {
		l.read(v, fmt.Sprintf("%s.%s[%d]", c.path, key, i), read)
	}
}

func (l *loader) normalizer(c *object) {
	add := func(n normalizer) { l.p.norms = append(l.p.norms, n) }
	switch typ := c.str("type"); typ {
	case "Sequence":
		l.sequence(c, "normalizers", l.normalizer)
	case "Prepend":
		add(prepend(c.str("prepend")))
	case "Replace":
		text, re := l.pattern(c)
		to := []byte(c.str("content"))
		if re != nil {
			add(replacePattern{re, to, l.t.report})
		} else {
			add(replace{[]byte(text), to})
		}
	case "NFC":
		add(form(norm.NFC))
	case "NFD":
		add(form(norm.NFD))
	case "NFKC":
		add(form(norm.NFKC))
	case "NFKD":
		add(form(norm.NFKD))
	case "Lowercase":
		add(lowercase{})
	case "Strip":
		add(strip{c.bool("strip_left"), c.bool("strip_right")})
	case "StripAccents":
		add(stripAccents{})
	case "Precompiled":
		l.precompiled(c, add)
	default:
		c.fail("unknown type %q", typ)
	}
}

func (l *loader) precompiled(c *object, add func(normalizer)) {
	b, err := base64.StdEncoding.Strict().DecodeString(c.str("precompiled_charsmap"))
	if err != nil {
		c.fail("precompiled_charsmap: %v", err)
		return
	}
	m, err := parseCharsmap(b)
	if err == nil && !utf8.Valid(m.texts) {
		err = fmt.Errorf("character map: the texts are not UTF-8")
	}
	if err != nil {
		c.fail("precompiled_charsmap: %v", err)
		return
	}
	add(newPrecompiled(m))
}

// pattern is the field pattern: a fixed text, or a regular expression.
func (l *loader) pattern(c *object) (text string, re *pattern) {
	v, _ := c.want("pattern", strictjson.Object, false)
	p := newObject(v, c.path+".pattern", &l.err)
	if _, ok := p.field("String"); ok {
		if text = p.str("String"); text == "" {
			p.fail("String: got nothing to look for")
		}
		p.done()
		return text, nil
	}
	expr := p.str("Regex")
	p.done()
	if l.err != nil {
		return "", nil
	}
	re, err := compile(expr)
	if err != nil {
		p.fail("Regex: %v", err)
	}
	return expr, re
}

func (l *loader) preTokenizer(c *object) {
	add := func(s stage) { l.p.stages = append(l.p.stages, s) }
	switch typ := c.str("type"); typ {
	case "Sequence":
		l.sequence(c, "pretokenizers", l.preTokenizer)
	case "ByteLevel":
		if c.bool("add_prefix_space") {
			add(prefixSpace{})
		}
		if c.optBool("use_regex", true) {
			add(scanStage{scanGPT2})
		}
		c.ignore("trim_offsets")
		add(bytesStage{})
	case "Split":
		l.splitter(c, add)
	case "Metaspace":
		add(l.metaspace(c))
	case "Digits":
		b := contiguous
		if c.bool("individual_digits") {
			b = isolated
		}
		add(classStage{isNumeric, b})
	case "Punctuation":
		add(classStage{isPunct, behaviorOf(c, "Isolated")})
	case "Whitespace":
		add(wordStage{})
	case "WhitespaceSplit":
		add(classStage{isSpace, removed})
	default:
		c.fail("unknown type %q", typ)
	}
}

// bytesStage marks the place where characters become bytes. It does nothing,
// and nothing may follow it.
type bytesStage struct{}

func (bytesStage) split(l *level, s []byte, _ bool) []byte {
	l.spans = append(l.spans, span{0, len(s), false})
	return s
}

// checkStages takes the mark off the end: from there on the model counts bytes.
func (l *loader) checkStages() {
	l.p.model = &model{unk: -1}
	for i, s := range l.p.stages {
		if _, ok := s.(bytesStage); !ok {
			continue
		}
		if i != len(l.p.stages)-1 && l.err == nil {
			l.err = fmt.Errorf("pre_tokenizer: ByteLevel is not last: not supported")
		}
		l.p.stages = l.p.stages[:i]
		l.p.model.byteLevel = true
		return
	}
}

func (l *loader) splitter(c *object, add func(stage)) {
	b := behaviorOf(c, "")
	invert := c.bool("invert")
	if v, ok := c.field("pattern"); ok && len(v.Kids) == 2 {
		// These patterns cover any text, so every piece is a match: all are kept
		// with Isolated, and where what is no match is Removed.
		re, _ := v.Lookup("Regex")
		if sc := scannerFor(re.Text); sc != nil && (b == isolated || b == removed && invert) {
			add(scanStage{sc})
			return
		}
	}
	text, re := l.pattern(c)
	if re != nil {
		add(patternStage{re, invert, b})
		return
	}
	add(textStage{[]byte(text), invert, b})
}

func behaviorOf(c *object, def string) behavior {
	names := []string{"Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"}
	values := []behavior{isolated, removed, contiguous, mergedPrev, mergedNext}
	s := c.oneOf("behavior", def, names...)
	for i, n := range names {
		if s == n {
			return values[i]
		}
	}
	return isolated
}

func (l *loader) metaspace(c *object) metaspace {
	mark := c.str("replacement")
	if utf8.RuneCountInString(mark) != 1 {
		c.fail("replacement: got %q, want one character", mark)
	}
	scheme := c.oneOf("prepend_scheme", "always", "always", "first", "never")
	if !c.optBool("add_prefix_space", true) {
		if _, ok := c.field("prepend_scheme"); ok && scheme != "never" {
			c.fail("add_prefix_space is false, but prepend_scheme is %q", scheme)
		}
		scheme = "never"
	}
	c.ignore("str_rep")
	return metaspace{[]byte(mark), scheme, c.optBool("split", true)}
}

func (l *loader) postProcessor(c *object) {
	switch typ := c.str("type"); typ {
	case "Sequence":
		l.sequence(c, "processors", l.postProcessor)
	case "ByteLevel":
		c.ignore("add_prefix_space", "trim_offsets", "use_regex")
	case "TemplateProcessing":
		c.ignore("pair")
		l.template(c)
	default:
		c.fail("unknown type %q", typ)
	}
}

// template reads what stands around a single text. The reference has no answer
// to a second template in a sequence.
func (l *loader) template(c *object) {
	if l.t.parts != nil {
		c.fail("a second TemplateProcessing: not supported")
	}
	v, _ := c.want("special_tokens", strictjson.Object, false)
	tokens := map[string][]int32{}
	for name, field := range v.Fields() {
		o := newObject(field, c.path+".special_tokens."+name, &l.err)
		o.ignore("id", "tokens")
		for _, id := range o.list("ids") {
			tokens[name] = append(tokens[name], l.knownID(o, id))
		}
		o.done()
	}
	parts := []part{}
	for i, v := range c.list("single") {
		path := fmt.Sprintf("%s.single[%d]", c.path, i)
		piece := newObject(v, path, &l.err)
		if s, ok := piece.field("Sequence"); ok {
			if id := l.pieceID(s, path); id != "A" && l.err == nil {
				piece.fail("Sequence: got %q, want \"A\"", id)
			}
			parts = append(parts, part{text: true})
		} else {
			s, _ := piece.want("SpecialToken", strictjson.Object, false)
			id := l.pieceID(s, path)
			ids, ok := tokens[id]
			if !ok {
				piece.fail("%q is not among special_tokens", id)
			}
			parts = append(parts, part{ids: ids})
		}
		piece.done()
	}
	l.t.parts = parts
}

func (l *loader) pieceID(v strictjson.Value, path string) string {
	o := newObject(v, path, &l.err)
	id := o.str("id")
	o.ignore("type_id")
	o.done()
	return id
}

func (l *loader) knownID(o *object, v strictjson.Value) int32 {
	id := o.number("ids", v)
	if _, ok := l.t.words.get(id); !ok {
		o.fail("ids: %d is no token", id)
	}
	return id
}

func (l *loader) decoder(c *object) {
	add := func(s decodeStep) { l.t.steps = append(l.t.steps, s) }
	if l.t.steps == nil {
		l.t.steps = []decodeStep{} // an empty sequence is not a missing decoder
	}
	switch typ := c.str("type"); typ {
	case "Sequence":
		l.sequence(c, "decoders", l.decoder)
	case "ByteLevel":
		c.ignore("add_prefix_space", "trim_offsets", "use_regex")
		add(byteLevelStep())
	case "Metaspace":
		m := l.metaspace(c)
		add(metaspaceStep(string(m.mark), m.scheme != "never"))
	case "Replace":
		text, re := l.pattern(c)
		to := c.str("content")
		if re != nil {
			add(replacePatternStep(re, to, l.t.report))
		} else {
			add(replaceStep(text, to))
		}
	case "ByteFallback":
		add(byteFallbackStep())
	case "Fuse":
		add(fuseStep())
	case "Strip":
		mark := c.str("content")
		if utf8.RuneCountInString(mark) != 1 {
			c.fail("content: got %q, want one character", mark)
		}
		add(stripStep(mark, int(c.int("start")), int(c.int("stop"))))
	default:
		c.fail("unknown type %q", typ)
	}
}
