// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Bounds that no honest recipe comes near. The walk follows the keys of the
// schema, so an alias to an ancestor ends by itself; aliases of lists of aliases
// do not, hence the count.
const (
	maxText  = 1 << 20
	maxNodes = 100_000
)

// reader fills a recipe from a tree of nodes and keeps every error.
type reader struct {
	r        *Recipe
	file     string // as the user called it
	dir      string
	lines    []string
	errs     []*Error
	place    map[string]place // by key: where its value came from
	names    map[string]place // by key of a mapping: where the key itself stands
	args     map[*yaml.Node]string
	visited  int
	quiet    bool                  // filling in defaults
	defaults map[string]*yaml.Node // parsed, by their text
}

func newReader(r *Recipe, file string, text []byte) *reader {
	return &reader{
		r: r, file: file, dir: filepath.Dir(r.File),
		lines: strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"),
		place: map[string]place{}, names: map[string]place{}, args: map[*yaml.Node]string{},
		defaults: map[string]*yaml.Node{},
	}
}

// document parses the text and gives its mapping, or nil with an error noted.
func (d *reader) document(text []byte) *yaml.Node {
	switch {
	case len(text) > maxText:
		d.fail(place{}, "", fmt.Sprintf("got %d bytes, want a recipe of at most %d", len(text), maxText))
		return nil
	case !utf8.Valid(text):
		d.fail(place{line: 1 + bytes.Count(text[:invalid(text)], []byte("\n"))}, "", "this line is not UTF-8")
		return nil
	}
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		d.syntax(err)
		return nil
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		d.fail(place{line: 1}, "", "got no mapping, want keys such as model, data and train")
		return nil
	}
	return doc.Content[0]
}

func invalid(text []byte) int {
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(text)
}

// syntax notes an error of the YAML parser in our form.
func (d *reader) syntax(err error) {
	var one *yaml.LoadError
	msg := strings.ReplaceAll(err.Error(), "\n", " ")
	p := place{}
	if errors.As(err, &one) {
		msg = "not YAML: " + one.Message
		p = place{line: one.Mark.Line, col: one.Mark.Column}
	}
	switch {
	case strings.Contains(msg, "no documents"):
		p, msg = place{}, "the recipe is empty"
	case strings.Contains(msg, "found multiple"):
		p, msg = place{line: d.second()}, "got a second document, want one recipe in a file"
	}
	d.fail(p, "", msg)
}

// second is the line of the mark at which another document starts.
func (d *reader) second() int {
	seen := false
	for i, s := range d.lines {
		mark := strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...")
		if mark && seen {
			return i + 1
		}
		seen = seen || !mark && s != "" && s[0] != '#' && s[0] != '%'
	}
	return 0
}

// fail notes an error at a place. hint may be left out.
func (d *reader) fail(p place, key, msg string, hint ...string) {
	d.errs = append(d.errs, &Error{
		File: d.file, Line: p.line, Arg: p.arg, Key: key, Msg: msg,
		Hint: strings.Join(hint, ""), excerpt: excerpt(d.lines, p.line, p.col),
	})
}

// at is where a node stands.
func (d *reader) at(n *yaml.Node) place {
	switch arg, ok := d.args[n]; {
	case ok:
		return place{from: "command line", arg: arg}
	case d.quiet || n == nil:
		return place{from: "default"}
	}
	return place{from: filepath.Base(d.file), line: n.Line, col: n.Column}
}

