// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package vocab

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pleach/internal/fault"
	"pleach/token"
)

// builder is the work of Build.
type builder struct {
	models []Model
	o      Options
	toks   []*tokenizer // of each model; the base's in the place of one that cannot be read
	read   []bool       // whether it is the model's own
	warn   []string
}

// Build makes the vocabulary of the output:
//
//   - base: the tokens of the base that have a row;
//   - a model: the tokens of the model, whether they have a row or not;
//   - union: those of the base, then the regular tokens of the other models, then
//     their added tokens, each model in turn by ascending id. All of them are added
//     tokens of the output. What several models add is as the base adds it, else as
//     the first model does.
//
// Behind them come the tokens that the configuration lists and the vocabulary does
// not have. Ids of tokens that were there stay.
//
// Differs: mergekit gives new tokens ids in an order that varies; it takes tokens
// without a row of no model into account, and fails on some.
func Build(models []Model, o Options) (*Vocabulary, error) {
	if err := check(models, o); err != nil {
		return nil, err
	}
	b := &builder{models: slices.Clone(models), o: o}
	if err := b.open(); err != nil {
		return nil, err
	}
	out, err := b.output()
	if err != nil {
		return nil, err
	}
	v := b.vocabulary(out)
	if err := b.sources(v, out); err != nil {
		return nil, err
	}
	b.inspect(v, out)
	v.Warnings = b.warn
	return v, nil
}

func check(models []Model, o Options) error {
	model := func(what string, i int) error {
		if i < 0 || i >= len(models) {
			return fault.Configf("vocab: %s: got model %d, want one of %d", what, i, len(models))
		}
		return nil
	}
	errs := []error{model("base", o.Base)}
	if o.Source.Kind == OfModel {
		errs = append(errs, model("source", o.Source.Model))
	}
	if o.Pad < 0 || o.Pad > most {
		errs = append(errs, fault.Configf("vocab: padding to a multiple: got %d, want 1 to %d", o.Pad, most))
	}
	seen := map[string]bool{}
	for _, t := range o.Tokens {
		if t.Text == "" {
			errs = append(errs, fault.Configf("vocab: a listed token: got no text, want one"))
		}
		if seen[t.Text] {
			errs = append(errs, fault.Configf("vocab: token %q is listed twice", t.Text))
		}
		seen[t.Text] = true
		if t.Kind == FromModel || t.Kind == FromToken {
			errs = append(errs, model(fmt.Sprintf("token %q", t.Text), t.Model))
		}
	}
	return errors.Join(errs...)
}

func (b *builder) warnf(format string, args ...any) {
	b.warn = append(b.warn, fmt.Sprintf(format, args...))
}

// open reads the tokenizers of all models.
func (b *builder) open() error {
	n := len(b.models)
	b.toks, b.read = make([]*tokenizer, n), make([]bool, n)
	whole := []int{b.o.Base} // models that need a tokenizer.json
	if b.o.Source.Kind == OfModel && b.o.Source.Model != b.o.Base {
		whole = append(whole, b.o.Source.Model)
	}
	for i, m := range b.models {
		t, err := read(m.Dir)
		if err == nil && slices.Contains(whole, i) && !t.json() {
			err = fault.Dataf("%s: want a %s, which the output's is made of: "+
				"save the tokenizer in that format first", m.Dir, fileTokenizer)
		}
		switch {
		case err == nil:
			b.toks[i], b.read[i] = t, true
		case slices.Contains(whole, i) || errors.Is(err, fault.Machine):
			return fmt.Errorf("vocab: the tokenizer of %s: %w", m.Name, err)
		default:
			b.warnf("the tokenizer of %s is taken to be that of %s: %v", m.Name, b.models[b.o.Base].Name, err)
		}
	}
	for i, t := range b.toks {
		if b.read[i] && b.models[i].Rows <= 0 {
			b.models[i].Rows = t.size()
		}
		if b.read[i] {
			b.rowless(i)
		}
	}
	if b.o.Source.Kind != OfModel {
		if err := b.strip(); err != nil {
			return err
		}
	}
	base := b.toks[b.o.Base]
	for i := range b.toks {
		if b.read[i] {
			continue
		}
		b.toks[i] = base
		if b.models[i].Rows <= 0 {
			b.models[i].Rows = base.size()
		}
	}
	return nil
}

