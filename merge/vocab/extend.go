// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"fmt"
	"maps"
	"strconv"

	"pleach/internal/fault"
	"pleach/internal/strictjson"
)

// addition is a token that the tokenizer of the output gets.
type addition struct {
	text string
	flags
}

// extend is a tokenizer with more added tokens. They get the next ids, but for those
// that the tokenizer's model knows, which keep theirs. Tokens that only files beside
// name are listed from here on, in front of them.
func (t *tokenizer) extend(more []addition) (*tokenizer, error) {
	model, _ := t.root.Lookup("model")
	known := map[string]bool{}
	if v, _ := model.Lookup("vocab"); v.Kind == strictjson.Object {
		for text := range v.Fields() {
			known[text] = true
		}
	} else {
		for _, v := range v.Kids {
			known[v.Kids[0].Text] = true
		}
	}
	var all []addition
	for _, a := range t.list {
		if a.implied && !known[a.text] {
			all = append(all, addition{a.text, a.flags})
		}
	}
	if all = append(all, more...); len(all) == 0 {
		return t, nil
	}
	grown := maps.Clone(t.ids)
	next := t.next
	var entries []string
	for _, a := range all {
		id, ok := grown[a.text]
		if !ok {
			id = next
			grown[a.text] = id
		}
		next = max(next, id+1)
		entries = append(entries, fmt.Sprintf(`{"id": %d, "content": %s, %s}`,
			id, strictjson.Quote(a.text), a.json()))
	}
	e := strictjson.Edit(t.text)
	switch v, ok := t.root.Lookup("added_tokens"); {
	case v.Kind == strictjson.Array:
		e.List(v, nil, entries...)
	case ok:
		e.Replace(v, array(entries))
	default:
		e.List(t.root, nil, `"added_tokens": `+array(entries))
	}
	files := maps.Clone(t.files)
	files[fileTokenizer] = []byte(e.Text())
	if err := t.extendConfig(files, grown, all); err != nil {
		return nil, fault.Dataf("vocab: %w", err)
	}
	out, err := newTokenizer(files, "")
	if err == nil {
		err = out.same(grown)
	}
	if err != nil {
		return nil, fault.Dataf("vocab: with %d more tokens: %w", len(more), err)
	}
	return out, nil
}

// extendConfig adds tokens to added_tokens_decoder of tokenizer_config.json, which
// repeats the added tokens in most files.
func (t *tokenizer) extendConfig(files map[string][]byte, ids map[string]int, more []addition) error {
	config, err := t.side(fileConfig)
	if err != nil {
		return err
	}
	v, _ := config.Lookup("added_tokens_decoder")
	if v.Kind != strictjson.Object {
		return nil
	}
	there := map[string]bool{}
	stays := make([]bool, 0, len(v.Kids)/2)
	for key, v := range v.Fields() {
		text := content(v)
		ok := key == strconv.Itoa(ids[text])
		there[text] = there[text] || ok
		stays = append(stays, ok)
	}
	var entries []string
	for _, a := range more {
		if !there[a.text] {
			entries = append(entries, fmt.Sprintf(`"%d": {"content": %s, %s}`,
				ids[a.text], strictjson.Quote(a.text), a.json()))
		}
	}
	e := strictjson.Edit(string(t.files[fileConfig]))
	e.List(v, func(i int) bool { return stays[i] }, entries...)
	files[fileConfig] = []byte(e.Text())
	return nil
}

func (f flags) json() string {
	return fmt.Sprintf(`"single_word": %t, "lstrip": %t, "rstrip": %t, "normalized": %t, "special": %t`,
		f.word, f.left, f.right, f.normalized, f.special)
}

func array(elements []string) string {
	src := "[]"
	v, _ := strictjson.Parse(src)
	e := strictjson.Edit(src)
	e.List(v, nil, elements...)
	return e.Text()
}
