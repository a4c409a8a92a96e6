// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package token

// doubleArray is a trie over bytes with one memory access per byte: the child
// of node i by byte b is units[i].base ^ b, if that unit names i as its parent.
//
// Aoe, "An efficient digital search algorithm by using a double-array
// structure", IEEE Transactions on Software Engineering 15(9), 1989; the
// exclusive or, which keeps the children of a node within 256 units, is that of
// Darts-clone.
type doubleArray struct {
	units   []arrayUnit
	longest int // bytes of the longest key
}

type arrayUnit struct {
	base   int32
	parent int32 // unitFree, or unitRoot
	value  int32 // -1: no key ends here
}

const (
	unitFree  = -1
	unitRoot  = -2
	unitBlock = 256 // units that share all but the last byte of their index
)

// child is the node behind at by byte b, or -1.
func (d *doubleArray) child(at int32, b byte) int32 {
	next := d.units[at].base ^ int32(b)
	if d.units[next].parent != at {
		return -1
	}
	return next
}

// exact is the value of a key, or -1.
func (d *doubleArray) exact(key []byte) int32 {
	at := int32(0)
	for _, b := range key {
		if at = d.child(at, b); at < 0 {
			return -1
		}
	}
	return d.units[at].value
}

// newDoubleArray stores keys, which are sorted, distinct and not empty. Values
// are not negative.
func newDoubleArray(keys []string, values []int32) *doubleArray {
	b := arrayBuilder{keys: keys, values: values, d: &doubleArray{}}
	b.grow()
	b.take(0, unitRoot)
	var stack []arrayRange
	if len(keys) > 0 {
		stack = append(stack, arrayRange{0, len(keys), 0, 0})
	}
	for len(stack) > 0 {
		r := stack[len(stack)-1]
		stack = b.place(stack[:len(stack)-1], r)
	}
	return b.d
}

// arrayRange is a node whose children are still to be placed: the keys from lo
// up to hi have their first depth bytes in common.
type arrayRange struct {
	lo, hi, depth int
	at            int32
}

type arrayBuilder struct {
	d      *doubleArray
	keys   []string
	values []int32
	free   []int32 // free units by block
	first  int32   // no unit before it is free
	labels []byte
}

// place gives the node of r its value and its children, and puts these on the
// stack.
func (b *arrayBuilder) place(stack []arrayRange, r arrayRange) []arrayRange {
	if len(b.keys[r.lo]) == r.depth {
		b.d.units[r.at].value = b.values[r.lo]
		b.d.longest = max(b.d.longest, r.depth)
		if r.lo++; r.lo == r.hi {
			return stack
		}
	}
	b.labels = b.labels[:0]
	for i := r.lo; i < r.hi; i++ {
		if c := b.keys[i][r.depth]; i == r.lo || c != b.keys[i-1][r.depth] {
			b.labels = append(b.labels, c)
		}
	}
	base := b.findBase()
	b.d.units[r.at].base = base
	lo := r.lo
	for _, c := range b.labels {
		hi := lo + 1
		for hi < r.hi && b.keys[hi][r.depth] == c {
			hi++
		}
		at := base ^ int32(c)
		b.take(at, r.at)
		stack = append(stack, arrayRange{lo, hi, r.depth + 1, at})
		lo = hi
	}
	return stack
}

// findBase is a base for which the units of all labels are free. One label fits
// anywhere; for several only the last blocks are searched, which leaves some
// units unused and keeps building linear.
func (b *arrayBuilder) findBase() int32 {
	if len(b.labels) == 1 {
		for int(b.first) < len(b.d.units) && b.d.units[b.first].parent != unitFree {
			b.first++
		}
		if int(b.first) < len(b.d.units) {
			return b.first ^ int32(b.labels[0])
		}
	}
	const recent = 4
	for block := max(0, len(b.free)-recent); block < len(b.free); block++ {
		if int(b.free[block]) < len(b.labels) {
			continue
		}
		for i := range int32(unitBlock) {
			if base := int32(block)*unitBlock + i; b.fits(base) {
				return base
			}
		}
	}
	base := int32(len(b.d.units))
	b.grow()
	return base
}

func (b *arrayBuilder) fits(base int32) bool {
	for _, c := range b.labels {
		if b.d.units[base^int32(c)].parent != unitFree {
			return false
		}
	}
	return true
}

func (b *arrayBuilder) grow() {
	for range unitBlock {
		b.d.units = append(b.d.units, arrayUnit{parent: unitFree, value: -1})
	}
	b.free = append(b.free, unitBlock)
}

func (b *arrayBuilder) take(at, parent int32) {
	b.d.units[at].parent = parent
	b.free[at/unitBlock]--
}
