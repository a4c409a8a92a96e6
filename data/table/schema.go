// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"
	"strings"
)

// A kind is what the values of a column are.
type kind uint8

const (
	foreign kind = iota // not read; leaf.what says what it is
	texts               // strings and binary values
	ints
	uints
	float32s
	float64s
	bools
	uuids
	nulls // a column that holds nothing else
)

// fits says whether values of this kind can be given in a form.
func (k kind) fits(f Form) bool {
	switch k {
	case foreign:
		return false
	case nulls:
		return true
	case texts:
		return f != IDs
	case ints, uints:
		return f != Text
	}
	return f == Label
}

// meaning is what a definition level says: that there is a value, or why not.
type meaning uint8

const (
	isPresent = meaning(Present)
	isMissing = meaning(Missing)
	isAbsent  = meaning(Absent)
	isEmpty   = meaning(3) // a list without elements: no value at all
)

// leaf is a column of a Parquet schema.
type leaf struct {
	path     string
	index    int // in a row group
	kind     kind
	what     string // the type, for messages
	physical int64
	maxRep   int
	maxDef   int
	means    []meaning // of each definition level; the last one is a value
}

// schema turns the elements of a footer, a tree written depth first, into columns.
type schema struct {
	elements []element
	at       int
	leaves   []leaf
}

var errSchema = errors.New("the schema is not a tree of its elements")

// node is where a walk through the schema is.
type node struct {
	names []string
	rep   int
	means []meaning // of the definition levels of the nodes above
	what  string    // why nothing below is read, if so
}

func leavesOf(elements []element) ([]leaf, error) {
	if len(elements) > 4*maxColumns {
		return nil, fmt.Errorf("got %d schema elements, want at most %d", len(elements), 4*maxColumns)
	}
	s := &schema{elements: elements, at: 1}
	for range elements[0].children {
		if err := s.walk(node{}, true, 0); err != nil {
			return nil, err
		}
	}
	if s.at != len(elements) {
		return nil, errSchema
	}
	return s.leaves, nil
}

// walk reads one element and those below it. The name of a node counts unless it
// belongs to the spelling of a list.
func (s *schema) walk(n node, named bool, depth int) error {
	if s.at >= len(s.elements) || depth > maxDepth {
		return errSchema
	}
	e := &s.elements[s.at]
	s.at++
	if named {
		n.names = append(n.names[:len(n.names):len(n.names)], e.name)
	}
	n.means = n.means[:len(n.means):len(n.means)]
	group := e.physical < 0
	switch {
	case e.repetition == optional && group:
		n.means = append(n.means, isAbsent)
	case e.repetition == optional:
		n.means = append(n.means, isMissing)
	case e.repetition == repeated:
		n.means = append(n.means, isEmpty)
		n.rep++
	case e.repetition != required:
		return fmt.Errorf("element %s: got repetition %d, want 0, 1 or 2", e.name, e.repetition)
	}
	if !group {
		if e.children != 0 {
			return errSchema
		}
		s.leaf(n, e)
		return nil
	}
	if e.children <= 0 || e.children > int64(len(s.elements)-s.at) {
		return errSchema
	}
	return s.children(n, e, depth)
}

// children walks what is below a group.
func (s *schema) children(n node, e *element, depth int) error {
	isMap := e.converted == convertedMap || e.converted == convertedMapKV || e.logical == logicalMap
	switch {
	case isMap:
		if n.what == "" {
			n.what = "part of a map"
		}
	case e.converted == convertedList, e.logical == logicalList:
		if e.children == 1 && s.elements[s.at].repetition == repeated {
			return s.list(n, e.name, depth+1)
		}
	}
	for range e.children {
		if err := s.walk(n, !isMap, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// list walks the repeated child of a list. Its name, and that of the element where
// there is one between, are spelling.
//
// Source: Apache Parquet, LogicalTypes.md, "Lists" and its rules for older files.
func (s *schema) list(n node, name string, depth int) error {
	e := &s.elements[s.at]
	one := e.physical < 0 && e.children == 1 && s.at+1 < len(s.elements)
	if !one || e.name == "array" || e.name == name+"_tuple" || s.elements[s.at+1].repetition == repeated {
		return s.walk(n, false, depth) // the repeated child is the element
	}
	s.at++
	n.means = append(n.means[:len(n.means):len(n.means)], isEmpty)
	n.rep++
	return s.walk(n, false, depth+1)
}

func (s *schema) leaf(n node, e *element) {
	l := leaf{
		path: strings.Join(n.names, "."), index: len(s.leaves), physical: e.physical,
		maxRep: n.rep, maxDef: len(n.means), means: append(n.means, isPresent),
	}
	l.kind, l.what = kindOf(e)
	if n.what != "" {
		l.kind, l.what = foreign, n.what
	}
	s.leaves = append(s.leaves, l)
}

// kindOf is what a primitive element holds, and its name.
func kindOf(e *element) (kind, string) {
	plain := e.converted < 0 && e.logical == 0
	integer := plain || e.logical == logicalInt || e.converted >= convertedUint8 && e.converted <= convertedInt64
	switch {
	case e.logical == logicalNull:
		return nulls, "null"
	case e.physical == physicalBool:
		return bools, "boolean"
	case (e.physical == physicalInt32 || e.physical == physicalInt64) && integer:
		if e.unsigned || e.converted >= convertedUint8 && e.converted <= convertedUint64 {
			return uints, "integer"
		}
		return ints, "integer"
	case e.physical == physicalFloat:
		return float32s, "float"
	case e.physical == physicalDouble:
		return float64s, "double"
	case e.physical == physicalFixed && e.logical == logicalUUID && e.width == 16:
		return uuids, "UUID"
	case e.physical == physicalBytes && (plain || isText(e)):
		return texts, "string"
	}
	return foreign, annotation(e)
}

func isText(e *element) bool {
	switch e.logical {
	case logicalString, logicalEnum, logicalJSON:
		return true
	case 0:
		return e.converted == convertedUTF8 || e.converted == convertedEnum || e.converted == convertedJSON
	}
	return false
}

// annotation names a type that is not read.
func annotation(e *element) string {
	logical := map[int]string{
		5: "decimal", 6: "date", 7: "time", 8: "timestamp", 13: "BSON",
		15: "float16", 16: "variant", 17: "geometry", 18: "geography",
	}
	converted := map[int64]string{
		5: "decimal", 6: "date", 7: "time", 8: "time", 9: "timestamp",
		10: "timestamp", 20: "BSON", 21: "interval",
	}
	if s := logical[e.logical]; s != "" {
		return s
	}
	if s := converted[e.converted]; s != "" && e.logical == 0 {
		return s
	}
	if e.physical == 3 {
		return "timestamp of 96 bits"
	}
	return fmt.Sprintf("type %d (logical %d, converted %d)", e.physical, e.logical, e.converted)
}
