// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"pleach/internal/unit"
)

// leaf reads a value into a variable, by the type of the variable alone: what
// YAML itself would take a text for (octal numbers, yes and no, dates) plays no
// part. It returns what is wrong, and perhaps what to do about it.
func (d *reader) leaf(n *yaml.Node, f *field) (msg, hint string) {
	switch to := f.to.(type) {
	case pathsTo:
		return d.paths(n, to.s)
	case *[]string:
		return d.wordList(n, f, to)
	case pair:
		return d.pair(n, to.x)
	}
	if n.Kind != yaml.ScalarNode {
		return "got " + describe(n) + ", want a single value", ""
	}
	s := n.Value
	switch to := f.to.(type) {
	case *string:
		*to = s
		return word(s, f)
	case pathTo:
		return d.path(s, to.s)
	case textTo:
		return d.textPath(s, to.s)
	case *unit.Sequences:
		if x, err := unit.Count(s); err == nil { // its key has no other unit
			*to = unit.Sequences(x)
			return "", ""
		}
		return reason(to.UnmarshalText([]byte(s)))
	case encoding.TextUnmarshaler:
		return reason(to.UnmarshalText([]byte(s)))
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return fmt.Sprintf("got the text %q, want %s", s, wanted(f.to)), "remove the quotes"
	}
	return plainValue(s, f.to)
}

// plainValue reads booleans and numbers.
func plainValue(s string, to any) (msg, hint string) {
	switch to := to.(type) {
	case *bool:
		return boolean(s, to)
	case **bool:
		*to = new(bool)
		return boolean(s, *to)
	case *uint64:
		x, err := unit.Count(s)
		*to = uint64(x)
		return reason(err)
	case *int:
		x, err := unit.Count(s)
		if err == nil && x > math.MaxInt32 {
			return fmt.Sprintf("got %s, want at most %d", s, math.MaxInt32), ""
		}
		*to = int(x)
		return reason(err)
	case *float64:
		x, err := unit.Number(s)
		*to = x
		return reason(err)
	}
	return fmt.Sprintf("a field of type %T cannot be read", to), "" // TestFields finds it
}

func reason(err error) (msg, hint string) {
	if err != nil {
		return bare(err), ""
	}
	return "", ""
}

// bare is what an error of unit says without its name of the quantity: the key
// says it.
func bare(err error) string {
	if _, s, ok := strings.Cut(err.Error(), ": got "); ok {
		return "got " + s
	}
	return err.Error()
}

func boolean(s string, to *bool) (msg, hint string) {
	switch s {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		return fmt.Sprintf("got %q, want true or false", s), ""
	}
	return "", ""
}

func wanted(to any) string {
	switch to.(type) {
	case *bool, **bool:
		return "true or false"
	}
	return "a number"
}

// word checks a text against the words that a field knows.
func word(s string, f *field) (msg, hint string) {
	switch {
	case s == "":
		return "got an empty text", ""
	case f.words == nil || slices.Contains(f.words, s):
		return "", ""
	case slices.Contains(f.later, s):
		return fmt.Sprintf("got %s: not yet built", s), "use " + strings.Join(f.words, " or ")
	}
	all := append(slices.Clone(f.words), f.later...)
	hint = didYouMean(s, all)
	if strings.HasPrefix(hint, "known") {
		hint = ""
	}
	return fmt.Sprintf("got %q, want %s", s, strings.Join(f.words, " or ")), hint
}

func (d *reader) wordList(n *yaml.Node, f *field, to *[]string) (msg, hint string) {
	if n.Kind != yaml.SequenceNode {
		return "got " + describe(n) + ", want a list such as [" + strings.Join(f.words, ", ") + "]", ""
	}
	*to = []string{}
	for _, c := range n.Content {
		if c.Kind != yaml.ScalarNode {
			return "got " + describe(c) + " in the list, want a word", ""
		}
		if msg, hint := word(c.Value, f); msg != "" {
			return msg, hint
		}
		if !slices.Contains(*to, c.Value) {
			*to = append(*to, c.Value)
		}
	}
	return "", ""
}

func (d *reader) pair(n *yaml.Node, to *[2]float64) (msg, hint string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		return "got " + describe(n) + ", want two numbers such as [0.9, 0.95]", ""
	}
	for i, c := range n.Content {
		x, err := unit.Number(c.Value)
		if err != nil {
			return reason(err)
		}
		to[i] = x
	}
	return "", ""
}

// paths reads a path or a list of them.
func (d *reader) paths(n *yaml.Node, to *[]string) (msg, hint string) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	if !d.count(len(items), "", n) {
		return "too many paths", ""
	}
	if len(items) == 0 {
		return "got an empty list, want a path or a list of them", ""
	}
	*to = make([]string, len(items))
	for i, c := range items {
		if c.Kind != yaml.ScalarNode || c.Tag == "!!null" {
			return "got " + describe(c) + ", want a path or a list of them", ""
		}
		if msg, hint := d.textPath(c.Value, &(*to)[i]); msg != "" {
			return msg, hint
		}
	}
	return "", ""
}

// schemes are those of URLs under which documents may lie.
func schemes() []string { return []string{"s3", "gs", "azblob", "hf"} }

// textPath reads a path, or a URL of documents, which stays as it is.
func (d *reader) textPath(s string, to *string) (msg, hint string) {
	scheme, rest, remote := strings.Cut(s, "://")
	if !remote || !slices.Contains(schemes(), scheme) {
		return d.path(s, to)
	}
	if rest == "" {
		return fmt.Sprintf("got %q, want a bucket or data set behind it", s), ""
	}
	*to = s
	return "", ""
}

// path makes a path absolute, from the folder of the recipe.
func (d *reader) path(s string, to *string) (msg, hint string) {
	scheme, _, remote := strings.Cut(s, "://")
	switch {
	case s == "":
		return "got an empty path", ""
	case strings.IndexByte(s, 0) >= 0:
		return "got a path with a zero byte", ""
	case remote && slices.Contains(schemes(), scheme):
		return fmt.Sprintf("got %q, want a path of this machine", s), "pleach get makes a local copy"
	case remote:
		return fmt.Sprintf("got %q, want a path or a URL of %s: %s:// is not known", s, strings.Join(schemes(), ", "), scheme), ""
	case s == "~" || strings.HasPrefix(s, "~/"):
		return fmt.Sprintf("got %q: a recipe does not expand ~", s), "write the whole path"
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(d.dir, s)
	}
	*to = filepath.Clean(s)
	return "", ""
}

// describe names a node in a message.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return strconv.Quote(n.Value)
}

// number prints a float so that it reads back the same, as people write it.
func number(x float64) string {
	format := byte('g')
	if x < 1e-3 && x > 0 {
		format = 'e'
	}
	s := strconv.FormatFloat(x, format, -1, 64)
	return strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(s)
}
