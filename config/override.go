// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// override sets one key from an argument "dotted.key=value" in the tree of
// nodes. The value is read as YAML, so that lists and mappings work too.
func (d *reader) override(root *yaml.Node, arg string) {
	p := place{from: "command line", arg: arg}
	key, text, ok := strings.Cut(arg, "=")
	switch {
	case !ok || key == "":
		d.fail(p, "", "want key=value", `such as train.batch="8 sequences"`)
		return
	case !utf8.ValidString(arg) || len(arg) > maxText:
		d.fail(p, "", "not UTF-8, or too long")
		return
	}
	var doc yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		if strings.TrimSpace(text) == "" {
			d.fail(p, key, "got no value", "write key=value")
		} else {
			d.fail(p, key, fmt.Sprintf("got %q, which is not YAML", text), "quote it for YAML too")
		}
		return
	}
	v := doc.Content[0]
	d.mark(v, arg)
	d.set(root, "", strings.Split(key, "."), v, p)
}

// mark notes that a node and all below it stand in an argument.
func (d *reader) mark(n *yaml.Node, arg string) {
	d.args[n] = arg
	for _, c := range n.Content {
		d.mark(c, arg)
	}
}

// set puts v at the path below n, making mappings on the way.
func (d *reader) set(n *yaml.Node, done string, path []string, v *yaml.Node, p place) {
	key := join(done, path[0])
	var slot **yaml.Node
	switch n.Kind {
	case yaml.MappingNode:
		slot = d.slot(n, path[0], p.arg)
	case yaml.SequenceNode:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(n.Content) || strconv.Itoa(i) != path[0] {
			d.fail(p, key, fmt.Sprintf("the list has the entries 0 to %d", len(n.Content)-1))
			return
		}
		slot = &n.Content[i]
	default:
		d.fail(p, key, fmt.Sprintf("%s is a value, it has no keys", done))
		return
	}
	if len(path) == 1 {
		*slot = v
		return
	}
	*slot = d.open(*slot, key)
	d.set(*slot, key, path[1:], v, p)
}

// slot is where the value of a key stands in a mapping; a key that is not there
// is appended.
func (d *reader) slot(n *yaml.Node, key, arg string) **yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return &n.Content[i+1]
		}
	}
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	d.args[k], d.args[m] = arg, arg
	n.Content = append(n.Content, k, m)
	return &n.Content[len(n.Content)-1]
}

// open makes a mapping of a value that stands for one, so that a key can be set
// in it, and a copy of an aliased one, so that its other uses stay.
func (d *reader) open(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.AliasNode && n.Alias != nil && i < 32; i++ {
		m := *n.Alias
		m.Content, m.Anchor = slices.Clone(m.Content), ""
		n = &m
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return n
	}
	switch {
	case key == "model", strings.HasPrefix(key, "evaluate.perplexity."):
		return d.wrap("path", n)
	case key == "engine", key == "train.schedule":
		return d.named(n)
	}
	return n
}
