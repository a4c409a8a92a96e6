// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"fmt"
	"strings"

	"pleach/internal/strictjson"
)

// Describe says what the tokenizer is made of, one fact a line.
func (t *Tokenizer) Describe() string {
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s %s\n", key, fmt.Sprintf(format, args...))
	}
	known := 0
	for _, has := range t.words.has {
		if has {
			known++
		}
	}
	line("family", "%s", t.family)
	line("tokens", "%d, ids up to %d", known, t.Size()-1)
	for _, kv := range t.about {
		line(kv[0], "%s", kv[1])
	}
	for _, e := range []struct {
		key string
		id  int32
	}{{"bos", t.bos}, {"eos", t.eos}} {
		if tok, ok := t.Token(e.id); ok {
			line(e.key, "%d %q", e.id, tok)
		} else {
			line(e.key, "none")
		}
	}
	return b.String()
}

func (t *Tokenizer) note(key, value string) { t.about = append(t.about, [2]string{key, value}) }

func (t *Tokenizer) describeJSON(root strictjson.Value) {
	if m := t.pipe.model.merges; m != nil {
		t.note("merges", fmt.Sprint(m.size))
	}
	for _, key := range []string{"normalizer", "pre_tokenizer", "post_processor", "decoder"} {
		if v, ok := root.Lookup(key); ok {
			t.note(key, outline(v))
		}
	}
	special := 0
	for _, a := range t.pipe.added {
		if a.special {
			special++
		}
	}
	t.note("added tokens", fmt.Sprintf("%d, of which %d special", len(t.pipe.added), special))
	t.note("unicode", UnicodeVersion)
}

// outline is the type of a component, and of those inside it.
func outline(v strictjson.Value) string {
	if v.Kind != strictjson.Object {
		return "none"
	}
	var name string
	var inner []string
	for key, field := range v.Fields() {
		switch key {
		case "type":
			name = field.Text
		case "normalizers", "pretokenizers", "processors", "decoders":
			for _, k := range field.Kids {
				inner = append(inner, outline(k))
			}
		}
	}
	if inner != nil {
		return name + "(" + strings.Join(inner, ", ") + ")"
	}
	return name
}

func (t *Tokenizer) describeSentencePiece(f *spFile) {
	t.note("normalizer", f.spec.name)
	t.note("byte fallback", fmt.Sprint(f.spec.fallback))
	t.note("space in front", fmt.Sprint(f.spec.prefix))
	t.note("spaces joined", fmt.Sprint(f.spec.trim))
}
