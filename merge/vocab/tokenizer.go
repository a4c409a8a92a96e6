// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"pleach/internal/fault"
	"pleach/internal/strictjson"
	"pleach/token"
)

// Names of files of a tokenizer.
const (
	fileTokenizer = "tokenizer.json"
	fileConfig    = "tokenizer_config.json"
	fileSpecial   = "special_tokens_map.json"
)

// beside are the files that go with tokenizer.json into the output. Those that
// repeat the vocabulary in another format do not.
var beside = []string{
	fileConfig, fileSpecial, "chat_template.jinja", "chat_template.json",
}

// most bounds ids, and so the memory that a few bytes of a file can ask for.
const most = 1 << 22

// added is a token that is searched for in a text before the tokenizer's model
// sees it.
type added struct {
	text string
	id   int
	flags

	// implied says that no tokenizer.json lists it, only a file beside it does.
	implied bool
}

// flags say how an added token is searched for.
type flags struct{ word, left, right, normalized, special bool }

// tokenizer is what the files of a model say of its tokens.
type tokenizer struct {
	files map[string][]byte // by name

	root strictjson.Value // tokenizer.json
	text string           // the same
	kind string           // of the tokenizer's model: BPE, Unigram, …
	next int              // the id of the next added token

	ids    map[string]int // of all tokens
	texts  map[int]string // the same
	list   []added        // in the order of the file, implied ones last
	listed map[string]int // index in list
}

// read reads the tokenizer in a folder. A model of SentencePiece without a
// tokenizer.json gives tokens only.
func read(dir string) (*tokenizer, error) {
	files := map[string][]byte{}
	for _, name := range append([]string{fileTokenizer}, beside...) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			files[name] = b
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fault.As(fault.Machine, err)
		}
	}
	t, err := newTokenizer(files, dir)
	if err != nil {
		return nil, fault.Dataf("%s: %w", dir, err)
	}
	return t, nil
}

// newTokenizer reads a tokenizer in files; without a tokenizer.json among them, that
// of SentencePiece in a folder.
func newTokenizer(files map[string][]byte, dir string) (*tokenizer, error) {
	t := &tokenizer{
		files: files, ids: map[string]int{}, texts: map[int]string{}, listed: map[string]int{},
	}
	src, ok := files[fileTokenizer]
	var err error
	if ok {
		if err = t.parse(string(src)); err != nil {
			err = fmt.Errorf("%s: %w", fileTokenizer, err)
		}
	} else {
		err = t.pieces(dir)
	}
	if err != nil {
		return nil, err
	}
	return t, t.implied()
}

// json says whether there is a tokenizer.json.
func (t *tokenizer) json() bool { return t.root.Kind != 0 }

