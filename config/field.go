// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// field is one key of a mapping: what it is called, what it means, what holds
// without it and which variable it fills. The lists of fields stand beside the
// types they fill; reading, printing, comparing and the reference page all walk
// the same lists, so that none of them can know a key the others do not.
type field struct {
	key  string
	def  string // the default, as it would be written
	auto string // in words: what holds where there is no such text
	doc  string // meaning, and what follows from it

	to    any           // a pointer to the variable, or a group, choice, list or dict
	need  bool          // it is an error to leave it out
	words []string      // the values it may have, if they are words
	later []string      // words that are known, but not built
	check func() string // what is wrong with the value once it is read; "" if nothing
	plan  string        // the key as a whole is not built: what it would do
	omit  bool          // the value has no meaning beside the others: not printed
}

// group is a mapping with fixed keys.
type group interface{ fields() []field }

// short is a group for which a plain value may stand: it is that key.
type short interface {
	group
	short() string
}

// choice is a mapping with exactly one key, which says what kind it is. The
// name alone stands for {name: {}}.
type choice interface {
	kinds() []kind
	chosen() *string
}

type kind struct {
	name, doc string
	fields    []field
	later     bool
}

// list is a list of mappings.
type list interface {
	size() int
	resize(n int)
	at(i int) group
}

// dict is a mapping whose keys the user makes up.
type dict interface {
	list
	name(i int) *string
}

type (
	pathTo  struct{ s *string }   // a file, made absolute
	textTo  struct{ s *string }   // a file or a URL
	pathsTo struct{ s *[]string } // files or URLs: one or a list
	pair    struct{ x *[2]float64 }
)

func join(key, sub string) string {
	if key == "" {
		return sub
	}
	return key + "." + sub
}

func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func keysOf(fs []field) []string {
	var s []string
	for _, f := range fs {
		s = append(s, f.key)
	}
	return s
}
