// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"fmt"
	"maps"
	"strings"

	"pleach/internal/fault"
	"pleach/internal/strictjson"
)

// strip takes the tokens without a row out of a tokenizer: those with an id of rows
// or more, in the vocabulary, in the merges, among the added tokens, and where files
// beside name them.
func (t *tokenizer) strip(rows int) (out *tokenizer, warnings []string, err error) {
	gone := map[string]bool{}
	for text, id := range t.ids {
		if id >= rows {
			gone[text] = true
		}
	}
	if len(gone) == 0 {
		return t, nil, nil
	}
	if t.kind != "BPE" {
		return nil, nil, fault.Dataf("%d tokens have no row of the %d: got a tokenizer of the kind %s, "+
			"want BPE, of which tokens can be taken out", len(gone), rows, t.kind)
	}
	files := maps.Clone(t.files)
	e := strictjson.Edit(t.text)
	if err := t.stripModel(e, gone); err != nil {
		return nil, nil, fault.Dataf("%s: %w", fileTokenizer, err)
	}
	if v, _ := t.root.Lookup("added_tokens"); v.Kind == strictjson.Array {
		e.List(v, func(i int) bool { return !gone[content(v.Kids[i])] })
	}
	if v, _ := t.root.Lookup("padding"); mentions(v, gone) {
		e.Replace(v, "null")
		warnings = append(warnings, "the token that the tokenizer pads with has no row: padding is off")
	}
	if v, _ := t.root.Lookup("post_processor"); mentions(v, gone) {
		warnings = append(warnings, "the post-processor of the tokenizer adds a token that has no row")
	}
	files[fileTokenizer] = []byte(e.Text())
	for _, name := range []string{fileConfig, fileSpecial} {
		file, err := t.side(name)
		if err != nil {
			return nil, nil, fault.As(fault.Data, err)
		}
		if file.Kind == 0 {
			continue
		}
		text, keys := stripNames(string(t.files[name]), file, gone)
		files[name] = []byte(text)
		if len(keys) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %s: these tokens have no row and are named no more",
				name, strings.Join(keys, ", ")))
		}
	}
	out, err = newTokenizer(files, "")
	if err == nil {
		err = out.same(t.ids)
	}
	if err != nil {
		return nil, nil, fault.Dataf("without the %d tokens that have no row: %w", len(gone), err)
	}
	return out, warnings, nil
}

// stripModel takes tokens, and merges that read or make one, out of a BPE model.
func (t *tokenizer) stripModel(e *strictjson.Edits, gone map[string]bool) error {
	m, _ := t.root.Lookup("model")
	v, _ := m.Lookup("vocab")
	e.List(v, func(i int) bool { return !gone[v.Kids[2*i].Text] })
	merges, _ := m.Lookup("merges")
	if merges.Kind != strictjson.Array {
		return nil
	}
	p, _ := m.Lookup("continuing_subword_prefix")
	stays := make([]bool, len(merges.Kids))
	for i, v := range merges.Kids {
		a, b, ok := pair(v)
		if !ok {
			return v.Errorf("merges: got %v, want two tokens", v)
		}
		stays[i] = !gone[a] && !gone[b] && !gone[a+strings.TrimPrefix(b, p.Text)]
	}
	e.List(merges, func(i int) bool { return stays[i] })
	return nil
}

// pair is the tokens of a merge: "a b", or ["a", "b"].
func pair(v strictjson.Value) (a, b string, ok bool) {
	switch {
	case v.Kind == strictjson.String:
		a, b, ok = strings.Cut(v.Text, " ")
		return a, b, ok && !strings.Contains(b, " ")
	case v.Kind == strictjson.Array && len(v.Kids) == 2:
		return v.Kids[0].Text, v.Kids[1].Text,
			v.Kids[0].Kind == strictjson.String && v.Kids[1].Kind == strictjson.String
	}
	return "", "", false
}

// content is a token as files name it: a text, or an object with its contents.
func content(v strictjson.Value) string {
	if v.Kind == strictjson.Object {
		v, _ = v.Lookup("content")
	}
	if v.Kind != strictjson.String {
		return ""
	}
	return v.Text
}

// mentions says whether one of some tokens stands anywhere in a value.
func mentions(v strictjson.Value, tokens map[string]bool) bool {
	if v.Kind == strictjson.String && tokens[v.Text] {
		return true
	}
	for _, k := range v.Kids {
		if mentions(k, tokens) {
			return true
		}
	}
	return false
}

// stripNames takes tokens out of a file beside tokenizer.json. keys are the keys
// under which they were named, without added_tokens_decoder.
func stripNames(src string, file strictjson.Value, gone map[string]bool) (text string, keys []string) {
	is := map[string]bool{}
	for _, key := range append(append([]string{}, roles...), lists...) {
		is[key] = true
	}
	e := strictjson.Edit(src)
	e.List(file, func(i int) bool {
		key, v := file.Kids[2*i].Text, file.Kids[2*i+1]
		if c := content(v); is[key] && c != "" && gone[c] {
			keys = append(keys, key)
			return false
		}
		return true
	})
	for _, key := range append([]string{"added_tokens_decoder"}, lists...) {
		v, _ := file.Lookup(key)
		step := 1
		switch v.Kind {
		case strictjson.Array:
		case strictjson.Object:
			step = 2
		default:
			continue
		}
		fewer := false
		e.List(v, func(i int) bool {
			out := gone[content(v.Kids[i*step+step-1])]
			fewer = fewer || out
			return !out
		})
		if fewer && key != "added_tokens_decoder" {
			keys = append(keys, key)
		}
	}
	return e.Text(), keys
}

// same checks that every token has the id that it had.
func (t *tokenizer) same(ids map[string]int) error {
	for text, id := range t.ids {
		if was, ok := ids[text]; ok && was != id {
			return fmt.Errorf("token %q: got id %d, want %d as before", text, id, was)
		}
	}
	return nil
}
