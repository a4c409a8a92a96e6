// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/binary"
	"errors"
)

var errBits = errors.New("the packed values are damaged")

// hybrid fills dst from runs of values of width bits, of Parquet's RLE/bit-packed
// hybrid, and gives what follows the last run that it needed.
//
//	run        = varint head, then
//	head even  : one value in ⌈width/8⌉ bytes, head/2 times
//	head odd   : (head/2)·8 values, packed from the lowest bit on
//
// Source: Apache Parquet, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".
func hybrid[T uint8 | uint32](dst []T, src []byte, width int) ([]byte, error) {
	if width == 0 {
		clear(dst)
		return src, nil
	}
	for len(dst) > 0 {
		head, k := binary.Uvarint(src)
		if k <= 0 || head>>1 == 0 {
			return nil, errBits
		}
		src = src[k:]
		if head&1 == 0 {
			bytes := (width + 7) / 8
			if len(src) < bytes || head>>1 > uint64(len(dst)) {
				return nil, errBits
			}
			var v uint64
			for i, b := range src[:bytes] {
				v |= uint64(b) << (8 * i)
			}
			if v>>width != 0 {
				return nil, errBits
			}
			n := int(head >> 1)
			for i := range dst[:n] {
				dst[i] = T(v)
			}
			dst, src = dst[n:], src[bytes:]
			continue
		}
		groups := int(min(head>>1, maxValues))
		n := min(8*groups, len(dst))
		// Some writers cut the last group where its values end, and DuckDB fills it
		// with zeros up to 32 values.
		size := min(groups*width, len(src))
		if (n*width+7)/8 > size {
			return nil, errBits
		}
		unpack(dst[:n], src[:size], width)
		dst, src = dst[n:], src[size:]
	}
	return src, nil
}

// unpack reads values of width ≤ 32 bits, from the lowest bit on. src has them.
func unpack[T uint8 | uint32](dst []T, src []byte, width int) {
	mask := uint64(1)<<width - 1
	i, at := 0, 0 // value, bit
	for ; i < len(dst) && at>>3+8 <= len(src); i++ {
		dst[i] = T(binary.LittleEndian.Uint64(src[at>>3:]) >> (at & 7) & mask)
		at += width
	}
	for ; i < len(dst); i++ { // in the last 8 bytes
		var acc uint64
		for k, b := range src[at>>3:] {
			acc |= uint64(b) << (8 * k)
		}
		dst[i] = T(acc >> (at & 7) & mask)
		at += width
	}
}

// deltas fills dst from DELTA_BINARY_PACKED and gives what follows. The count in
// its head must be len(dst).
//
//	head  = block size, miniblocks in a block, count (varints), first value (zigzag)
//	block = least delta (zigzag), a width in bits for each miniblock, the miniblocks
//	value = the one before + least delta + packed, modulo 2^64
//
// Source: Apache Parquet, Encodings.md, "Delta Encoding".
func deltas(dst []int64, src []byte) ([]byte, error) {
	t := &thrift{b: src} // its integers are the same
	block, minis, count, first := t.uvarint(), t.uvarint(), t.uvarint(), t.int()
	if t.err != nil || count != uint64(len(dst)) ||
		minis == 0 || block == 0 || block > 1<<16 || block%minis != 0 || block/minis%8 != 0 {
		return nil, errBits
	}
	src = src[t.at:]
	if len(dst) == 0 {
		return src, nil
	}
	dst[0] = first
	last, per := first, int(block/minis)
	for dst = dst[1:]; len(dst) > 0; {
		t := &thrift{b: src}
		least := t.int()
		if t.err != nil || len(src)-t.at < int(minis) {
			return nil, errBits
		}
		widths := src[t.at : t.at+int(minis)]
		src = src[t.at+int(minis):]
		for _, w := range widths {
			if len(dst) == 0 {
				break // the miniblocks that no value needs are not written
			}
			n := min(per, len(dst))
			size := min(per*int(w)/8, len(src))
			if w > 64 || (n*int(w)+7)/8 > size {
				return nil, errBits
			}
			unpackDeltas(dst[:n], src[:size], int(w), least, &last)
			dst, src = dst[n:], src[size:]
		}
	}
	return src, nil
}

// unpackDeltas adds up packed values of width ≤ 64 bits.
func unpackDeltas(dst []int64, src []byte, width int, least int64, last *int64) {
	at := 0 // bits
	for i := range dst {
		var v uint64
		for got := 0; got < width; {
			b := uint64(src[at>>3]) >> (at & 7)
			k := min(8-at&7, width-got)
			v |= b & (1<<k - 1) << got
			got, at = got+k, at+k
		}
		*last += least + int64(v)
		dst[i] = *last
	}
}
