// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime/debug"
	"sort"
	"sync"

	"pleach/internal/fault"
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

// Magic numbers of RFC 8878, sections 3.1.1 and 3.1.2.
const (
	magicZstd      = 0xFD2FB528
	magicSkippable = 0x184D2A50 // and the 15 that follow
)

// Sniff tells the format by the first bytes of a file; 4 are enough.
func Sniff(head []byte) Format {
	if len(head) < 4 {
		return None
	}
	switch magic := binary.LittleEndian.Uint32(head); {
	case head[0] == 0x1f && head[1] == 0x8b && head[2] == 8:
		return Gzip
	case magic == magicZstd, magic&^15 == magicSkippable:
		return Zstd
	}
	return None
}

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

	// What tests put in place of this machine, pieceSize and maxWhole.
	disk         disk
	piece, whole int64
}

// Limits.
const (
	pieceSize  = 256 << 10 // uncompressed bytes of a frame in the cache
	maxPiece   = 8 << 20   // of a frame that is read as it is
	maxWhole   = 128 << 10 // compressed bytes of a file that is read as one piece, by each who opens it
	maxPieces  = 1 << 22
	maxWindow  = 512 << 20 // bytes that a zstd frame may look back
	keptPieces = 4
)

// piece is a part of the file that decompresses by itself.
type piece struct {
	off, at int64  // where it starts, compressed and uncompressed
	size, n uint32 // bytes, compressed and uncompressed
	sum     uint32 // of the uncompressed bytes, if the source has checksums
}

// source is compressed bytes and their pieces, in order.
type source struct {
	r      io.ReaderAt
	name   string // for messages
	format Format
	whole  bool // one piece of several members or frames
	sums   bool
	pieces []piece
	entry  *entry // of the cache, nil if it is the file itself
}

// size is the number of uncompressed bytes.
func (s *source) size() int64 {
	if len(s.pieces) == 0 {
		return 0
	}
	p := s.pieces[len(s.pieces)-1]
	return p.at + int64(p.n)
}

// add appends a piece. Those that hold nothing are passed over.
func (s *source) add(off, size, n int64, sum uint32) {
	if n > 0 {
		s.pieces = append(s.pieces, piece{off, s.size(), uint32(size), uint32(n), sum})
	}
}

// A File is the uncompressed bytes of a compressed file. It may be used by several
// goroutines at once. It keeps the last few frames, so that reading on from where
// one stopped does not decompress twice.
type File struct {
	r    io.ReaderAt // the file itself
	file int64       // its size
	name string
	o    Options
	size int64

	making sync.Mutex // held while an entry is made again
	mu     sync.Mutex
	src    *source
	kept   []kept // the last one was used last
	spare  []byte // memory of one that was dropped
}

// kept is a decompressed piece.
type kept struct {
	src *source
	i   int
	b   []byte
}

// Open opens a compressed file of size bytes. The name is for messages. It reads
// from r until Close, and leaves it open.
//
// Where the file has to be written into the cache first this takes as long as
// decompressing it. Damaged, truncated and foreign files, and those that would
// grow without bound, are errors of kind fault.Data, a full disk of kind
// fault.Machine, a cache that is too small for what is open of kind fault.Config.
func Open(r io.ReaderAt, size int64, name string, o Options) (f *File, err error) {
	defer contain(&err, name)
	if o.Limit == 0 {
		o.Limit = 64 << 30
	}
	if o.disk == nil {
		o.disk, o.piece, o.whole = osDisk{}, pieceSize, maxWhole
	}
	r = fault.Reader(r)
	format, err := sniff(r, size, name)
	if err != nil {
		return nil, err
	}
	f = &File{r: r, file: size, name: name, o: o}
	f.src, err = inPieces(r, size, name, format, o.whole)
	if err == nil && f.src == nil {
		f.src, err = f.cached()
	}
	if err != nil {
		return nil, err
	}
	f.size = f.src.size()
	return f, nil
}

