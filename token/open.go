// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pleach/internal/fault"
	"pleach/internal/strictjson"
)

// Names of the files of a tokenizer in a model directory.
const (
	nameJSON    = "tokenizer.json"
	namePiece   = "tokenizer.model"
	nameConfig  = "tokenizer_config.json"
	nameSpecial = "special_tokens_map.json"
)

// maxFile bounds what is read into memory. The largest tokenizer.json in use
// has 35 MB.
const maxFile = 512 << 20

// Open reads a tokenizer: a directory, in which tokenizer.json wins over
// tokenizer.model, or a file of any name, recognised by its content. Beside a
// file with its usual name, tokenizer_config.json and special_tokens_map.json
// are read too.
//
// Whatever would make ids differ from those of the reference is refused by
// name. Errors are of the kind [fault.Data].
func Open(path string) (*Tokenizer, error) {
	file, dir := path, filepath.Dir(path)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Dataf("token: %w", err)
	}
	if info.IsDir() {
		dir = path
		if file, err = choose(path); err != nil {
			return nil, err
		}
	}
	b, err := readFile(file)
	if err != nil {
		return nil, err
	}
	t, err := parse(b)
	if err != nil {
		return nil, fault.Dataf("token: %s: %w", file, err)
	}
	name := nameJSON
	if t.sp != nil {
		name = namePiece
	}
	t.files = map[string][]byte{name: b}
	if filepath.Base(file) == name {
		for _, side := range []string{nameConfig, nameSpecial} {
			if err := t.readSide(filepath.Join(dir, side)); err != nil {
				return nil, err
			}
		}
	}
	t.usualNames()
	if t.sp != nil && t.files[nameConfig] == nil {
		t.files[nameConfig] = t.pieceConfig()
	}
	return t, nil
}

// pieceConfig is a tokenizer_config.json for a SentencePiece model that has none.
// Without one, transformers reads the model as a byte-level vocabulary and makes
// other ids, without a word. Its LlamaTokenizer, which all versions have, knows
// the settings of Llama only; SentencePieceBackend is of version 5.
func (t *Tokenizer) pieceConfig() []byte {
	class := "SentencePieceBackend"
	if s := t.sp.spec; t.sp.model.unigram == nil && t.sp.rules == nil && s.prefix && s.escape && s.fallback && !s.trim && !s.suffix {
		class = "LlamaTokenizer"
	}
	b := fmt.Appendf(nil, "{\n  \"tokenizer_class\": %s", quote(class))
	for _, e := range []struct {
		key string
		id  int32
	}{{"bos_token", t.bos}, {"eos_token", t.eos}} {
		if name, ok := t.Token(e.id); ok {
			b = fmt.Appendf(b, ",\n  \"%s\": %s", e.key, quote(name))
		}
	}
	return append(b, "\n}\n"...)
}

func choose(dir string) (string, error) {
	for _, name := range []string{nameJSON, namePiece} {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", fault.Dataf("token: %s: neither %s nor %s is there", dir, nameJSON, namePiece)
}

func readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxFile {
		return nil, fault.Dataf("token: %s: %d bytes, want at most %d", file, info.Size(), maxFile)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Dataf("token: %w", err)
	}
	return b, nil
}

// parse reads a tokenizer.json or a SentencePiece model. A JSON object begins
// with a brace, which as the tag of a protobuf field would be an end-group
// without a start.
func parse(b []byte) (*Tokenizer, error) {
	if s := bytes.TrimLeft(b, " \t\r\n"); len(s) > 0 && s[0] == '{' {
		return loadTokenizerJSON(string(b))
	}
	f, err := parseSentencePiece(b)
	if err != nil {
		return nil, fmt.Errorf("neither JSON nor a SentencePiece model: %w", err)
	}
	return newSentencePiece(f)
}

// readSide takes the names of the begin- and end-of-sequence tokens from a file
// beside the tokenizer, if it is there. tokenizer_config.json, read first, wins.
func (t *Tokenizer) readSide(file string) error {
	b, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	root, err := strictjson.Parse(string(b))
	if err == nil && root.Kind != strictjson.Object {
		err = fmt.Errorf("got %v, want an object", root)
	}
	if err != nil {
		return fault.Dataf("token: %s: %w", file, err)
	}
	_, second := t.files[nameConfig]
	t.files[filepath.Base(file)] = b
	for _, e := range []struct {
		key string
		id  *int32
	}{{"bos_token", &t.bos}, {"eos_token", &t.eos}} {
		tok, ok := tokenName(root, e.key)
		if !ok || second && t.named(e.key) {
			continue
		}
		id, known := t.lookup[tok]
		if !known {
			return fault.Dataf("token: %s: %s: %q is no token of %s", file, e.key, tok, t.family)
		}
		*e.id = id
	}
	return nil
}

// named reports whether tokenizer_config.json names a token.
func (t *Tokenizer) named(key string) bool {
	root, err := strictjson.Parse(string(t.files[nameConfig]))
	_, ok := tokenName(root, key)
	return err == nil && ok
}

// tokenName is a token as a side file gives it: a string, or an object with
// its contents.
func tokenName(root strictjson.Value, key string) (string, bool) {
	switch v, _ := root.Lookup(key); v.Kind {
	case strictjson.String:
		return v.Text, v.Text != ""
	case strictjson.Object:
		return tokenName(v, "content")
	}
	return "", false
}

// usualNames fills in what no file says.
func (t *Tokenizer) usualNames() {
	find := func(id *int32, names ...string) {
		for _, n := range names {
			if v, ok := t.lookup[n]; ok && *id < 0 {
				*id = v
			}
		}
	}
	find(&t.bos, bosNames()...)
	find(&t.eos, eosNames()...)
}

func bosNames() []string { return []string{"<s>", "<|begin_of_text|>", "<bos>"} }

func eosNames() []string {
	return []string{"</s>", "<|end_of_text|>", endOfText, "<eos>"}
}
