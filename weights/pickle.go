// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// The bounds of a pickle. A file of 100,000 tensors stays far below them.
const (
	pickleLimit = 1 << 26 // bytes
	pickleStack = 1 << 16 // values and marks on the stack; Python writes 1000 pairs at a time
	pickleParts = 1 << 22 // values that are made, and places of the memo
)

// pickle runs a pickle of protocol 2: a program for a stack machine, whose last
// value is the object. It knows the operations that make plain values out of
// plain values. What a program names (a class, a function) is a [pickleName];
// which of them there are, and what a call of one gives, the owner decides, so
// nothing outside of this package ever runs.
//
// Values are nil, bool, int64, float64, string, pickleTuple, *pickleList,
// *pickleDict, pickleName, and what the owner makes.
//
// Source: the documentation of the module pickletools of Python.
type pickle struct {
	src   string
	pos   int
	stack []any
	marks []int // lengths of the stack
	memo  []any
	parts int

	known  func(n pickleName) bool                           // whether a name may stand in the program
	call   func(n pickleName, args pickleTuple) (any, error) // REDUCE
	stored func(id any) (any, error)                         // BINPERSID: what lies beside the pickle
}

type (
	pickleName  string // module and name with a dot between
	pickleTuple []any
	pickleList  struct{ items []any }
	pickleDict  struct{ items []any } // keys and values in turn, in order; a key may come again
)

// load runs the whole program.
func (p *pickle) load() (any, error) {
	v, err := p.run()
	if err != nil {
		return nil, fmt.Errorf("byte %d of the pickle: %w", p.pos, err)
	}
	return v, nil
}

func (p *pickle) run() (any, error) {
	for {
		op, err := p.bytes(1)
		if err != nil {
			return nil, err
		}
		if op == "." {
			if len(p.stack) != 1 || len(p.marks) != 0 || p.pos != len(p.src) {
				return nil, fmt.Errorf("it ends with %d values and %d bytes, want one value and no more bytes",
					len(p.stack), len(p.src)-p.pos)
			}
			return p.stack[0], nil
		}
		if err := p.step(op[0]); err != nil {
			return nil, err
		}
		if len(p.stack)+len(p.marks) > pickleStack {
			return nil, fmt.Errorf("got a stack of more than %d values", pickleStack)
		}
		if p.parts > pickleParts {
			return nil, fmt.Errorf("got more than %d values", pickleParts)
		}
	}
}

// step runs one operation.
func (p *pickle) step(op byte) error {
	switch op {
	case '\x80': // PROTO
		return p.protocol()
	case '(': // MARK
		p.marks = append(p.marks, len(p.stack))
	case 'J', 'K', 'M', '\x8a', 'G', 'X':
		return p.scalar(op)
	case 'N': // NONE
		p.push(nil)
	case '\x88', '\x89': // NEWTRUE, NEWFALSE
		p.push(op == '\x88')
	case ')', 't', '\x85', '\x86', '\x87':
		return p.tuple(op)
	case ']': // EMPTY_LIST
		p.push(&pickleList{})
	case '}': // EMPTY_DICT
		p.push(&pickleDict{})
	case 'a', 'e', 's', 'u':
		return p.fill(op)
	case 'q', 'r', 'h', 'j':
		return p.remember(op)
	case 'c', 'R', 'b', 'Q':
		return p.object(op)
	default:
		return fmt.Errorf("operation %#02x: is none of those that saved tensors need", op)
	}
	return nil
}

func (p *pickle) protocol() error {
	b, err := p.bytes(1)
	if err == nil && (b != "\x02" || p.pos != 2) {
		err = fmt.Errorf("got protocol %d, want 2, and that once", b[0])
	}
	return err
}

// scalar reads a number or a string.
func (p *pickle) scalar(op byte) error {
	b, err := p.bytes(scalarSize(op))
	if err != nil {
		return err
	}
	switch op {
	case 'K', 'M': // BININT1, BININT2
		p.push(int64(little(b)))
	case 'J': // BININT
		p.push(int64(int32(little(b))))
	case 'G': // BINFLOAT
		p.push(math.Float64frombits(binary.BigEndian.Uint64([]byte(b))))
	case '\x8a': // LONG1, in two's complement
		n := int(b[0])
		if n > 8 {
			return fmt.Errorf("got an integer of %d bytes, want at most 8", n)
		}
		if b, err = p.bytes(n); err != nil {
			return err
		}
		shift := 64 - 8*n
		p.push(int64(little(b)<<shift) >> shift)
	case 'X': // BINUNICODE
		if b, err = p.bytes(int(little(b))); err != nil {
			return err
		}
		if !utf8.ValidString(b) {
			return errors.New("got a string that is not UTF-8")
		}
		p.push(b)
	}
	return nil
}

// scalarSize is the number of bytes of a number, or of the length of what follows.
func scalarSize(op byte) int {
	switch op {
	case 'G':
		return 8
	case 'J', 'X':
		return 4
	case 'M':
		return 2
	}
	return 1
}

// little is the unsigned integer of at most 8 bytes.
func little(b string) uint64 {
	var n uint64
	for i := range len(b) {
		n |= uint64(b[i]) << (8 * i)
	}
	return n
}

// tuple makes one of the values on top of the stack.
func (p *pickle) tuple(op byte) error {
	var t []any
	var err error
	switch op {
	case 't': // TUPLE
		t, err = p.popMark()
	case '\x85', '\x86', '\x87': // TUPLE1, TUPLE2, TUPLE3
		t, err = p.popN(int(op - '\x84'))
	}
	if err != nil {
		return err
	}
	p.push(append(pickleTuple{}, t...))
	return nil
}

