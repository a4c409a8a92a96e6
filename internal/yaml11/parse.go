// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package yaml11

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Parse reads a text of one document. Its error is a [*Note], or several that
// errors.Join holds, in the order of lines.
func Parse(text []byte) (*Document, error) {
	if len(text) > maxText {
		return nil, &Note{1, 1, fmt.Sprintf("got %d bytes, want at most %d", len(text), maxText)}
	}
	if !utf8.Valid(text) {
		return nil, &Note{badLine(text), 1, "this line is not UTF-8"}
	}
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		if strings.Contains(err.Error(), "no documents") {
			return &Document{Root: &Value{Line: 1, Column: 1, size: 1}}, nil
		}
		return nil, syntax(err)
	}
	c := composer{doc: &Document{}, done: map[*yaml.Node]*Value{}}
	if len(doc.Content) != 1 {
		return nil, &Note{1, 1, fmt.Sprintf("got %d documents, want one", len(doc.Content))}
	}
	c.doc.Root = c.value(doc.Content[0], 0)
	if len(c.bad) == 0 {
		return c.doc, nil
	}
	slices.SortStableFunc(c.bad, func(a, b *Note) int { return a.Line - b.Line })
	var errs []error
	for _, n := range c.bad {
		errs = append(errs, n)
	}
	return nil, errors.Join(errs...)
}

// badLine is the first line with bytes that are not UTF-8.
func badLine(text []byte) int {
	line := 1
	for l := range bytes.SplitSeq(text, []byte("\n")) {
		if !utf8.Valid(l) {
			break
		}
		line++
	}
	return line
}

// syntax is an error of the parser in our form.
func syntax(err error) *Note {
	var one *yaml.LoadError
	if errors.As(err, &one) {
		return &Note{max(1, one.Mark.Line), max(1, one.Mark.Column), "not YAML: " + one.Message}
	}
	return &Note{1, 1, "not YAML: " + strings.ReplaceAll(err.Error(), "\n", " ")}
}

// composer makes values of nodes and keeps every error.
type composer struct {
	doc    *Document
	done   map[*yaml.Node]*Value // nil while a node is being made
	bad    []*Note
	merged int  // pairs that merge keys brought
	full   bool // there were too many values: no more is said
}

func (c *composer) fail(n *yaml.Node, format string, args ...any) {
	c.bad = append(c.bad, &Note{n.Line, n.Column, fmt.Sprintf(format, args...)})
}

// value makes a node. What is wrong becomes null, after the error is noted.
func (c *composer) value(n *yaml.Node, depth int) *Value {
	if n.Kind == yaml.AliasNode {
		return c.alias(n, depth)
	}
	if v, ok := c.done[n]; ok && v != nil {
		return v
	}
	v := &Value{Line: n.Line, Column: n.Column, size: 1}
	c.done[n] = nil
	if depth > maxDepth {
		c.fail(n, "got lists and mappings %d deep, want at most %d", depth, maxDepth)
		c.done[n] = v
		return v
	}
	tag := explicit(n)
	switch {
	case n.Kind == yaml.SequenceNode && (tag == "" || tag == "!!seq"):
		c.sequence(v, n, depth)
	case n.Kind == yaml.MappingNode && (tag == "" || tag == "!!map"):
		c.mapping(v, n, depth)
	case n.Kind == yaml.ScalarNode:
		if tag == "" {
			tag = implicit(n)
		}
		if err := v.scalar(tag, n.Value); err != nil {
			c.fail(n, "%v", err)
		}
	default:
		c.fail(n, "got the tag %s on a list or mapping, want none", short(tag))
	}
	c.bound(n, v)
	c.done[n] = v
	return v
}

// explicit is the tag that is written at a node, or empty. A single ! makes a
// string of a scalar, and says nothing of others.
func explicit(n *yaml.Node) string {
	switch {
	case n.Style&yaml.TaggedStyle == 0:
		return ""
	case n.Tag != "!":
		return n.ShortTag()
	case n.Kind == yaml.ScalarNode:
		return "!!str"
	}
	return ""
}

// implicit is the type of a scalar without a tag.
func implicit(n *yaml.Node) string {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return "!!str"
	}
	return tagOf(n.Value)
}

// bound notes, once, that there are too many values.
func (c *composer) bound(n *yaml.Node, v *Value) {
	v.size = min(v.size, 1<<32) // sums of these do not overflow
	if v.size <= maxValues || c.full {
		return
	}
	c.full = true
	c.fail(n, "got more than %d values, aliases counted each time", maxValues)
}

