// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"strings"

	"pleach/half"
	"pleach/internal/fault"
	"pleach/internal/yaml11"
)

// Config is a configuration of a merge, as it is written. Exactly one of Models,
// Slices and Modules is not empty.
type Config struct {
	File string
	Text []byte

	Method     string
	MethodLine int
	Models     []Source
	ModelsLine int
	Slices     []Slice
	Modules    []Module
	Base       *Reference // nil for none
	BaseLine   int
	Parameters Parameters

	// DType is what inputs are rounded to when they are read, OutDType what the
	// output is stored in. Nil is as they are.
	DType, OutDType *half.DType

	Tokenizer *Tokenizer // nil: embeddings keep their rows
	// ChatTemplate is empty, "auto", the name of a template, or a template.
	ChatTemplate string

	Warnings []string
}

// Source is an input of a slice. In Config.Models it is a whole model.
type Source struct {
	Model      Reference
	Line       int
	From, To   int // layers From to To−1; in Models they are 0 until the model is known
	Parameters Parameters
}

// Slice is some layers of the output.
type Slice struct {
	Line       int
	Sources    []Source
	Base       *Reference // in the place of Config.Base; nil for that one
	Parameters Parameters
}

// Module is a part of a model with layers of its own. One of Models and Slices is
// not empty.
type Module struct {
	Name       string
	Line       int
	Models     []Source
	Slices     []Slice
	Parameters Parameters
}

// Tokenizer says what the vocabulary of the output is.
type Tokenizer struct {
	Line   int
	Union  bool       // all tokens of all models
	Base   bool       // those of the base
	Model  *Reference // those of one model
	Tokens []TokenRule
	Pad    int // rows are rounded up to a multiple; 0 is as they are
}

// TokenRule says where the row of a token comes from. At most one of Zero and
// Model is given; with Model, Token or ID name another token of that model.
type TokenRule struct {
	Text  string
	Line  int
	Zero  bool
	Model *Reference
	Token *string
	ID    *int
	Force bool // in the place of the row that a model has itself
}

// ParseConfig reads a configuration in the language of mergekit. The text is YAML
// 1.1 as PyYAML reads it; strings that are numbers count as numbers, true as 1 and
// false as 0. All problems are in the error, each with file and line. Keys that
// mean nothing are in Warnings.
func ParseConfig(file string, text []byte) (*Config, error) {
	r := &configReader{c: &Config{File: file, Text: text}}
	doc, err := yaml11.Parse(text)
	if err != nil {
		return nil, r.yaml(err)
	}
	for _, w := range doc.Warnings {
		r.warn(w.Line, "%s", w.Msg)
	}
	r.document(doc.Root)
	if len(r.bad) > 0 {
		return nil, errors.Join(r.bad...)
	}
	return r.c, nil
}

// configReader fills a configuration and keeps every error.
type configReader struct {
	c   *Config
	bad []error
}

func (r *configReader) fail(line int, format string, args ...any) {
	r.bad = append(r.bad, fault.Configf("merge: %s:%d: %s", r.c.File, line, fmt.Sprintf(format, args...)))
}

func (r *configReader) warn(line int, format string, args ...any) {
	r.c.Warnings = append(r.c.Warnings, fmt.Sprintf("%s:%d: %s", r.c.File, line, fmt.Sprintf(format, args...)))
}

// yaml puts errors of the text in our form.
func (r *configReader) yaml(err error) error {
	list := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		list = many.Unwrap()
	}
	for _, e := range list {
		var n *yaml11.Note
		if errors.As(e, &n) {
			r.fail(n.Line, "%s", n.Msg)
		} else {
			r.bad = append(r.bad, fault.Configf("merge: %s: %w", r.c.File, e))
		}
	}
	return errors.Join(r.bad...)
}

// field is a key that a mapping may have, and what reads its value. A value of
// null counts as a key that is left out.
type field struct {
	key  string
	read func(v *yaml11.Value)
}

