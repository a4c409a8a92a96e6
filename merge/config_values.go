// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"
	"strconv"
	"strings"

	"pleach/internal/yaml11"
)

// parameters reads {name: setting}.
func (r *configReader) parameters(v *yaml11.Value) Parameters {
	if v.Kind != yaml11.Map {
		r.fail(v.Line, "parameters: got %v, want a mapping", v)
		return nil
	}
	var list Parameters
	for _, p := range v.Pairs {
		name := r.text(p.Key, "parameters: the name of one")
		list = append(list, Parameter{
			Name: name, Line: p.Key.Line, Cases: r.setting(p.Value, "parameter "+name),
		})
	}
	return list
}

// setting reads a number, a gradient, a conditional value or a list of those. An
// empty list sets nothing.
func (r *configReader) setting(v *yaml11.Value, what string) []Case {
	switch {
	case v.Kind == yaml11.Map:
		return []Case{r.condition(v, what)}
	case v.Kind == yaml11.Seq && len(v.Items) == 0:
		r.warn(v.Line, "%s: an empty list sets nothing", what)
		return nil
	case v.Kind != yaml11.Seq || v.Items[0].Kind != yaml11.Map:
		return []Case{{Line: v.Line, Values: r.gradient(v, what)}}
	}
	var cases []Case
	for _, item := range v.Items {
		if item.Kind != yaml11.Map {
			r.fail(item.Line, "%s: got %v among conditional values, want {filter, value}", what, item)
			continue
		}
		cases = append(cases, r.condition(item, what))
	}
	for i, c := range cases {
		if (c.Filter == "" || c.Filter == "*") && i+1 < len(cases) {
			r.warn(cases[i+1].Line, "%s: this value is never used: the one at line %d is for all tensors", what, c.Line)
			break
		}
	}
	return cases
}

// condition reads {filter, value}.
func (r *configReader) condition(v *yaml11.Value, what string) Case {
	c := Case{Line: v.Line}
	r.mapping(v, what,
		field{"filter", func(v *yaml11.Value) { c.Filter = r.text(v, what+": filter") }},
		field{"value", func(v *yaml11.Value) {
			if c.Values = r.gradient(v, what); v.Kind == yaml11.Seq && len(v.Items) == 0 {
				r.fail(v.Line, "%s: value: got an empty list, want a number or several", what)
			}
		}})
	r.need(v, what, "value")
	return c
}

// gradient reads a number or a list of them.
func (r *configReader) gradient(v *yaml11.Value, what string) []float64 {
	items := []*yaml11.Value{v}
	if v.Kind == yaml11.Seq {
		items = v.Items
	}
	var list []float64
	for _, item := range items {
		x, _ := r.number(item, what)
		list = append(list, x)
	}
	return list
}

// number reads a number, a string that is one, or a boolean: 1 or 0.
func (r *configReader) number(v *yaml11.Value, what string) (float64, bool) {
	x, ok := 0.0, false
	switch v.Kind {
	case yaml11.Bool:
		if ok = true; v.Bool {
			x = 1
		}
	case yaml11.Int, yaml11.Float:
		x, ok = v.Float, true
	case yaml11.String:
		x, ok = numeral(v.Text)
	}
	if !ok {
		r.fail(v.Line, "%s: got %v, want a number", what, v)
		return 0, false
	}
	if math.IsNaN(x) {
		r.fail(v.Line, "%s: got NaN, want a number", what)
		return 0, false
	}
	return x, true
}

// numeral reads a number as Python does: 1e-5 is one, 0x10 is none.
func numeral(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "xXpP") || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") ||
		strings.Contains(s, "__") {
		return 0, false
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return x, err == nil || math.IsInf(x, 0)
}

// whole reads a whole number that an int holds. Its forms are those of number.
func (r *configReader) whole(v *yaml11.Value, what string) (int, bool) {
	before := len(r.bad)
	x, ok := r.number(v, what)
	if ok && x == math.Trunc(x) && math.Abs(x) < 1<<31 {
		return int(x), true
	}
	if len(r.bad) == before {
		r.fail(v.Line, "%s: got %v, want a whole number", what, v)
	}
	return 0, false
}