// near is the place of the value of a key, or of the name of the nearest mapping
// around it.
func (d *reader) near(key string) place {
	if d.given(key) {
		return d.place[key]
	}
	for key != "" {
		if p, ok := d.names[key]; ok {
			return p
		}
		if d.given(key) {
			return d.place[key]
		}
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return place{}
}

// given says that a key has a value which is no default.
func (d *reader) given(key string) bool {
	p, ok := d.place[key]
	return ok && p.from != "default"
}

// count adds to the number of values read. It notes an error, once, and returns
// false where there are too many.
func (d *reader) count(more int, key string, n *yaml.Node) bool {
	if d.quiet {
		return true
	}
	before := d.visited
	if d.visited += more; d.visited < maxNodes {
		return true
	}
	if before < maxNodes {
		d.fail(d.at(n), key, fmt.Sprintf("more than %d values, aliases counted each time", maxNodes))
	}
	return false
}

// resolve follows aliases and refuses what no value of a recipe is: null,
// a tag, too many nodes. It returns nil after it has noted an error.
func (d *reader) resolve(key string, n *yaml.Node) *yaml.Node {
	if !d.count(1, key, n) {
		return nil
	}
	for i := 0; n.Kind == yaml.AliasNode; i++ {
		if i == 32 || n.Alias == nil {
			d.fail(d.at(n), key, "an alias that leads nowhere")
			return nil
		}
		n = n.Alias
	}
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(d.at(n), key, fmt.Sprintf("got the tag %s, want a plain value", n.Tag))
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		d.fail(d.at(n), key, "got no value", "give one, or leave the key out for its default")
	default:
		return n
	}
	return nil
}

// mapping reads the fields of a mapping; n is nil where it was left out.
func (d *reader) mapping(key string, n *yaml.Node, fields []field) {
	var given map[string]entry
	if n != nil {
		given = d.pairs(key, n, keysOf(fields))
	}
	for i := range fields {
		f := &fields[i]
		k := join(key, f.key)
		e, ok := given[f.key]
		v := e.value
		if ok && v.Kind == yaml.MappingNode {
			d.names[k] = d.at(e.key)
		}
		switch {
		case ok && f.plan != "":
			d.fail(d.at(v), k, f.plan+": not yet built")
		case ok:
			d.value(k, v, f)
		case f.need && !d.quiet:
			d.fail(d.near(k), k, "missing", "it has no default")
		case f.plan == "":
			d.absent(k, f)
		}
	}
}

// entry is a key with its value.
type entry struct{ key, value *yaml.Node }

// pairs gives the values of a mapping by key and notes keys that stand twice
// or are not known.
func (d *reader) pairs(key string, n *yaml.Node, known []string) map[string]entry {
	m := map[string]entry{}
	if !d.count(len(n.Content)/2, key, n) {
		return m
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode || k.Style&yaml.TaggedStyle != 0:
			d.fail(d.at(k), key, "a key must be a plain word")
		case k.Tag == "!!merge":
			d.fail(d.at(k), key, "merge keys (<<) are not read", "write the keys out")
		case m[k.Value].key != nil:
			d.fail(d.at(k), join(key, k.Value), "the key stands twice in this mapping")
		case known != nil && !slices.Contains(known, k.Value):
			d.fail(d.at(k), join(key, k.Value), "unknown key", d.elsewhere(k.Value, known))
		default:
			m[k.Value] = entry{k, v}
		}
	}
	return m
}

// absent fills in the default of a field.
func (d *reader) absent(key string, f *field) {
	quiet := d.quiet
	d.quiet = true
	defer func() { d.quiet = quiet }()
	if f.def != "" {
		n := d.defaults[f.def]
		if n == nil {
			var doc yaml.Node
			if err := yaml.Load([]byte(f.def), &doc); err != nil {
				d.fail(place{}, key, "its default is not YAML: "+err.Error())
				return
			}
			n = doc.Content[0]
			d.defaults[f.def] = n
		}
		d.value(key, n, f)
		return
	}
	if g, ok := f.to.(group); ok {
		d.mapping(key, nil, g.fields())
	}
}