// mapping reads the fields of a mapping that is called what. It returns false, with
// an error, for another kind of value.
func (r *configReader) mapping(v *yaml11.Value, what string, fields ...field) bool {
	if v.Kind != yaml11.Map {
		r.fail(v.Line, "%s: got %v, want a mapping", what, v)
		return false
	}
	var known []string
	for _, f := range fields {
		known = append(known, f.key)
	}
next:
	for _, p := range v.Pairs {
		for _, f := range fields {
			if p.Key.Kind == yaml11.String && p.Key.Text == f.key {
				if p.Value.Kind != yaml11.Null {
					f.read(p.Value)
				}
				continue next
			}
		}
		r.unknown(p.Key, what, known)
	}
	return true
}

// unknown warns of a key that means nothing.
func (r *configReader) unknown(k *yaml11.Value, what string, known []string) {
	hint := ""
	if near := fault.Nearest(k.Text, known); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	} else {
		for _, key := range known {
			if key == "parameters" {
				hint = "; settings of the method belong below parameters"
			}
		}
	}
	r.warn(k.Line, "%s: the key %s means nothing here and is ignored%s", what, k.Text, hint)
}

// list is the elements of a list.
func (r *configReader) list(v *yaml11.Value, what string) []*yaml11.Value {
	if v.Kind != yaml11.Seq {
		r.fail(v.Line, "%s: got %v, want a list", what, v)
	}
	return v.Items
}

// text is a string. The scalars of YAML that are no strings are refused: 1e3 may
// be the name of a model, but then it is written in quotes.
func (r *configReader) text(v *yaml11.Value, what string) string {
	if v.Kind != yaml11.String {
		hint := ""
		if v.Kind != yaml11.Seq && v.Kind != yaml11.Map {
			hint = "; write it in quotes if it is one"
		}
		r.fail(v.Line, "%s: got %v, want a string%s", what, v, hint)
		return ""
	}
	return v.Text
}

// document reads the keys at the top.
func (r *configReader) document(root *yaml11.Value) {
	c := r.c
	var source, block *yaml11.Value
	modules := 0
	ok := r.mapping(root, "the configuration",
		field{"merge_method", func(v *yaml11.Value) {
			c.Method, c.MethodLine = r.text(v, "merge_method"), v.Line
		}},
		field{"models", func(v *yaml11.Value) { c.Models, c.ModelsLine = r.models(v, "models"), v.Line }},
		field{"slices", func(v *yaml11.Value) { c.Slices = r.slices(v, "slices") }},
		field{"modules", func(v *yaml11.Value) { c.Modules, modules = r.modules(v), len(v.Pairs) }},
		field{"base_model", func(v *yaml11.Value) { c.Base, c.BaseLine = r.model(v, "base_model"), v.Line }},
		field{"parameters", func(v *yaml11.Value) { c.Parameters = r.parameters(v) }},
		field{"dtype", func(v *yaml11.Value) { c.DType = r.dtype(v, "dtype") }},
		field{"out_dtype", func(v *yaml11.Value) { c.OutDType = r.dtype(v, "out_dtype") }},
		field{"tokenizer_source", func(v *yaml11.Value) { source = v }},
		field{"tokenizer", func(v *yaml11.Value) { block = v }},
		field{"chat_template", func(v *yaml11.Value) { c.ChatTemplate = r.template(v) }},
	)
	if !ok {
		return
	}
	if _, there := root.Lookup("merge_method"); !there || c.MethodLine == 0 {
		r.fail(root.Line, "merge_method: it is missing, want the name of a method")
	}
	r.inputs(root, modules)
	r.vocabulary(source, block)
}