// fill adds to the list or dictionary below what it takes from the stack.
func (p *pickle) fill(op byte) error {
	var items []any
	var err error
	switch op {
	case 'a': // APPEND
		items, err = p.popN(1)
	case 's': // SETITEM
		items, err = p.popN(2)
	default: // APPENDS, SETITEMS
		items, err = p.popMark()
	}
	if err != nil {
		return err
	}
	p.parts += len(items)
	to, err := p.top()
	if err != nil {
		return err
	}
	isDict := op == 's' || op == 'u'
	switch to := to.(type) {
	case *pickleList:
		if !isDict {
			to.items = append(to.items, items...)
			return nil
		}
	case *pickleDict:
		if isDict && len(items)%2 == 0 {
			to.items = append(to.items, items...)
			return nil
		}
	}
	return fmt.Errorf("adding %d values to %s", len(items), pickleKind(to))
}

// remember writes the memo or reads it. Places are taken in order, as Python's
// pickler takes them, so that the memo is never larger than the program.
func (p *pickle) remember(op byte) error {
	size := 1
	if op == 'r' || op == 'j' { // LONG_BINPUT, LONG_BINGET
		size = 4
	}
	b, err := p.bytes(size)
	if err != nil {
		return err
	}
	i := int(little(b))
	if op == 'h' || op == 'j' {
		if i >= len(p.memo) {
			return fmt.Errorf("got place %d of the memo, want one of %d", i, len(p.memo))
		}
		p.push(p.memo[i])
		return nil
	}
	v, err := p.top()
	switch {
	case err != nil:
		return err
	case i > len(p.memo):
		return fmt.Errorf("got place %d of the memo, want at most the next one, %d", i, len(p.memo))
	case i < len(p.memo):
		p.memo[i] = v
		return nil
	}
	p.memo = append(p.memo, v)
	p.parts++
	return nil
}

// object names something, calls it, gives it attributes, or finds what is stored
// beside the pickle.
func (p *pickle) object(op byte) error {
	switch op {
	case 'c': // GLOBAL
		return p.global()
	case 'Q': // BINPERSID
		id, err := p.popN(1)
		if err != nil {
			return err
		}
		v, err := p.stored(id[0])
		if err != nil {
			return err
		}
		p.push(v)
		return nil
	}
	two, err := p.popN(2)
	if err != nil {
		return err
	}
	if op == 'b' { // BUILD: attributes of a dictionary, which hold nothing that is read
		if _, ok := two[0].(*pickleDict); !ok {
			return fmt.Errorf("giving attributes to %s", pickleKind(two[0]))
		}
		p.push(two[0])
		return nil
	}
	f, ok := two[0].(pickleName) // REDUCE
	args, isTuple := two[1].(pickleTuple)
	if !ok || !isTuple {
		return fmt.Errorf("calling %s with %s", pickleKind(two[0]), pickleKind(two[1]))
	}
	v, err := p.call(f, args)
	if err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	p.push(v)
	return nil
}

// global reads a name: two lines, the module and what is in it.
func (p *pickle) global() error {
	module, rest, ok := strings.Cut(p.src[p.pos:], "\n")
	name, _, ok2 := strings.Cut(rest, "\n")
	if !ok || !ok2 {
		return errors.New("the file ends inside a name")
	}
	n := pickleName(module + "." + name)
	if !p.known(n) {
		return fmt.Errorf("got the global %.200q, which is none of those that saved tensors need: "+
			"it is not run", string(n))
	}
	p.pos += len(module) + len(name) + 2
	p.push(n)
	return nil
}

func (p *pickle) push(v any) {
	p.stack = append(p.stack, v)
	p.parts++
}

// bytes is the next n bytes of the program.
func (p *pickle) bytes(n int) (string, error) {
	if n > len(p.src)-p.pos {
		return "", errors.New("the pickle ends here: it is cut off")
	}
	b := p.src[p.pos:][:n]
	p.pos += n
	return b, nil
}

// floor is where the values after the last mark begin.
func (p *pickle) floor() int {
	if len(p.marks) == 0 {
		return 0
	}
	return p.marks[len(p.marks)-1]
}

func (p *pickle) top() (any, error) {
	if len(p.stack) == p.floor() {
		return nil, errors.New("the stack is empty")
	}
	return p.stack[len(p.stack)-1], nil
}

// popN takes n values. They are valid until the next push.
func (p *pickle) popN(n int) ([]any, error) {
	at := len(p.stack) - n
	if at < p.floor() {
		return nil, errors.New("the stack is empty")
	}
	list := p.stack[at:]
	p.stack = p.stack[:at]
	return list, nil
}

// popMark takes the values after the last mark, and it.
func (p *pickle) popMark() ([]any, error) {
	if len(p.marks) == 0 {
		return nil, errors.New("there is no mark on the stack")
	}
	at := p.floor()
	p.marks = p.marks[:len(p.marks)-1]
	list := p.stack[at:]
	p.stack = p.stack[:at]
	return list, nil
}

// pickleKind says what a value is, for messages.
func pickleKind(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a boolean"
	case int64:
		return fmt.Sprint("the integer ", v)
	case float64:
		return fmt.Sprint("the number ", v)
	case string:
		return fmt.Sprintf("the string %.200q", v)
	case pickleTuple:
		return fmt.Sprintf("a tuple of %d", len(v))
	case *pickleList:
		return "a list"
	case *pickleDict:
		return "a dictionary"
	case pickleName:
		return string(v)
	}
	return "a tensor or its storage"
}