// value reads a node into what a field fills.
func (d *reader) value(key string, n *yaml.Node, f *field) {
	at := n
	if n = d.resolve(key, n); n == nil {
		return
	}
	d.place[key] = d.at(at)
	switch to := f.to.(type) {
	case choice:
		d.choice(key, n, to)
	case dict:
		d.dict(key, n, to)
	case list:
		d.list(key, n, to)
	case group:
		d.group(key, n, to)
	default:
		if msg, hint := d.leaf(n, f); msg != "" {
			d.fail(d.at(n), key, msg, hint)
		} else if f.check != nil {
			if msg := f.check(); msg != "" {
				d.fail(d.at(n), key, msg)
			}
		}
	}
}

func (d *reader) group(key string, n *yaml.Node, g group) {
	s, ok := g.(short)
	switch {
	case n.Kind == yaml.MappingNode:
		d.mapping(key, n, g.fields())
	case ok && n.Kind == yaml.ScalarNode:
		d.mapping(key, d.wrap(s.short(), n), g.fields())
	default:
		d.fail(d.at(n), key, "got "+describe(n)+", want a mapping", "keys: "+
			strings.Join(keysOf(g.fields()), ", "))
	}
}

// wrap is the mapping {key: n} at the place of n.
func (d *reader) wrap(key string, n *yaml.Node) *yaml.Node {
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: n.Line, Column: n.Column}
	m := &yaml.Node{
		Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{k, n},
		Line: n.Line, Column: n.Column,
	}
	if arg, ok := d.args[n]; ok {
		d.args[k], d.args[m] = arg, arg
	}
	return m
}

// named is the mapping {name: {}} for the name in n, at its place.
func (d *reader) named(n *yaml.Node) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
	if arg, ok := d.args[n]; ok {
		d.args[m] = arg
	}
	return d.wrap(n.Value, m)
}

func (d *reader) choice(key string, n *yaml.Node, c choice) {
	kinds := c.kinds()
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	if n.Kind == yaml.ScalarNode {
		n = d.named(n)
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		d.fail(d.at(n), key, "want exactly one of "+strings.Join(names, ", "))
		return
	}
	name, v := n.Content[0].Value, n.Content[1]
	i := slices.Index(names, name)
	switch {
	case i < 0:
		d.fail(d.at(n.Content[0]), join(key, name), "unknown "+last(key), didYouMean(name, names))
		return
	case kinds[i].later:
		d.fail(d.at(n.Content[0]), join(key, name), "not yet built")
		return
	}
	*c.chosen() = name
	v = d.resolve(join(key, name), v)
	switch {
	case v == nil:
	case v.Kind != yaml.MappingNode:
		d.fail(d.at(v), join(key, name), "got "+describe(v)+", want a mapping", "{} for its defaults")
	default:
		d.mapping(join(key, name), v, kinds[i].fields)
	}
}

func (d *reader) list(key string, n *yaml.Node, l list) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		d.fail(d.at(n), key, "got "+describe(n)+", want a list of mappings", "start each with a dash")
		return
	}
	l.resize(len(n.Content))
	for i, item := range n.Content {
		k := join(key, fmt.Sprint(i))
		if item = d.resolve(k, item); item != nil {
			d.place[k] = d.at(item)
			d.group(k, item, l.at(i))
		}
	}
}

func (d *reader) dict(key string, n *yaml.Node, m dict) {
	if n.Kind != yaml.MappingNode {
		d.fail(d.at(n), key, "got "+describe(n)+", want names with values")
		return
	}
	pairs := d.pairs(key, n, nil)
	m.resize(len(pairs))
	i := 0
	for j := 0; j+1 < len(n.Content); j += 2 {
		name := n.Content[j].Value
		e, ok := pairs[name]
		if !ok {
			continue
		}
		delete(pairs, name)
		*m.name(i) = name
		k := join(key, name)
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" ||
			name == "" {
			d.fail(d.at(n.Content[j]), k, "a name has letters, digits, - and _")
		} else if v := d.resolve(k, e.value); v != nil {
			d.place[k] = d.at(v)
			d.group(k, v, m.at(i))
		}
		i++
	}
}