// inputs checks that the inputs are given in one way.
func (r *configReader) inputs(root *yaml11.Value, modules int) {
	given := map[string]int{}
	for _, key := range []string{"models", "slices", "modules"} {
		if v, ok := root.Lookup(key); ok && len(v.Items)+len(v.Pairs) > 0 {
			given[key] = v.Line
		}
	}
	if len(given) == 1 {
		return
	}
	line := root.Line
	var got []string
	for _, key := range []string{"models", "slices", "modules"} {
		if l, ok := given[key]; ok {
			line, got = l, append(got, key)
		}
	}
	if len(got) == 0 {
		got = []string{"none of them"}
	}
	r.fail(line, "the inputs: got %s, want exactly one of models, slices and modules", strings.Join(got, " and "))
}

// models reads [{model, parameters}].
func (r *configReader) models(v *yaml11.Value, what string) []Source {
	var list []Source
	for _, item := range r.list(v, what) {
		s := Source{Line: item.Line}
		if r.mapping(item, what,
			field{"model", func(v *yaml11.Value) { r.reference(v, what+": model", &s.Model) }},
			field{"parameters", func(v *yaml11.Value) { s.Parameters = r.parameters(v) }}) {
			r.need(item, what, "model")
		}
		list = append(list, s)
	}
	return list
}

// need fails where a key is left out.
func (r *configReader) need(v *yaml11.Value, what, key string) {
	if x, ok := v.Lookup(key); !ok || x.Kind == yaml11.Null {
		r.fail(v.Line, "%s: the key %s is missing", what, key)
	}
}

// slices reads [{sources, base_model, parameters, residual_weight}].
func (r *configReader) slices(v *yaml11.Value, what string) []Slice {
	var list []Slice
	for _, item := range r.list(v, what) {
		s := Slice{Line: item.Line}
		ok := r.mapping(item, what,
			field{"sources", func(v *yaml11.Value) {
				if s.Sources = r.sources(v, what+": sources"); v.Kind == yaml11.Seq && len(v.Items) == 0 {
					r.fail(v.Line, "%s: sources: got none, want at least one", what)
				}
			}},
			field{"base_model", func(v *yaml11.Value) { s.Base = r.model(v, what+": base_model") }},
			field{"parameters", func(v *yaml11.Value) { s.Parameters = r.parameters(v) }},
			field{"residual_weight", func(v *yaml11.Value) {
				if _, ok := r.number(v, what+": residual_weight"); ok {
					r.warn(v.Line, "%s: residual_weight has no effect, in mergekit neither", what)
				}
			}})
		if ok {
			r.need(item, what, "sources")
		}
		list = append(list, s)
	}
	return list
}

// sources reads [{model, layer_range, parameters}].
func (r *configReader) sources(v *yaml11.Value, what string) []Source {
	var list []Source
	for _, item := range r.list(v, what) {
		s := Source{Line: item.Line}
		if r.mapping(item, what,
			field{"model", func(v *yaml11.Value) { r.reference(v, what+": model", &s.Model) }},
			field{"layer_range", func(v *yaml11.Value) { s.From, s.To = r.layers(v, what+": layer_range") }},
			field{"parameters", func(v *yaml11.Value) { s.Parameters = r.parameters(v) }}) {
			r.need(item, what, "model")
			r.need(item, what, "layer_range")
		}
		list = append(list, s)
	}
	return list
}

// layers reads [a, b): a < b.
func (r *configReader) layers(v *yaml11.Value, what string) (from, to int) {
	if v.Kind != yaml11.Seq || len(v.Items) != 2 {
		r.fail(v.Line, "%s: got %v, want [first, last+1]", what, v)
		return 0, 0
	}
	from, ok := r.whole(v.Items[0], what)
	to, ok2 := r.whole(v.Items[1], what)
	if ok && ok2 && (from < 0 || from >= to) {
		r.fail(v.Line, "%s: got [%d, %d], want layers from 0 on, the first before the second", what, from, to)
	}
	return from, to
}

