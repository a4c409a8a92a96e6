// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"pleach/internal/fault"
)

// zstdDecoder decodes whole frames, in as many goroutines as ask, and never more
// bytes than there is room for.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxWindow(maxWindow))
})

// decode decompresses piece i into dst, which may be nil.
func (s *source) decode(i int, dst []byte) ([]byte, error) {
	p := s.pieces[i]
	b, err := s.unpack(&p, dst)
	if err == nil && s.sums {
		if got := uint32(xxh64(b)); got != p.sum {
			err = fmt.Errorf("got the checksum %08x, want %08x", got, p.sum)
		}
	}
	if err != nil {
		return nil, fault.Damagef("frame: reading %s (byte %d, uncompressed %d): %s: %w",
			s.name, p.off, p.at, s.format, err)
	}
	return b, nil
}

func (s *source) unpack(p *piece, dst []byte) ([]byte, error) {
	raw := make([]byte, p.size)
	if err := fault.ReadFull(s.r, raw, p.off); err != nil {
		return nil, err
	}
	dst = slices.Grow(dst[:0], int(p.n))
	var err error
	switch {
	case s.whole:
		dst, err = all(bytes.NewReader(raw), int64(len(raw)), s.name, s.format, dst[:0:p.n])
	case s.format == Gzip:
		dst, err = member(dst[:p.n], raw)
	default:
		d, e := zstdDecoder()
		if e != nil {
			return nil, e
		}
		dst, err = d.DecodeAll(raw, dst[:0:p.n])
	}
	if err == nil && len(dst) != int(p.n) {
		err = fmt.Errorf("got %d bytes, want %d", len(dst), p.n)
	}
	return dst, err
}

// gzipReaders are used again: one takes 40 KiB.
var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// member decompresses one member of gzip, which is all of raw, and fills dst.
func member(dst, raw []byte) ([]byte, error) {
	z := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(z)
	r := bytes.NewReader(raw)
	if err := z.Reset(r); err != nil {
		return nil, err
	}
	z.Multistream(false)
	if _, err := io.ReadFull(z, dst); err != nil {
		return nil, err
	}
	var more [1]byte
	if n, err := z.Read(more[:]); n > 0 {
		return nil, errLarge
	} else if err != io.EOF { // the checksum is compared here
		return nil, err
	}
	if r.Len() > 0 {
		return nil, fmt.Errorf("got %d bytes behind the end of the member", r.Len())
	}
	return dst, nil
}

// errLarge: more bytes than there is room for.
var errLarge = errors.New("got more bytes than expected")

// all decompresses all of a file up to the capacity of dst.
func all(r io.ReaderAt, size int64, name string, format Format, dst []byte) ([]byte, error) {
	s, err := newStream(r, size, name, format)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for {
		if len(dst) == cap(dst) {
			var more [1]byte
			if n, err := s.Read(more[:]); n > 0 {
				return dst, errLarge
			} else if err == io.EOF {
				return dst, nil
			} else if err != nil {
				return dst, err
			}
			continue
		}
		n, err := s.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		} else if err != nil {
			return dst, err
		}
	}
}

// stream decompresses a file from its start. Its errors say where.
type stream struct {
	name   string
	format Format
	buf    *bufio.Reader
	raw    *io.SectionReader
	dec    io.Reader
	zstd   *zstd.Decoder
	out    int64 // uncompressed bytes so far
}

// newStream opens the stream of a file. Bytes behind the last member or frame that
// are not one are an error, and so is an end inside of one.
func newStream(r io.ReaderAt, size int64, name string, format Format) (*stream, error) {
	s := &stream{name: name, format: format, raw: io.NewSectionReader(r, 0, size)}
	s.buf = bufio.NewReaderSize(s.raw, 128<<10)
	var err error
	if format == Gzip {
		s.dec, err = gzip.NewReader(s.buf)
	} else {
		s.zstd, err = zstd.NewReader(s.buf, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderLowmem(true))
		s.dec = s.zstd
	}
	if err != nil {
		return nil, s.wrap(err)
	}
	return s, nil
}

// in is the number of compressed bytes that were read.
func (s *stream) in() int64 {
	at, _ := s.raw.Seek(0, io.SeekCurrent) // of a SectionReader: no error
	return at - int64(s.buf.Buffered())
}

// maxRatio and minBomb say when a file is taken for one made to fill a disk: text
// and numbers do not compress by a factor of 400 over 256 MiB.
const (
	maxRatio = 400
	minBomb  = 256 << 20
)

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.dec.Read(p)
	s.out += int64(n)
	if err != nil && err != io.EOF {
		return n, s.wrap(err)
	}
	if in := s.in(); s.out > minBomb && s.out/maxRatio > in {
		return n, s.wrap(fmt.Errorf("got %d bytes out of %d: more than a factor of %d is refused",
			s.out, in, maxRatio))
	}
	return n, err
}

func (s *stream) wrap(err error) error {
	switch {
	case s.out > 0 && (errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrMagicMismatch)):
		err = fmt.Errorf("got bytes that are no %s behind the end: %w", s.format, err)
	case errors.Is(err, io.ErrUnexpectedEOF), err == io.EOF:
		err = fmt.Errorf("the file is truncated: %w", io.ErrUnexpectedEOF)
	}
	return fault.Damagef("frame: reading %s (byte %d, uncompressed %d): %s: %w",
		s.name, s.in(), s.out, s.format, err)
}

func (s *stream) close() {
	if s.zstd != nil {
		s.zstd.Close()
	}
}

// xxh64 is the checksum of the zstd seekable format, of which it takes the lower
// half, with seed 0.
//
// Source: Yann Collet, xxHash specification 0.1.1, 2018-10-10, XXH64.
func xxh64(b []byte) uint64 {
	const (
		p1, p2, p3 = 11400714785074694791, 14029467366897019727, 1609587929392839161
		p4, p5     = 9650029242287828579, 2870177450012600261
		wrap       = 1 << 64
	)
	h, n := uint64(p5), uint64(len(b))
	round := func(acc, x uint64) uint64 { return bits.RotateLeft64(acc+x*p2, 31) * p1 }
	if len(b) >= 32 {
		v := [4]uint64{(p1 + p2) % wrap, p2, 0, wrap - p1}
		for ; len(b) >= 32; b = b[32:] {
			v[0] = round(v[0], binary.LittleEndian.Uint64(b))
			v[1] = round(v[1], binary.LittleEndian.Uint64(b[8:]))
			v[2] = round(v[2], binary.LittleEndian.Uint64(b[16:]))
			v[3] = round(v[3], binary.LittleEndian.Uint64(b[24:]))
		}
		h = bits.RotateLeft64(v[0], 1) + bits.RotateLeft64(v[1], 7) +
			bits.RotateLeft64(v[2], 12) + bits.RotateLeft64(v[3], 18)
		for _, x := range v {
			h = (h^round(0, x))*p1 + p4
		}
	}
	h += n
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(b)), 27)*p1 + p4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(b))*p1, 23)*p2 + p3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*p5, 11) * p1
	}
	h = (h ^ h>>33) * p2
	h = (h ^ h>>29) * p3
	return h ^ h>>32
}
