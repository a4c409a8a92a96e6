// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"pleach/internal/fault"
)

// inPieces finds the pieces of a file that is made of small ones. It gives nil for
// one that is not, and has to be written again.
func inPieces(r io.ReaderAt, size int64, name string, format Format, whole int64) (*source, error) {
	s := &source{r: r, name: name, format: format}
	var ok bool
	var err error
	if format == Gzip {
		ok, err = s.blocked(size)
	} else {
		if ok, err = s.seekTable(size); err == nil && !ok {
			ok, err = s.frames(size)
		}
	}
	if err != nil || ok {
		return s, err
	}
	if size > whole {
		return nil, nil
	}
	return s.one(size)
}

// one takes a small file as one piece, if it is small uncompressed as well.
func (s *source) one(size int64) (*source, error) {
	b, err := all(s.r, size, s.name, s.format, make([]byte, 0, min(4*size+1024, maxPiece)))
	if err == errLarge {
		b, err = all(s.r, size, s.name, s.format, make([]byte, 0, maxPiece))
	}
	if err == errLarge {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.whole, s.sums, s.pieces = true, false, nil
	s.add(0, size, int64(len(b)), 0)
	return s, nil
}

func (s *source) wrap(off int64, err error) error {
	return fault.Damagef("frame: reading %s (byte %d): %s: %w", s.name, off, s.format, err)
}

// blocked finds the members of BGZF: each says in its header, in the extra field
// "BC", how long it is, and as every member of gzip does, in its last 4 bytes how
// long uncompressed. The last one is empty, which tells a whole file from a truncated one.
//
// Source: The SAM/BAM Format Specification, 2024, section 4.1.
func (s *source) blocked(size int64) (bool, error) {
	var head [18]byte
	var tail [4]byte
	for off := int64(0); off < size; {
		n := min(18, size-off)
		if err := fault.ReadFull(s.r, head[:n], off); err != nil {
			return false, s.wrap(off, err)
		}
		length := bgzfSize(head[:n])
		if length == 0 || len(s.pieces) == maxPieces {
			s.pieces = nil
			return false, nil // it is gzip like any other, or what reads that says what it is
		}
		if length > size-off {
			return false, s.wrap(off, fmt.Errorf("the file is truncated: %w", io.ErrUnexpectedEOF))
		}
		if err := fault.ReadFull(s.r, tail[:], off+length-4); err != nil {
			return false, s.wrap(off, err)
		}
		u := int64(binary.LittleEndian.Uint32(tail[:]))
		if u > 64<<10 {
			return false, s.wrap(off, fmt.Errorf("got a member of %d bytes uncompressed, want at most 64 KiB",
				u))
		}
		if off += length; off == size && u != 0 {
			return false, s.wrap(off, errors.New("want an empty member at the end: the file is truncated"))
		}
		s.add(off-length, length, u, 0)
	}
	return true, nil
}

// bgzfSize is the length of a member by its header, 0 if it is not one of BGZF.
func bgzfSize(h []byte) int64 {
	if len(h) < 18 || h[0] != 0x1f || h[1] != 0x8b || h[2] != 8 || h[3]&4 == 0 ||
		binary.LittleEndian.Uint16(h[10:]) < 6 || h[12] != 'B' || h[13] != 'C' || h[14] != 2 || h[15] != 0 {
		return 0
	}
	n := int64(binary.LittleEndian.Uint16(h[16:])) + 1
	if n < 26 {
		return 0
	}
	return n
}

// The seek table of the zstd seekable format.
const (
	magicTable  = 0x8F92EAB1 // the last 4 bytes of a file that has one
	tableNumber = 14         // of the skippable frame that holds it
	tableFoot   = 9          // bytes: number of frames, descriptor, magic
)

// seekTable takes the pieces from the seek table at the end of a file:
//
//	table = for each frame its size, its size uncompressed and, if bit 7 of the
//	        descriptor is set, a checksum of what it holds, 4 bytes each
//
// What it says is compared with the frames when they are read.
//
// Source: zstd_seekable_compression_format.md of the zstd project, 0.1.0.
func (s *source) seekTable(size int64) (bool, error) {
	var foot [tableFoot]byte
	if size < tableFoot+8 {
		return false, nil
	}
	if err := fault.ReadFull(s.r, foot[:], size-tableFoot); err != nil {
		return false, s.wrap(size-tableFoot, err)
	}
	n, descriptor := int64(binary.LittleEndian.Uint32(foot[:])), foot[4]
	width := int64(8)
	if descriptor&0x80 != 0 {
		width = 12
	}
	length := n*width + tableFoot
	if binary.LittleEndian.Uint32(foot[5:]) != magicTable || descriptor&0x7C != 0 ||
		n > maxPieces || length+8 > size {
		return false, nil
	}
	b := make([]byte, length+8)
	if err := fault.ReadFull(s.r, b, size-int64(len(b))); err != nil {
		return false, s.wrap(size-int64(len(b)), err)
	}
	if binary.LittleEndian.Uint32(b) != magicSkippable+tableNumber ||
		int64(binary.LittleEndian.Uint32(b[4:])) != length {
		return false, nil
	}
	off := int64(0)
	s.sums = width == 12
	for e := b[8 : len(b)-tableFoot]; len(e) > 0; e = e[width:] {
		c, u := int64(binary.LittleEndian.Uint32(e)), int64(binary.LittleEndian.Uint32(e[4:]))
		var sum uint32
		if s.sums {
			sum = binary.LittleEndian.Uint32(e[8:])
		}
		if u > maxPiece {
			s.pieces, s.sums = nil, false
			return false, nil
		}
		s.add(off, c, u, sum)
		off += c
	}
	if off != size-int64(len(b)) {
		return false, s.wrap(size-int64(len(b)), fmt.Errorf("got a seek table for %d bytes of %d",
			off, size-int64(len(b))))
	}
	return true, nil
}

// frames finds the frames of a file by their headers, and those of the blocks in
// them. It stops at the first frame that is large or does not say how large it is.
func (s *source) frames(size int64) (bool, error) {
	for off := int64(0); off < size; {
		h, err := s.frameHeader(off, size)
		if err != nil {
			return false, err
		}
		end := off + int64(h.HeaderSize)
		if h.Skippable {
			end += int64(h.SkippableSize)
		} else {
			if !h.HasFCS || h.FrameContentSize > maxPiece || len(s.pieces) == maxPieces {
				s.pieces = nil
				return false, nil
			}
			if end, err = s.endOfBlocks(end, size, h.HasCheckSum); err != nil {
				return false, err
			}
			if end-off > maxPiece+maxPiece/8 {
				s.pieces = nil // many blocks for few bytes
				return false, nil
			}
		}
		if end > size {
			return false, s.wrap(off, fmt.Errorf("the file is truncated: %w", io.ErrUnexpectedEOF))
		}
		if !h.Skippable {
			s.add(off, end-off, int64(h.FrameContentSize), 0)
		}
		off = end
	}
	return true, nil
}

func (s *source) frameHeader(off, size int64) (zstd.Header, error) {
	var h zstd.Header
	b := make([]byte, min(zstd.HeaderMaxSize, size-off))
	if err := fault.ReadFull(s.r, b, off); err != nil {
		return h, s.wrap(off, err)
	}
	err := h.Decode(b)
	switch {
	case errors.Is(err, zstd.ErrMagicMismatch) && off > 0:
		return h, s.wrap(off, fmt.Errorf("got bytes that are no zstd behind the end: %w", err))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return h, s.wrap(off, fmt.Errorf("the file is truncated: %w", err))
	case err != nil:
		return h, s.wrap(off, err)
	case h.DictionaryID != 0:
		return h, s.wrap(off, fmt.Errorf("the frame needs dictionary %d, which is not in the file",
			h.DictionaryID))
	case h.WindowSize > maxWindow:
		return h, s.wrap(off, fmt.Errorf("the frame looks back %d bytes, want at most %d: use a smaller window",
			h.WindowSize, maxWindow))
	}
	return h, nil
}

// endOfBlocks walks the headers of blocks, 3 bytes each: whether it is the last
// one, its type, its size.
func (s *source) endOfBlocks(at, size int64, sum bool) (int64, error) {
	var b [3]byte
	for {
		if at > size-3 {
			return 0, s.wrap(at, fmt.Errorf("the file is truncated: %w", io.ErrUnexpectedEOF))
		}
		if err := fault.ReadFull(s.r, b[:], at); err != nil {
			return 0, s.wrap(at, err)
		}
		h := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
		n := h >> 3
		if h>>1&3 == 1 {
			n = 1 // one byte that is repeated
		}
		if at += 3 + n; h&1 != 0 {
			break
		}
	}
	if sum {
		at += 4
	}
	return at, nil
}
