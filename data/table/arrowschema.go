// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"
	"strings"
)

// Numbers of the union Type in Schema.fbs.
const (
	arrowNull, arrowInt, arrowFloat, arrowBinary, arrowUtf8, arrowBool          = 1, 2, 3, 4, 5, 6
	arrowList, arrowStruct, arrowUnion, arrowFixedBinary, arrowFixedList        = 12, 13, 14, 15, 16
	arrowMap, arrowLargeBinary, arrowLargeUtf8, arrowLargeList                  = 17, 19, 20, 21
	arrowRunEnd, arrowBinaryView, arrowUtf8View, arrowListView, arrowLargeLView = 22, 23, 24, 25, 26
)

var arrowNames = map[int64]string{
	arrowFloat: "half-precision float", 7: "decimal", 8: "date", 9: "time", 10: "timestamp", 11: "interval",
	arrowUnion: "union", arrowFixedBinary: "fixed-size binary", arrowMap: "map", 18: "duration",
	arrowRunEnd: "run-end encoded", arrowListView: "list view", arrowLargeLView: "large list view",
}

// field is a node of an Arrow schema, and where its buffers are among those of a
// batch: batches list them depth first.
type field struct {
	name     string
	typ      int64
	kind     kind // foreign for lists, structs and what is not read
	width    int  // bytes of a number, or of an offset
	size     int  // elements of a fixed-size list; 1 for a dense union
	kids     []*field
	dict     int64 // dictionary, −1 for none
	index    place
	node     int // number of its first field node
	buffer   int // number of its first buffer
	views    int // number of view columns in front of it
	buffers  int // of its own
	validity bool
}

// place is the type of the places in a dictionary.
type place struct {
	width  int
	signed bool
}

// arrowSchema numbers nodes and buffers.
type arrowSchema struct {
	v4       bool // metadata before version 5: unions have a validity buffer
	nodes    int
	buffers  int
	views    int
	fields   int
	dictKids map[int64]*field // what the values of each dictionary are
}

func (s *arrowSchema) field(f flat, depth int) (*field, error) {
	if s.fields++; s.fields > 4*maxColumns || depth > maxDepth {
		return nil, errors.New("got a schema of more fields than are read")
	}
	x := &field{name: f.string(0), typ: f.int(2, 1, 0) & 0xFF, dict: -1}
	x.setType(f.table(3))
	if d := f.table(4); d.at >= 0 {
		return x, s.encoded(x, f, d, depth)
	}
	s.number(x)
	for _, k := range f.tables(5) {
		kid, err := s.field(k, depth+1)
		if err != nil {
			return nil, err
		}
		x.kids = append(x.kids, kid)
	}
	one := x.isList() || x.typ == arrowMap
	if one && len(x.kids) != 1 {
		return nil, fmt.Errorf("field %s: got a list with %d kinds of elements", x.name, len(x.kids))
	}
	return x, *f.bad
}

// encoded is a field whose values stand in a dictionary: its buffers are those of
// an integer column, and its children are in the batches of the dictionary.
func (s *arrowSchema) encoded(x *field, f, d flat, depth int) error {
	sub := &arrowSchema{v4: s.v4, dictKids: s.dictKids, fields: s.fields}
	values := &field{name: x.name, typ: x.typ, kind: x.kind, width: x.width, dict: -1}
	sub.number(values)
	for _, k := range f.tables(5) {
		kid, err := sub.field(k, depth+1)
		if err != nil {
			return err
		}
		values.kids = append(values.kids, kid)
	}
	s.fields = sub.fields
	x.dict = d.int(0, 8, 0)
	x.index = place{4, true}
	if t := d.table(1); t.at >= 0 {
		x.index = place{int(t.int(0, 4, 0)) / 8, t.bool(1)}
	}
	switch x.index.width {
	case 1, 2, 4, 8:
	default:
		return fmt.Errorf("field %s: got places in a dictionary of %d bytes", x.name, x.index.width)
	}
	if len(values.kids) > 0 || x.dict < 0 {
		x.kind = foreign
	}
	if s.dictKids[x.dict] == nil {
		s.dictKids[x.dict] = values
	}
	x.node, x.buffer, x.views = s.nodes, s.buffers, s.views
	x.buffers, x.validity = 2, true
	s.nodes, s.buffers = s.nodes+1, s.buffers+2
	return *f.bad
}