func (c *composer) alias(n *yaml.Node, depth int) *Value {
	if n.Alias == nil {
		c.fail(n, "an alias of nothing")
		return &Value{Line: n.Line, Column: n.Column, size: 1}
	}
	if v, ok := c.done[n.Alias]; ok && v == nil {
		c.fail(n, "the value &%s contains itself", short(n.Value))
		return &Value{Line: n.Line, Column: n.Column, size: 1}
	}
	return c.value(n.Alias, depth)
}

func (c *composer) sequence(v *Value, n *yaml.Node, depth int) {
	v.Kind = Seq
	v.Items = make([]*Value, len(n.Content))
	for i, item := range n.Content {
		v.Items[i] = c.value(item, depth+1)
		v.size += v.Items[i].size
	}
}

// mapping makes the pairs of a mapping: those of its merge keys, then its own.
func (c *composer) mapping(v *Value, n *yaml.Node, depth int) {
	v.Kind = Map
	at := map[string]int{}
	own := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			continue
		}
		for _, p := range c.merge(n.Content[i+1], depth) {
			v.put(at, keyOf(p.Key), p)
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			continue
		}
		p := Pair{c.key(n.Content[i], depth), c.value(n.Content[i+1], depth+1)}
		key := keyOf(p.Key)
		if own[key] {
			c.doc.Warnings = append(c.doc.Warnings, &Note{p.Key.Line, p.Key.Column, fmt.Sprintf(
				"the key %s stands twice in this mapping; the last one counts", short(p.Key.Text))})
		}
		own[key] = true
		v.put(at, key, p)
	}
	for _, p := range v.Pairs {
		v.size += p.Key.size + p.Value.size
	}
}

func isMerge(k *yaml.Node) bool {
	tag := explicit(k)
	return k.Kind == yaml.ScalarNode && (tag == "!!merge" || tag == "" && implicit(k) == "!!merge")
}

// key makes a key. A single = is one like any other here.
func (c *composer) key(n *yaml.Node, depth int) *Value {
	if n.Kind == yaml.ScalarNode && explicit(n) == "" && implicit(n) == "!!value" {
		return &Value{Kind: String, Text: n.Value, Line: n.Line, Column: n.Column, size: 1}
	}
	k := c.value(n, depth+1)
	if k.Kind == Seq || k.Kind == Map {
		c.fail(n, "got %v as a key, want a single value", k.Kind)
		return &Value{Line: n.Line, Column: n.Column, size: 1}
	}
	return k
}

// put gives a key its value: at the place of the key, if it is there.
func (v *Value) put(at map[string]int, key string, p Pair) {
	if i, ok := at[key]; ok {
		v.Pairs[i] = Pair{v.Pairs[i].Key, p.Value}
		return
	}
	at[key] = len(v.Pairs)
	v.Pairs = append(v.Pairs, p)
}

// keyOf is the same for keys that Python takes for equal: true, 1 and 1.0 are.
func keyOf(k *Value) string {
	switch k.Kind {
	case Bool:
		if k.Bool {
			return "1"
		}
		return "0"
	case Int:
		return k.Int.String()
	case Float:
		if k.Float == math.Trunc(k.Float) && math.Abs(k.Float) < 1<<53 {
			return strconv.FormatInt(int64(k.Float), 10)
		}
		return strconv.FormatFloat(k.Float, 'g', -1, 64)
	case Date, Time:
		return k.Kind.String() + k.Time.UTC().String()
	case String:
		return "s" + k.Text
	}
	return k.Kind.String()
}

// merge is the pairs that the value of a merge key brings: of one mapping, or of
// a list of them, where the first that has a key gives its value.
func (c *composer) merge(n *yaml.Node, depth int) []Pair {
	v := c.value(n, depth+1)
	var pairs []Pair
	switch v.Kind {
	case Map:
		pairs = v.Pairs
	case Seq:
		for _, item := range slices.Backward(v.Items) {
			if item.Kind != Map {
				c.fail(n, "got %v in the list of a merge key (<<), want mappings", item.Kind)
				return nil
			}
			if c.merged += len(item.Pairs); c.merged > maxValues {
				break
			}
			pairs = append(pairs, item.Pairs...)
		}
	default:
		c.fail(n, "got %v at a merge key (<<), want a mapping or a list of mappings", v.Kind)
	}
	if c.merged += len(pairs); c.merged > maxValues && !c.full {
		c.full = true
		c.fail(n, "got more than %d values from merge keys", maxValues)
		return nil
	}
	return pairs
}