// pieces takes the tokens of a SentencePiece model.
func (t *tokenizer) pieces(dir string) error {
	sp, err := token.Open(dir)
	if err != nil {
		return err
	}
	for id := range sp.Size() {
		if text, ok := sp.Token(int32(id)); ok {
			t.set(text, id)
		}
	}
	t.next = len(t.ids)
	for _, id := range []func() (int32, bool){sp.BOS, sp.EOS} {
		if id, ok := id(); ok {
			text, _ := sp.Token(id)
			if err := t.imply(text, flags{special: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// parse takes the tokens of a tokenizer.json.
func (t *tokenizer) parse(src string) (err error) {
	t.text = src
	if t.root, err = strictjson.Parse(src); err != nil {
		return err
	}
	if err := t.model(); err != nil {
		return err
	}
	v, _ := t.root.Lookup("added_tokens")
	if v.Kind == 0 || v.Kind == strictjson.Null {
		return nil
	}
	if v.Kind != strictjson.Array {
		return v.Errorf("added_tokens: got %v, want an array", v)
	}
	for _, v := range v.Kids {
		text, f, err := readAdded(v)
		if err != nil {
			return err
		}
		if _, again := t.listed[text]; again {
			return v.Errorf("added_tokens: %q stands there twice", text)
		}
		// A file that says another id is read with this one all the same.
		if err := t.add(text, f, false); err != nil {
			return err
		}
	}
	return nil
}

// model takes the tokens of the tokenizer's model: an object of ids, or an array of
// pieces with scores.
func (t *tokenizer) model() error {
	m, ok := t.root.Lookup("model")
	if !ok || m.Kind != strictjson.Object {
		return t.root.Errorf("model: got %v, want an object", m)
	}
	kind, _ := m.Lookup("type")
	if t.kind = kind.Text; kind.Kind == 0 {
		t.kind = "BPE"
	}
	v, _ := m.Lookup("vocab")
	switch v.Kind {
	case strictjson.Object:
		for text, v := range v.Fields() {
			id, ok := v.Int64()
			if !ok || id < 0 || id >= most {
				return v.Errorf("id of %q: got %v, want a whole number from 0 to %d", text, v, most-1)
			}
			if other, taken := t.texts[int(id)]; taken {
				return v.Errorf("id %d is given to %q and to %q", id, other, text)
			}
			t.set(text, int(id))
		}
	case strictjson.Array:
		for id, v := range v.Kids {
			if v.Kind != strictjson.Array || len(v.Kids) != 2 || v.Kids[0].Kind != strictjson.String {
				return v.Errorf("vocab: got %v, want a piece with its score", v)
			}
			if other, again := t.ids[v.Kids[0].Text]; again {
				return v.Errorf("vocab: %q has the ids %d and %d", v.Kids[0].Text, other, id)
			}
			t.set(v.Kids[0].Text, id)
		}
	default:
		return m.Errorf("vocab: got %v, want an object or an array", v)
	}
	t.next = len(t.ids)
	return nil
}

func (t *tokenizer) set(text string, id int) { t.ids[text], t.texts[id] = id, text }

// add makes a token an added token. A new one gets the id that a reader of the file
// gives it, which counts on from the tokens that are there, whatever the file says.
func (t *tokenizer) add(text string, f flags, implied bool) error {
	id, known := t.ids[text]
	if !known {
		id = t.next
		if other, taken := t.texts[id]; taken {
			return fmt.Errorf("added token %q gets id %d, which is that of %q: there are %d tokens, and ids beyond",
				text, id, other, len(t.ids))
		}
		t.set(text, id)
	}
	t.next = max(t.next, id+1)
	t.listed[text] = len(t.list)
	t.list = append(t.list, added{text, id, f, implied})
	return nil
}

// readAdded reads an element of added_tokens, or of added_tokens_decoder.
func readAdded(v strictjson.Value) (text string, f flags, err error) {
	c, _ := v.Lookup("content")
	if c.Kind != strictjson.String || c.Text == "" {
		return "", f, v.Errorf("an added token: content: got %v, want a text", c)
	}
	for _, e := range []struct {
		key string
		to  *bool
	}{
		{"single_word", &f.word},
		{"lstrip", &f.left},
		{"rstrip", &f.right},
		{"normalized", &f.normalized},
		{"special", &f.special},
	} {
		switch v, _ := v.Lookup(e.key); v.Kind {
		case strictjson.True:
			*e.to = true
		case strictjson.False, 0:
		default:
			return "", f, v.Errorf("added token %q: %s: got %v, want true or false", c.Text, e.key, v)
		}
	}
	return c.Text, f, nil
}

// implied adds the tokens that only the files beside tokenizer.json name, as
// transformers does when it loads them.
func (t *tokenizer) implied() error {
	config, err := t.side(fileConfig)
	if err != nil {
		return err
	}
	special, err := t.side(fileSpecial)
	if err != nil {
		return err
	}
	type numbered struct {
		id    int64
		value strictjson.Value
	}
	var list []numbered
	decoder, _ := config.Lookup("added_tokens_decoder")
	for key, v := range decoder.Fields() {
		id, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: added_tokens_decoder: the key %q is no id", fileConfig, key)
		}
		list = append(list, numbered{id, v})
	}
	slices.SortStableFunc(list, func(a, b numbered) int { return cmp.Compare(a.id, b.id) })
	for _, n := range list {
		text, f, err := readAdded(n.value)
		if err != nil {
			return fmt.Errorf("%s: %w", fileConfig, err)
		}
		if err := t.imply(text, f); err != nil {
			return err
		}
	}
	for _, v := range append(named(config), named(special)...) {
		if text, f, ok := readNamed(v); ok {
			if err := t.imply(text, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tokenizer) imply(text string, f flags) error {
	if _, ok := t.listed[text]; ok {
		return nil
	}
	return t.add(text, f, true)
}

// side parses a file beside tokenizer.json, if it is there.
func (t *tokenizer) side(name string) (strictjson.Value, error) {
	b, ok := t.files[name]
	if !ok {
		return strictjson.Value{}, nil
	}
	v, err := strictjson.ParseFile(name, string(b))
	if err == nil && v.Kind != strictjson.Object {
		err = fmt.Errorf("%s: got %v, want an object", name, v)
	}
	return v, err
}

// roles are the keys under which special tokens are named, in the order in which
// transformers adds them.
var roles = []string{
	"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
}

// lists are the keys with several special tokens: an array, or an object of roles.
var lists = []string{"additional_special_tokens", "extra_special_tokens"}

// named is the special tokens that a file beside tokenizer.json names.
func named(file strictjson.Value) []strictjson.Value {
	var vs []strictjson.Value
	for _, key := range roles {
		if v, ok := file.Lookup(key); ok {
			vs = append(vs, v)
		}
	}
	for _, key := range lists {
		v, _ := file.Lookup(key)
		switch v.Kind {
		case strictjson.Array:
			vs = append(vs, v.Kids...)
		case strictjson.Object:
			for _, v := range v.Fields() {
				vs = append(vs, v)
			}
		}
	}
	return vs
}

// readNamed reads a special token as files name it: a text, or an object.
func readNamed(v strictjson.Value) (text string, f flags, ok bool) {
	if v.Kind == strictjson.String && v.Text != "" {
		return v.Text, flags{special: true}, true
	}
	if v.Kind != strictjson.Object {
		return "", f, false
	}
	text, f, err := readAdded(v)
	f.special = true
	return text, f, err == nil
}