// setType reads the parameters of a type.
func (x *field) setType(t flat) {
	switch x.typ {
	case arrowNull:
		x.kind = nulls
	case arrowInt:
		x.kind, x.width = uints, int(t.int(0, 4, 0))/8
		if t.bool(1) {
			x.kind = ints
		}
	case arrowFloat:
		switch t.int(0, 2, 0) {
		case 1:
			x.kind, x.width = float32s, 4
		case 2:
			x.kind, x.width = float64s, 8
		}
	case arrowBool:
		x.kind = bools
	case arrowBinary, arrowUtf8:
		x.kind, x.width = texts, 4
	case arrowLargeBinary, arrowLargeUtf8:
		x.kind, x.width = texts, 8
	case arrowBinaryView, arrowUtf8View:
		x.kind, x.width = texts, 16
	case arrowList, arrowMap:
		x.width = 4
	case arrowLargeList:
		x.width = 8
	case arrowFixedList:
		x.size = int(t.int(0, 4, 0))
	case arrowUnion:
		x.size = int(t.int(0, 2, 0)) & 1 // 1 is dense
	}
	if x.typ == arrowInt && x.width != 1 && x.width != 2 && x.width != 4 && x.width != 8 {
		x.kind = foreign
	}
}

func (x *field) isList() bool {
	return x.typ == arrowList || x.typ == arrowLargeList || x.typ == arrowFixedList
}

func (x *field) isView() bool { return x.typ == arrowUtf8View || x.typ == arrowBinaryView }

// number gives a field its node and buffers.
//
// Source: Apache Arrow, Columnar.rst, "Buffer Listing for Each Layout".
func (s *arrowSchema) number(x *field) {
	x.node, x.buffer, x.views, x.validity = s.nodes, s.buffers, s.views, true
	switch {
	case x.typ == arrowNull, x.typ == arrowRunEnd:
		x.buffers, x.validity = 0, false
	case x.typ == arrowUnion:
		x.buffers, x.validity = 1+x.size, false // types; offsets if it is dense
		if s.v4 {
			x.buffers++
		}
	case x.typ == arrowStruct, x.typ == arrowFixedList:
		x.buffers = 1
	case x.typ == arrowUtf8, x.typ == arrowBinary, x.typ == arrowLargeUtf8, x.typ == arrowLargeBinary,
		x.typ == arrowListView, x.typ == arrowLargeLView:
		x.buffers = 3
	case x.isView():
		x.buffers = 2
		s.views++
	default:
		x.buffers = 2
	}
	s.nodes, s.buffers = s.nodes+1, s.buffers+x.buffers
}

// arrowLeaf is a column: the fields on the way, the last of which has the values.
type arrowLeaf struct {
	path string
	way  []*field
	kind kind
	what string
}

// leaves lists the columns below a field.
func (x *field) leaves(way []*field, names []string, what string, named bool, all *[]arrowLeaf) {
	way = append(way[:len(way):len(way)], x)
	if named {
		names = append(names[:len(names):len(names)], x.name)
	}
	switch {
	case x.dict < 0 && x.typ == arrowStruct:
		for _, k := range x.kids {
			k.leaves(way, names, what, true, all)
		}
	case x.dict < 0 && x.isList():
		x.kids[0].leaves(way, names, what, false, all)
	case x.dict < 0 && len(x.kids) > 0:
		if what == "" {
			what = "part of a " + arrowNames[x.typ]
		}
		for _, k := range x.kids {
			k.leaves(way, names, what, x.typ != arrowMap || k.typ != arrowStruct, all)
		}
	default:
		l := arrowLeaf{strings.Join(names, "."), way, x.kind, arrowWhat(x)}
		if what != "" {
			l.kind, l.what = foreign, what
		}
		*all = append(*all, l)
	}
}

func arrowWhat(x *field) string {
	switch x.kind {
	case texts:
		return "string"
	case ints, uints:
		return "integer"
	case float32s, float64s:
		return "float"
	case bools:
		return "boolean"
	case nulls:
		return "null"
	}
	if x.dict >= 0 {
		return "dictionary of nested values"
	}
	if s := arrowNames[x.typ]; s != "" {
		return s
	}
	return fmt.Sprintf("type %d", x.typ)
}
