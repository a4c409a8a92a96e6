// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"io"
)

// A Format is how a file is compressed.
type Format uint8

// The formats.
const (
	None Format = iota // not one of ours
	Gzip               // RFC 1952, one member or several
	Zstd               // RFC 8878, one frame or several
)

// String is the name for messages.
func (f Format) String() string { return [...]string{"not compressed", "gzip", "zstd"}[f] }

// Options says where a file may be written again, if it must.
type Options struct {
	Cache string // the folder; made when first needed
	// Key tells this version of the file from all other files: its name, size and
	// entity tag or time, for instance. Two files of one key are taken for the same.
	Key string
	// Limit is how many bytes the cache may hold; 0 is 64 GiB. Entries that are
	// open count, but stay.
	Limit int64
	// Progress, if not nil, is told now and then how many compressed bytes are done,
	// while an entry is made.
	Progress func(done, total int64)
}

// Sniff tells the format by the first bytes of a file; 4 are enough.
func Sniff(head []byte) Format { panic("x") }

// Head is the first n uncompressed bytes of a file, or all if it has fewer: what
// it holds, without the work of [Open]. It does not look at what follows.
func Head(r io.ReaderAt, size int64, n int) ([]byte, error) { panic("x") }

// A File is the uncompressed bytes of a compressed file. It may be used by several
// goroutines at once. It keeps the last few frames, so that reading on from where
// one stopped does not decompress twice.
type File struct{}

// Open opens a compressed file of size bytes. The name is for messages. It reads
// from r until Close, and leaves it open.
//
// Where the file has to be written into the cache first this takes as long as
// decompressing it. Damaged, truncated and foreign files, and those that would
// grow without bound, are errors of kind fault.Data, a full disk of kind fault.Machine.
func Open(r io.ReaderAt, size int64, name string, o Options) (*File, error) { panic("x") }

// Size is the number of uncompressed bytes.
func (f *File) Size() int64 { panic("x") }

// ReadAt reads uncompressed bytes.
func (f *File) ReadAt(p []byte, off int64) (int, error) { panic("x") }

// Close lets go of the cache entry.
func (f *File) Close() error { panic("x") }