// vocabulary reads tokenizer_source, the older form, or tokenizer.
func (r *configReader) vocabulary(source, block *yaml11.Value) {
	switch {
	case source != nil && block != nil:
		r.fail(max(source.Line, block.Line), "tokenizer: got both tokenizer_source and tokenizer, want one of them")
	case source != nil:
		t := &Tokenizer{Line: source.Line}
		r.tokens(source, "tokenizer_source", t)
		r.c.Tokenizer = t
	case block != nil:
		r.c.Tokenizer = r.tokenizer(block)
	}
}

// tokens reads whose tokens there are: union, base or a model.
func (r *configReader) tokens(v *yaml11.Value, what string, t *Tokenizer) {
	t.Union, t.Base, t.Model = false, false, nil
	switch {
	case v.Kind == yaml11.String && v.Text == "union":
		t.Union = true
	case v.Kind == yaml11.String && v.Text == "base":
		t.Base = true
	default:
		t.Model = r.model(v, what)
	}
}

// tokenizer reads {source, tokens, pad_to_multiple_of}.
func (r *configReader) tokenizer(v *yaml11.Value) *Tokenizer {
	t := &Tokenizer{Line: v.Line, Union: true}
	r.mapping(v, "tokenizer",
		field{"source", func(v *yaml11.Value) { r.tokens(v, "tokenizer: source", t) }},
		field{"tokens", func(v *yaml11.Value) { t.Tokens = r.rules(v) }},
		field{"pad_to_multiple_of", func(v *yaml11.Value) {
			n, ok := r.whole(v, "tokenizer: pad_to_multiple_of")
			if t.Pad = n; ok && n < 0 {
				r.fail(v.Line, "tokenizer: pad_to_multiple_of: got %d, want a multiple", n)
			}
		}})
	return t
}

// rules reads {token: {source, force}}.
func (r *configReader) rules(v *yaml11.Value) []TokenRule {
	if v.Kind != yaml11.Map {
		r.fail(v.Line, "tokenizer: tokens: got %v, want a mapping", v)
		return nil
	}
	var list []TokenRule
	for _, p := range v.Pairs {
		t := TokenRule{Text: r.text(p.Key, "tokenizer: tokens: a token"), Line: p.Key.Line}
		what := "tokenizer: token " + strconv.Quote(t.Text)
		r.mapping(p.Value, what,
			field{"source", func(v *yaml11.Value) { r.row(v, what+": source", &t) }},
			field{"force", func(v *yaml11.Value) {
				x, ok := r.flag(v)
				if t.Force = x; !ok {
					r.fail(v.Line, "%s: force: got %v, want true or false", what, v)
				}
			}})
		list = append(list, t)
	}
	return list
}

// flag reads a boolean as pydantic does: 1 and 0 and some words count too.
func (r *configReader) flag(v *yaml11.Value) (x, ok bool) {
	switch v.Kind {
	case yaml11.Bool:
		return v.Bool, true
	case yaml11.Int, yaml11.Float:
		return v.Float == 1, v.Float == 1 || v.Float == 0
	case yaml11.String:
		switch strings.ToLower(v.Text) {
		case "true", "t", "yes", "y", "on", "1":
			return true, true
		case "false", "f", "no", "n", "off", "0":
			return false, true
		}
	}
	return false, false
}

// row reads where the row of a token comes from: a model, {kind: zero} or
// {kind: model_token, model, token or token_id}.
func (r *configReader) row(v *yaml11.Value, what string, t *TokenRule) {
	kind, ok := v.Lookup("kind")
	switch {
	case v.Kind != yaml11.Map || !ok:
		t.Model = r.model(v, what)
	case kind.Kind == yaml11.String && kind.Text == "zero":
		t.Zero = true
		r.mapping(v, what, field{"kind", func(*yaml11.Value) {}})
	case kind.Kind == yaml11.String && kind.Text == "model_token":
		r.mapping(v, what, field{"kind", func(*yaml11.Value) {}},
			field{"model", func(v *yaml11.Value) { t.Model = r.model(v, what+": model") }},
			field{"token", func(v *yaml11.Value) { s := r.text(v, what+": token"); t.Token = &s }},
			field{"token_id", func(v *yaml11.Value) {
				n, ok := r.whole(v, what+": token_id")
				if t.ID = &n; ok && n < 0 {
					r.fail(v.Line, "%s: token_id: got %d, want an id", what, n)
				}
			}})
		r.need(v, what, "model")
		if (t.Token == nil) == (t.ID == nil) {
			r.fail(v.Line, "%s: want exactly one of token and token_id", what)
		}
	default:
		r.fail(kind.Line, "%s: kind: got %v, want zero or model_token", what, kind)
	}
}