// modules reads {name: {slices or models, parameters}}.
func (r *configReader) modules(v *yaml11.Value) []Module {
	if v.Kind != yaml11.Map {
		r.fail(v.Line, "modules: got %v, want a mapping of names", v)
	}
	var list []Module
	for _, p := range v.Pairs {
		what := "modules: " + p.Key.Text
		m := Module{Name: r.text(p.Key, "modules: the name of one"), Line: p.Key.Line}
		if r.mapping(p.Value, what,
			field{"models", func(v *yaml11.Value) { m.Models = r.models(v, what+": models") }},
			field{"slices", func(v *yaml11.Value) { m.Slices = r.slices(v, what+": slices") }},
			field{"parameters", func(v *yaml11.Value) { m.Parameters = r.parameters(v) }},
		) && (len(m.Models) > 0) == (len(m.Slices) > 0) {
			r.fail(p.Key.Line, "%s: want exactly one of models and slices", what)
		}
		list = append(list, m)
	}
	return list
}

// model reads a reference that may be absent.
func (r *configReader) model(v *yaml11.Value, what string) *Reference {
	var ref Reference
	r.reference(v, what, &ref)
	return &ref
}

// reference reads "path@revision+adapter@revision" or
// {model: {path, revision}, lora: {path, revision}, override_architecture}.
func (r *configReader) reference(v *yaml11.Value, what string, ref *Reference) {
	if v.Kind != yaml11.Map {
		if s := r.text(v, what); v.Kind == yaml11.String {
			var err error
			if *ref, err = ParseReference(s); err != nil {
				r.fail(v.Line, "%s: %v", what, err)
			}
		}
		return
	}
	r.mapping(v, what,
		field{"model", func(v *yaml11.Value) { ref.Path, ref.Revision = r.path(v, what+": model") }},
		field{"lora", func(v *yaml11.Value) { ref.Adapter, ref.AdapterRevision = r.path(v, what+": lora") }},
		field{"override_architecture", func(v *yaml11.Value) {
			ref.Architecture = r.text(v, what+": override_architecture")
		}})
	r.need(v, what, "model")
}

// path reads "path@revision" or {path, revision}.
func (r *configReader) path(v *yaml11.Value, what string) (path, revision string) {
	if v.Kind != yaml11.Map {
		if s := r.text(v, what); v.Kind == yaml11.String {
			var err error
			if path, revision, err = parsePath(s); err != nil {
				r.fail(v.Line, "%s: %v", what, err)
			}
		}
		return path, revision
	}
	r.mapping(v, what,
		field{"path", func(v *yaml11.Value) { path = r.text(v, what+": path") }},
		field{"revision", func(v *yaml11.Value) { revision = r.text(v, what+": revision") }})
	r.need(v, what, "path")
	return path, revision
}

// torchTypes are the element types that a configuration may name.
var torchTypes = []struct {
	name  string
	dtype half.DType
}{{"float16", half.F16}, {"bfloat16", half.BF16}, {"float32", half.F32}, {"int64", half.I64}}

// torchName is the name of one of them.
func torchName(t half.DType) string {
	for _, u := range torchTypes {
		if u.dtype == t {
			return u.name
		}
	}
	return t.String()
}

// dtype reads the name of an element type, nil for none.
func (r *configReader) dtype(v *yaml11.Value, what string) *half.DType {
	name := r.text(v, what)
	for _, t := range torchTypes {
		if strings.TrimPrefix(name, "torch.") == t.name {
			return &t.dtype
		}
	}
	if v.Kind == yaml11.String && name != "" {
		hint := ""
		if near := fault.Nearest(name, []string{"float16", "bfloat16", "float32", "int64"}); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", near)
		}
		r.fail(v.Line, "%s: got %q, want float16, bfloat16, float32 or int64%s", what, name, hint)
	}
	return nil
}

// template reads the chat template, or the name of one.
func (r *configReader) template(v *yaml11.Value) string {
	s := r.text(v, "chat_template")
	if err := checkChat(s); err != nil {
		r.fail(v.Line, "%s", strings.TrimPrefix(err.Error(), "merge: "))
	}
	return s
}
