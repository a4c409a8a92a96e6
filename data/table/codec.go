// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Compression codecs of parquet.thrift.
const (
	codecNone, codecSnappy, codecGzip   = 0, 1, 2
	codecBrotli, codecZstd, codecLZ4Raw = 4, 6, 7
)

var codecNames = map[int64]string{
	codecNone: "none", codecSnappy: "snappy", codecGzip: "gzip", 3: "LZO",
	codecBrotli: "brotli", 5: "LZ4 with Hadoop frames (deprecated)", codecZstd: "zstd", codecLZ4Raw: "LZ4",
}

// ratio is the most that a byte of compressed input can stand for: what a page
// claims beyond it is refused before memory is taken. For gzip and LZ4 it is in
// the format (RFC 1951: 258 bytes in 2 bits; 255 bytes in one), for snappy 64 bytes
// in 3, for zstd a block of 128 KiB in 4. Brotli has no useful one.
var ratio = map[int64]int64{
	codecNone: 1, codecSnappy: 24, codecGzip: 1040, codecLZ4Raw: 256, codecZstd: 1 << 15,
}

// zstdDecoder decodes whole buffers, in as many goroutines as ask, and never more
// bytes than there is room for.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(maxPage))
})

// gzipReaders are used again: one takes 40 KiB.
var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// decompress makes exactly size bytes from all of src. It may return src itself.
func decompress(codec int64, src []byte, size int64) ([]byte, error) {
	if codec == codecNone {
		if int64(len(src)) != size {
			return nil, fmt.Errorf("got %d bytes, want the %d that its header claims", len(src), size)
		}
		return src, nil
	}
	if size == 0 {
		return nil, nil // some writers leave nothing at all, others an empty frame
	}
	if most, ok := ratio[codec]; size > maxPage || ok && size > most*int64(len(src))+64 {
		return nil, fmt.Errorf("got %d bytes of %s that claim to be %d: no compression does that",
			len(src), codecNames[codec], size)
	}
	if codec == codecBrotli {
		return unbrotli(src, size)
	}
	dst := make([]byte, size)
	n, err := uncompressed(codec, dst, src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", codecNames[codec], err)
	}
	if int64(n) != size {
		return nil, fmt.Errorf("%s: got %d bytes, want the %d that its header claims",
			codecNames[codec], n, size)
	}
	return dst, nil
}

// uncompressed fills dst and says how many bytes there were.
func uncompressed(codec int64, dst, src []byte) (int, error) {
	switch codec {
	case codecSnappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return n, err
		}
		b, err := snappy.Decode(dst, src)
		return len(b), err
	case codecGzip:
		r := gzipReaders.Get().(*gzip.Reader)
		defer gzipReaders.Put(r)
		if err := r.Reset(bytes.NewReader(src)); err != nil {
			return 0, err
		}
		return fill(dst, r)
	case codecZstd:
		d, err := zstdDecoder()
		if err != nil {
			return 0, err
		}
		b, err := d.DecodeAll(src, dst[:0:len(dst)])
		return len(b), err
	case codecLZ4Raw:
		b, err := lz4Block(dst[:0:len(dst)], src)
		return len(b), err
	}
	return 0, errors.New("a codec that is not read")
}

// fill reads until dst is full, and to the end: a stream checks its checksum there.
func fill(dst []byte, r io.Reader) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err == io.ErrUnexpectedEOF {
		return n, nil
	} else if err != nil {
		return n, err
	}
	var more [1]byte
	if k, err := io.ReadFull(r, more[:]); k > 0 {
		return n + 1, nil
	} else if err != io.EOF {
		return n, err
	}
	return n, nil
}

// unbrotli makes size bytes, for which memory is taken as they come.
func unbrotli(src []byte, size int64) ([]byte, error) {
	var dst []byte
	r := brotli.NewReader(bytes.NewReader(src))
	for int64(len(dst)) < size {
		n := int(min(size-int64(len(dst)), int64(max(1<<20, len(dst)))))
		dst = slices.Grow(dst, n)
		if _, err := io.ReadFull(r, dst[len(dst):len(dst)+n]); err != nil {
			return nil, fmt.Errorf("brotli: %w", err)
		}
		dst = dst[:len(dst)+n]
	}
	if n, err := fill(nil, r); n > 0 || err != nil {
		return nil, fmt.Errorf("brotli: got more than the %d bytes that its header claims: %w", size, err)
	}
	return dst, nil
}
