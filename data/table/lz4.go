// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errLZ4 = errors.New("LZ4: the block is damaged")

// lz4Block appends what a block decodes to, up to the capacity of dst. Matches may
// reach back to the start of dst, so that blocks that depend on one another decode
// one after the other into one buffer.
//
// A block is sequences of: a token (4 bits literals, 4 bits match length − 4, 15
// continued by bytes up to one below 255), the literals, the distance back in two
// bytes. The last one ends with its literals.
//
// Source: lz4_Block_format.md of the LZ4 project, 2022-07-31.
func lz4Block(dst, src []byte) ([]byte, error) {
	for i := 0; i < len(src); {
		token := src[i]
		lit, at := lz4Length(src, i+1, int(token>>4))
		if at < 0 || lit > len(src)-at || lit > cap(dst)-len(dst) {
			return dst, errLZ4
		}
		dst = append(dst, src[at:at+lit]...)
		if i = at + lit; i == len(src) {
			return dst, nil
		}
		if i+2 > len(src) {
			return dst, errLZ4
		}
		back := int(binary.LittleEndian.Uint16(src[i:]))
		var n int
		n, i = lz4Length(src, i+2, int(token&15))
		n += 4
		if i < 0 || back == 0 || back > len(dst) || n > cap(dst)-len(dst) {
			return dst, errLZ4
		}
		dst = repeat(dst, back, n)
	}
	return dst, errLZ4
}

// repeat appends n bytes from back bytes before the end, which may be its own.
func repeat(dst []byte, back, n int) []byte {
	from := len(dst) - back
	for n > 0 {
		k := min(n, len(dst)-from)
		dst = append(dst, dst[from:from+k]...)
		n -= k
	}
	return dst
}

// lz4Length continues a length of 15. The position behind it is −1 if src ends.
func lz4Length(src []byte, at, n int) (int, int) {
	if n < 15 {
		return n, at
	}
	for ; at < len(src); at++ {
		n += int(src[at])
		if src[at] != 255 {
			return n, at + 1
		}
	}
	return 0, -1
}

// lz4Frame decodes one frame, as Arrow compresses a buffer, to exactly cap(dst)
// bytes. Checksums of frames are checked, those of blocks too.
//
// Source: lz4_Frame_format.md of the LZ4 project, 1.6.2.
func lz4Frame(dst, src []byte) ([]byte, error) {
	const magic, independentDict = 0x184D2204, 1
	if len(src) < 11 || binary.LittleEndian.Uint32(src) != magic || src[4]>>6 != 1 || src[4]&independentDict != 0 {
		return dst, errors.New("LZ4: not a frame without a dictionary")
	}
	blockSum, sized, sum := src[4]&16 != 0, src[4]&8 != 0, src[4]&4 != 0
	at := 6
	if sized {
		at += 8
	}
	if at >= len(src) || byte(xxh32(src[4:at])>>8) != src[at] {
		return dst, errors.New("LZ4: the frame header is damaged")
	}
	dst, src, err := lz4Blocks(dst, src[at+1:], blockSum)
	if err != nil {
		return dst, err
	}
	if sum && (len(src) < 4 || binary.LittleEndian.Uint32(src) != xxh32(dst)) {
		return dst, errors.New("LZ4: the checksum of the frame is wrong")
	}
	return dst, nil
}

// lz4Blocks decodes blocks up to the mark of size 0 and gives what follows it.
func lz4Blocks(dst, src []byte, sum bool) ([]byte, []byte, error) {
	for {
		if len(src) < 4 {
			return dst, nil, errLZ4
		}
		head := binary.LittleEndian.Uint32(src)
		src = src[4:]
		if head == 0 {
			return dst, src, nil
		}
		n := int(head &^ (1 << 31))
		if n > len(src) {
			return dst, nil, errLZ4
		}
		block := src[:n]
		src = src[n:]
		if sum {
			if len(src) < 4 || binary.LittleEndian.Uint32(src) != xxh32(block) {
				return dst, nil, errors.New("LZ4: the checksum of a block is wrong")
			}
			src = src[4:]
		}
		var err error
		if head>>31 == 0 {
			dst, err = lz4Block(dst, block)
		} else if n > cap(dst)-len(dst) {
			err = fmt.Errorf("LZ4: got more than the %d bytes that are claimed", cap(dst))
		} else {
			dst = append(dst, block...)
		}
		if err != nil {
			return dst, nil, err
		}
	}
}

// xxh32 is the checksum of LZ4 frames, with seed 0.
//
// Source: Yann Collet, xxHash specification 0.1.1, 2018-10-10, XXH32.
func xxh32(b []byte) uint32 {
	const p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	rol := func(x uint32, n int) uint32 { return x<<n | x>>(32-n) }
	h := uint32(p5)
	n := uint32(len(b))
	if len(b) >= 16 {
		const wrap = 1 << 32
		v := [4]uint32{(p1 + p2) % wrap, p2, 0, wrap - p1}
		for ; len(b) >= 16; b = b[16:] {
			for i := range v {
				v[i] = rol(v[i]+binary.LittleEndian.Uint32(b[4*i:])*p2, 13) * p1
			}
		}
		h = rol(v[0], 1) + rol(v[1], 7) + rol(v[2], 12) + rol(v[3], 18)
	}
	h += n
	for ; len(b) >= 4; b = b[4:] {
		h = rol(h+binary.LittleEndian.Uint32(b)*p3, 17) * p4
	}
	for _, c := range b {
		h = rol(h+uint32(c)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
