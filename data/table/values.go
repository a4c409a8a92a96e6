// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errValues = errors.New("the page does not hold exactly its values")

// decode reads n values of a physical type. They may alias src.
//
// Source: Apache Parquet, Encodings.md.
func (v *values) decode(src []byte, n int, encoding, physical int64, dict *values) error {
	v.n, v.dict = n, nil
	if encoding == plainDictionary || encoding == rleDictionary {
		return v.decodeIndex(src, dict)
	}
	switch {
	case physical == physicalBytes && encoding == plain:
		return v.plainBytes(src)
	case physical == physicalBytes && encoding == deltaLength:
		return v.lengthBytes(src)
	case physical == physicalBytes && encoding == deltaBytes:
		return v.deltaBytes(src)
	case physical == physicalFixed && encoding == plain:
		return v.fixed(src, 16)
	case physical == physicalFixed && encoding == deltaBytes:
		return v.deltaBytes(src)
	case physical == physicalBool:
		return v.bools(src, encoding)
	case (physical == physicalInt32 || physical == physicalInt64) && encoding == deltaBinary:
		return v.deltaInts(src, physical)
	case encoding == plain && width(physical) > 0:
		return v.plainInts(src, width(physical))
	case encoding == split && physical == physicalFixed:
		return v.fixed(v.join(src, 16), 16)
	case encoding == split && width(physical) > 0:
		return v.plainInts(v.join(src, width(physical)), width(physical))
	}
	return fmt.Errorf("got encoding %d of type %d: it is not read", encoding, physical)
}

// width is the bytes of a number.
func width(physical int64) int {
	switch physical {
	case physicalInt32, physicalFloat:
		return 4
	case physicalInt64, physicalDouble:
		return 8
	}
	return 0
}

// decodeIndex reads a width in bits and places in the dictionary.
func (v *values) decodeIndex(src []byte, dict *values) error {
	if v.index = grow(v.index, v.n); v.n == 0 {
		return nil // a page of nulls may hold nothing, or the width
	}
	if dict == nil || len(src) == 0 || src[0] > 32 {
		return errors.New("got values by their place in a dictionary, but no dictionary")
	}
	rest, err := hybrid(v.index, src[1:], int(src[0]))
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return errValues
	}
	for _, i := range v.index {
		if int64(i) >= int64(dict.n) {
			return fmt.Errorf("got place %d in a dictionary of %d values", i, dict.n)
		}
	}
	v.dict = dict
	return nil
}

// plainBytes finds the values: each is its length in 4 bytes and its bytes.
func (v *values) plainBytes(src []byte) error {
	v.offs = grow(v.offs, v.n+1)
	v.bytes, v.gap = src, 4
	at := 0
	for i := range v.n {
		v.offs[i] = uint32(at)
		if len(src)-at < 4 {
			return errValues
		}
		n := binary.LittleEndian.Uint32(src[at:])
		if uint64(n) > uint64(len(src)-at-4) {
			return errValues
		}
		at += 4 + int(n)
	}
	v.offs[v.n] = uint32(at)
	if at != len(src) {
		return errValues
	}
	return nil
}

// lengthBytes reads all lengths, then all bytes.
func (v *values) lengthBytes(src []byte) error {
	v.deltas = grow(v.deltas, v.n)
	rest, err := deltas(v.deltas, src)
	if err != nil {
		return err
	}
	v.offs = grow(v.offs, v.n+1)
	v.bytes, v.gap, v.offs[0] = rest, 0, 0
	at := int64(0)
	for i, n := range v.deltas {
		if n < 0 || n > int64(len(rest))-at {
			return errValues
		}
		at += n
		v.offs[i+1] = uint32(at)
	}
	if at != int64(len(rest)) {
		return errValues
	}
	return nil
}

// deltaBytes reads how much each value shares with the start of the one before,
// then the rest of each. What they add up to is bounded as a page is.
func (v *values) deltaBytes(src []byte) error {
	shared := make([]int64, v.n)
	rest, err := deltas(shared, src)
	if err != nil {
		return err
	}
	if err := v.lengthBytes(rest); err != nil {
		return err
	}
	total, last := int64(0), int64(0)
	for i, n := range shared {
		if n < 0 || n > last {
			return errValues
		}
		last = n + v.deltas[i]
		if total += last; total > maxPage {
			return fmt.Errorf("got values of more than %d bytes in a page", maxPage)
		}
	}
	out := grow(v.spare, int(total))[:0]
	start := 0 // of the value before
	for i, n := range shared {
		from := v.bytes[v.offs[i]:v.offs[i+1]]
		v.offs[i] = uint32(len(out))
		out = append(out, out[start:start+int(n)]...)
		out = append(out, from...)
		start = int(v.offs[i])
	}
	v.offs[v.n] = uint32(len(out))
	v.bytes, v.spare = out, out
	return nil
}

// fixed is values of one width.
func (v *values) fixed(src []byte, width int) error {
	if len(src) != v.n*width {
		return errValues
	}
	v.offs = grow(v.offs, v.n+1)
	v.bytes, v.gap = src, 0
	for i := range v.offs {
		v.offs[i] = uint32(i * width)
	}
	return nil
}

// bools are bits, or runs behind their length in 4 bytes.
func (v *values) bools(src []byte, encoding int64) error {
	v.ints = grow(v.ints, v.n)
	if encoding == plain {
		if len(src) != (v.n+7)/8 {
			return errValues
		}
		for i := range v.ints {
			v.ints[i] = int64(src[i/8] >> (i % 8) & 1)
		}
		return nil
	}
	if encoding != rle || len(src) < 4 || uint64(binary.LittleEndian.Uint32(src)) != uint64(len(src)-4) {
		return errValues
	}
	v.spare = grow(v.spare, v.n)
	rest, err := hybrid(v.spare, src[4:], 1)
	if err != nil || len(rest) > 0 {
		return errValues
	}
	for i, b := range v.spare {
		v.ints[i] = int64(b)
	}
	return nil
}

func (v *values) plainInts(src []byte, width int) error {
	if len(src) != v.n*width {
		return errValues
	}
	v.ints = grow(v.ints, v.n)
	if width == 4 {
		for i := range v.ints {
			v.ints[i] = int64(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
		return nil
	}
	for i := range v.ints {
		v.ints[i] = int64(binary.LittleEndian.Uint64(src[8*i:]))
	}
	return nil
}

func (v *values) deltaInts(src []byte, physical int64) error {
	v.ints = grow(v.ints, v.n)
	rest, err := deltas(v.ints, src)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return errValues
	}
	if physical == physicalInt32 {
		for i, x := range v.ints {
			v.ints[i] = int64(int32(x)) // the sums wrap at 32 bits
		}
	}
	return nil
}

// join undoes BYTE_STREAM_SPLIT: the first bytes of all values, then the second
// ones, and so on.
func (v *values) join(src []byte, width int) []byte {
	v.spare = grow(v.spare, len(src))
	n := len(src) / width
	for i := range n * width {
		v.spare[i%n*width+i/n] = src[i]
	}
	if n*width != len(src) {
		return nil // which does not have n values
	}
	return v.spare
}
