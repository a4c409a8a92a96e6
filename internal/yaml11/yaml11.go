// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package yaml11 reads YAML as PyYAML's safe loader does: the scalars of YAML 1.1,
// where yes is true, 017 is 15, 1:30 is 90 and 1e-5 is a string. Configurations of
// mergekit and tasks of lm-evaluation-harness are written in it.
//
//	doc, err := yaml11.Parse(text)
//	for _, p := range doc.Root.Pairs {
//		fmt.Println(p.Key.Text, p.Value.Line)
//	}
//
// Every value knows its line and column. A value that an alias repeats is shared,
// not copied. What PyYAML refuses is refused here, and so are tags of types that
// JSON does not have, values that contain themselves, and texts whose aliases stand
// for more than a million values. A key that stands twice has its last value, as in
// PyYAML, and is noted.
//
// It writes no YAML and fills no structs. Recipes of pleach itself are read by
// package config, in YAML 1.2.
package yaml11

import (
	"fmt"
	"math/big"
	"strconv"
	"time"
)

// Bounds that no honest file comes near.
const (
	maxText   = 8 << 20
	maxDepth  = 200
	maxValues = 1 << 20 // aliases count each time
	maxDigits = 4300    // of an integer; Python's own limit
)

// Kind is what a value is.
type Kind byte

// The kinds of a Value.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	Date // a day
	Time // a moment
	Seq
	Map
)

var kinds = [...]string{
	"null", "a boolean", "a whole number", "a number", "a string", "a date", "a time", "a list", "a mapping",
}

func (k Kind) String() string { return kinds[k] }

// Value is a node of the tree. Fields that its kind does not name are zero.
type Value struct {
	Kind         Kind
	Line, Column int    // from 1
	Text         string // the contents of a String, any other scalar as it is written
	Bool         bool
	Int          *big.Int
	Float        float64   // of an Int too, the nearest
	Time         time.Time // of a Date too; without a zone it is UTC
	Items        []*Value  // of a Seq
	Pairs        []Pair    // of a Map: in the order of their first keys, no key twice

	size int64 // values below, itself included, aliases counted each time
}

// Pair is a key of a mapping with its value.
type Pair struct{ Key, Value *Value }

// Lookup is the value of a key that is a string.
func (v *Value) Lookup(key string) (*Value, bool) {
	for _, p := range v.Pairs {
		if p.Key.Kind == String && p.Key.Text == key {
			return p.Value, true
		}
	}
	return nil, false
}

// String says what a value is, for messages: `the string "a"`, `a list of 3`.
func (v *Value) String() string {
	switch v.Kind {
	case Null:
		return "null"
	case Bool:
		return strconv.FormatBool(v.Bool)
	case String:
		return fmt.Sprintf("the string %q", short(v.Text))
	case Seq:
		return fmt.Sprintf("a list of %d", len(v.Items))
	case Map:
		return "a mapping"
	case Date, Time:
		return fmt.Sprintf("%v (%s)", v.Kind, short(v.Text))
	}
	return "the number " + short(v.Text)
}

// short is text cut to what a message can hold.
func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "…"
	}
	return s
}

// Note is a remark, or an error, about a place of a text.
type Note struct {
	Line, Column int
	Msg          string
}

func (n *Note) Error() string { return fmt.Sprintf("line %d: %s", n.Line, n.Msg) }

// Document is a text that was read.
type Document struct {
	Root     *Value  // null for an empty text
	Warnings []*Note // keys that stand twice
}