// strip takes the tokens without a row out of the base.
func (b *builder) strip() error {
	base := b.models[b.o.Base]
	t, warnings, err := b.toks[b.o.Base].strip(base.Rows)
	if err != nil {
		return fmt.Errorf("vocab: the tokenizer of %s: %w", base.Name, err)
	}
	for _, w := range warnings {
		b.warnf("%s: %s", base.Name, w)
	}
	b.toks[b.o.Base] = t
	return nil
}

// rowless warns of the tokens of a model that have no row.
func (b *builder) rowless(model int) {
	t, rows := b.toks[model], b.models[model].Rows
	var ids []int
	for id := range t.texts {
		if id >= rows {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		slices.Sort(ids)
		b.warnf("%s: tokens with an id of %d or more have no row: %s",
			b.models[model].Name, rows, some(ids, t.texts))
	}
}

// some names the first few of some tokens.
func some(ids []int, texts map[int]string) string {
	const few = 4
	var s []string
	for _, id := range ids[:min(few, len(ids))] {
		s = append(s, fmt.Sprintf("%q", texts[id]))
	}
	if n := len(ids) - few; n > 0 {
		s = append(s, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(s, ", ")
}

// size is the largest id plus one.
func (t *tokenizer) size() int {
	n := 0
	for id := range t.texts {
		n = max(n, id+1)
	}
	return n
}

// output makes the tokenizer of the output.
func (b *builder) output() (*tokenizer, error) {
	t := b.toks[b.o.Base]
	var more []addition
	switch b.o.Source.Kind {
	case OfModel:
		t = b.toks[b.o.Source.Model]
	case Union:
		more = b.union()
	}
	there := map[string]bool{}
	for _, a := range more {
		there[a.text] = true
	}
	for _, c := range b.o.Tokens {
		if _, ok := t.ids[c.Text]; !ok && !there[c.Text] {
			more = append(more, addition{c.Text, flags{normalized: true}})
		}
	}
	return t.extend(more)
}

// union is what the models add to the base.
func (b *builder) union() (more []addition) {
	base := b.toks[b.o.Base]
	order := []int{b.o.Base}
	for i := range b.models {
		if i != b.o.Base && b.read[i] {
			order = append(order, i)
		}
	}
	first := map[string]int{}        // the model that adds a token first
	conflicts := map[string]string{} // model, by token
	var texts []string               // of added tokens, in order
	for _, i := range order {
		for _, a := range b.toks[i].added(b.models[i].Rows) {
			j, again := first[a.text]
			if !again {
				first[a.text] = i
				texts = append(texts, a.text)
			} else if b.toks[j].flagsOf(a.text) != a.flags && conflicts[a.text] == "" {
				conflicts[a.text] = b.models[i].Name
				b.warnf("token %q is added by %s with other settings than by %s, which count",
					a.text, b.models[i].Name, b.models[j].Name)
			}
		}
	}
	seen := map[string]bool{}
	for _, i := range order[1:] {
		t, n := b.toks[i], 0
		for _, id := range slices.Sorted(maps.Keys(t.texts)) {
			text := t.texts[id]
			_, own := t.listed[text]
			_, add := first[text]
			_, known := base.ids[text]
			if id < b.models[i].Rows && !own && !add && !known && !seen[text] {
				seen[text] = true
				more = append(more, addition{text, flags{normalized: true}})
				n++
			}
		}
		if n > 0 {
			b.warnf("%d tokens of %s become added tokens, which are found in a text as they are written",
				n, b.models[i].Name)
		}
	}
	for _, text := range texts {
		if _, ok := base.listed[text]; !ok {
			more = append(more, addition{text, b.toks[first[text]].flagsOf(text)})
		}
	}
	return more
}

// added is the added tokens that have one of some rows, by ascending id.
func (t *tokenizer) added(rows int) []added {
	var list []added
	for _, a := range t.list {
		if a.id < rows {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b added) int { return a.id - b.id })
	return list
}

func (t *tokenizer) flagsOf(text string) flags { return t.list[t.listed[text]].flags }

// vocabulary is the vocabulary of the tokenizer of the output, with the row that
// each token has in each model.
func (b *builder) vocabulary(out *tokenizer) *Vocabulary {
	n := out.size()
	v := &Vocabulary{
		Rows: n, Tokens: len(out.ids), Files: out.files,
		models: b.models, base: b.o.Base,
		texts: make([]string, n), is: make([]bool, n), own: make([][]int32, len(b.models)),
		said: map[int]*source{},
	}
	if b.o.NoBase {
		v.base = -1
	}
	if p := b.o.Pad; p > 1 {
		v.Rows = (n + p - 1) / p * p
	}
	for id, text := range out.texts {
		v.texts[id], v.is[id] = text, true
	}
	for i, t := range b.toks {
		v.own[i] = make([]int32, n)
		for id, text := range v.texts {
			v.own[i][id] = -1
			if row, ok := t.ids[text]; ok && v.is[id] && row < b.models[i].Rows {
				v.own[i][id] = int32(row)
			}
		}
	}
	var none []int
	for id := range n {
		if v.is[id] && v.owners(id) == 0 {
			if t, ok := b.listed(v.texts[id]); !ok || t.Kind == Unsaid {
				none = append(none, id)
			}
		}
	}
	if len(none) > 0 {
		b.warnf("no model has a row for %s: zeros", some(none, out.texts))
	}
	return v
}

// owners is how many models have a row for a token.
func (v *Vocabulary) owners(id int) (n int) {
	for _, own := range v.own {
		if own[id] >= 0 {
			n++
		}
	}
	return n
}

func (b *builder) listed(text string) (Token, bool) {
	for _, t := range b.o.Tokens {
		if t.Text == text {
			return t, true
		}
	}
	return Token{}, false
}

// sources finds the rows that the configuration names.
func (b *builder) sources(v *Vocabulary, out *tokenizer) error {
	var errs []error
	for _, c := range b.o.Tokens {
		id := out.ids[c.Text]
		s := &source{zero: c.Kind == Zero, model: -1, force: c.Force}
		v.said[id] = s
		switch c.Kind {
		case FromModel:
			s.model, s.row = c.Model, int(v.own[c.Model][id])
			if s.row < 0 {
				errs = append(errs, fault.Configf("vocab: token %q from %s: that model does not have it",
					c.Text, b.models[c.Model].Name))
			}
		case FromToken:
			s.model, s.row = c.Model, c.ID
			m := b.models[c.Model]
			if !c.ByID {
				row, ok := b.toks[c.Model].ids[c.Token]
				if !ok {
					errs = append(errs, fault.Configf("vocab: token %q from %q of %s: that model does not have it",
						c.Text, c.Token, m.Name))
				}
				s.row = row
			} else if c.ID < 0 || c.ID >= most {
				errs = append(errs, fault.Configf("vocab: token %q from token %d of %s: got no id of a token",
					c.Text, c.ID, m.Name))
			}
		}
	}
	return errors.Join(errs...)
}

// inspect opens the tokenizer of the output as a reader of the output would.
func (b *builder) inspect(v *Vocabulary, out *tokenizer) {
	t, err := open(v.Files)
	if err != nil {
		b.warnf("the tokenizer of the output cannot be read by pleach: %v", err)
		return
	}
	for id, text := range v.texts {
		if got, ok := t.ID(text); v.is[id] && (!ok || int(got) != id) {
			b.warnf("the tokenizer of the output gives %q the id %d, its row is %d", text, got, id)
			return
		}
	}
}

func open(files map[string][]byte) (t *token.Tokenizer, err error) {
	dir, err := os.MkdirTemp("", "pleach-vocab-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return nil, err
		}
	}
	return token.Open(dir)
}