func sniff(r io.ReaderAt, size int64, name string) (Format, error) {
	var head [4]byte
	n := min(size, 4)
	if k, err := r.ReadAt(head[:n], 0); int64(k) < n {
		return None, fault.Damagef("frame: reading %s (byte 0): %w", name, err)
	}
	f := Sniff(head[:n])
	if f == None {
		return f, fault.Damagef("frame: reading %s: got the first bytes %x, want gzip or zstd", name, head[:n])
	}
	return f, nil
}

// Head is the first n uncompressed bytes of a file, or all if it has fewer: what
// it holds, without the work of [Open]. It does not look at what follows.
func Head(r io.ReaderAt, size int64, n int) (b []byte, err error) {
	defer contain(&err, "the head")
	r = fault.Reader(r)
	format, err := sniff(r, size, "the head")
	if err != nil {
		return nil, err
	}
	s, err := newStream(r, size, "the head", format)
	if err != nil {
		return nil, err
	}
	defer s.close()
	b = make([]byte, n)
	k, err := io.ReadFull(s, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return b[:k], err
}

// Size is the number of uncompressed bytes.
func (f *File) Size() int64 { return f.size }

// ReadAt reads uncompressed bytes. At the end of the file it returns io.EOF with
// those that were there.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	defer contain(&err, f.name)
	if off < 0 {
		return 0, fmt.Errorf("frame: reading %s: got offset %d", f.name, off)
	}
	for n < len(p) {
		if off >= f.size {
			return n, io.EOF
		}
		k, err := f.readPiece(p[n:], off)
		if err != nil {
			return n, err
		}
		n, off = n+k, off+int64(k)
	}
	return n, nil
}

// readPiece reads what one piece has of the bytes at off. An entry of the cache that
// turns out to be damaged is made again, once.
func (f *File) readPiece(p []byte, off int64) (int, error) {
	for again := false; ; again = true {
		f.mu.Lock()
		s := f.src
		i := s.find(off)
		if b := f.lookup(s, i); b != nil {
			n := copy(p, b[off-s.pieces[i].at:])
			f.mu.Unlock()
			return n, nil
		}
		spare := f.spare
		f.spare = nil
		f.mu.Unlock()
		b, err := s.decode(i, spare)
		if err != nil && s.entry != nil && !again {
			if err = f.remake(s); err == nil {
				continue
			}
		}
		if err != nil {
			return 0, err
		}
		n := copy(p, b[off-s.pieces[i].at:])
		f.mu.Lock()
		f.keep(kept{s, i, b})
		f.mu.Unlock()
		return n, nil
	}
}

// find is the piece that holds the byte at off.
func (s *source) find(off int64) int {
	return sort.Search(len(s.pieces), func(i int) bool { return s.pieces[i].at > off }) - 1
}

// lookup finds a piece among those that are kept, and makes it the last used.
func (f *File) lookup(s *source, i int) []byte {
	for k, x := range f.kept {
		if x.i == i && x.src == s {
			copy(f.kept[k:], f.kept[k+1:])
			f.kept[len(f.kept)-1] = x
			return x.b
		}
	}
	return nil
}

func (f *File) keep(x kept) {
	if f.lookup(x.src, x.i) != nil {
		return // another goroutine was faster
	}
	if len(f.kept) == keptPieces {
		f.spare = f.kept[0].b // what was read of it was copied under the lock
		f.kept = append(f.kept[:0], f.kept[1:]...)
	}
	f.kept = append(f.kept, x)
}

// Close lets go of the cache entry.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = nil
	return f.src.entry.close()
}

// contain turns a panic of a decoder into an error.
func contain(err *error, name string) {
	if p := recover(); p != nil {
		*err = fault.Damagef("frame: reading %s: the decoder failed: %v\n%s", name, p, debug.Stack())
	}
}
