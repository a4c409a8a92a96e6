// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"pleach/internal/fault"
)

// uniqueName is one that no other process has.
func uniqueName() string { return rand.Text() }

// reframe writes the file as an entry of the cache. It holds a few pieces in memory.
func (f *File) reframe(out io.Writer, path string) error {
	format, err := sniff(f.r, f.file, f.name)
	if err != nil {
		return err
	}
	in, err := newStream(f.r, f.file, f.name, format)
	if err != nil {
		return err
	}
	defer in.close()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	w := &writer{f: f, path: path, out: out, room: f.room(), enc: enc}
	if err := w.frame(headOf(f.o.Key), nil); err != nil {
		return err
	}
	if err := w.copy(in); err != nil {
		return err
	}
	return w.finish()
}

// writer writes an entry.
type writer struct {
	f     *File
	path  string
	out   io.Writer
	enc   *zstd.Encoder
	room  int64
	size  int64  // written
	n     uint32 // frames
	table []byte // entries of the seek table
}

// part is decompressed bytes on their way to the writer.
type part struct {
	b    []byte
	done int64 // compressed bytes read up to here
	err  error // io.EOF or io.ErrUnexpectedEOF with the last one
}

// decompress sends the parts of a stream until it ends or stop is closed. A buffer
// is taken from free for each.
func decompress(in *stream, parts chan<- part, free <-chan []byte, stop <-chan struct{}) {
	next := func() (p part) {
		defer contain(&p.err, in.name)
		b := <-free
		n, err := io.ReadFull(in, b)
		return part{b[:n], in.in(), err}
	}
	for {
		p := next()
		select {
		case parts <- p:
		case <-stop:
			return
		}
		if p.err != nil {
			return
		}
	}
}

// copy writes all pieces. The next one is decompressed while one is compressed.
func (w *writer) copy(in *stream) error {
	parts, free, stop := make(chan part), make(chan []byte, 3), make(chan struct{})
	for range cap(free) { // one here, one there, one between
		free <- make([]byte, w.f.o.piece)
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		decompress(in, parts, free, stop)
	}()
	defer func() {
		close(stop)
		<-finished // the stream is closed by the caller
	}()
	var buf []byte
	told := int64(0)
	for {
		p := <-parts
		if p.err != nil && p.err != io.EOF && p.err != io.ErrUnexpectedEOF {
			return p.err
		}
		if len(p.b) > 0 {
			buf = w.enc.EncodeAll(p.b, buf[:0])
			if err := w.frame(buf, p.b); err != nil {
				return err
			}
		}
		if tell := w.f.o.Progress; tell != nil && (p.done-told >= progressEvery || p.err != nil) {
			told = p.done
			tell(p.done, w.f.file)
		}
		if p.err != nil {
			return nil
		}
		free <- p.b[:w.f.o.piece]
	}
}

// progressEvery is the compressed bytes between two calls of Progress.
const progressEvery = 32 << 20

// frame writes one frame that holds b, which is nil for a skippable one.
func (w *writer) frame(frame, b []byte) error {
	if w.n++; w.n > maxPieces {
		return fault.Damagef("frame: reading %s: got more than %d pieces of %d bytes",
			w.f.name, maxPieces, w.f.o.piece)
	}
	w.table = binary.LittleEndian.AppendUint32(w.table, uint32(len(frame)))
	w.table = binary.LittleEndian.AppendUint32(w.table, uint32(len(b)))
	w.table = binary.LittleEndian.AppendUint32(w.table, uint32(xxh64(b)))
	return w.write(frame)
}

func (w *writer) write(b []byte) error {
	if w.size += int64(len(b)); w.size > w.room {
		return fault.Configf("frame: reading %s: its copy does not fit into the %[3]d bytes that cache %[2]s of %[4]d has left beside what is open: want a larger limit",
			w.f.name, w.f.o.Cache, max(0, w.room), w.f.o.Limit)
	}
	if _, err := w.out.Write(b); err != nil {
		return w.f.failed("writing", w.path, err)
	}
	return nil
}

// finish writes the hash of the seek table, and the table.
func (w *writer) finish() error {
	w.table = binary.LittleEndian.AppendUint32(w.table, checkSize)
	w.table = binary.LittleEndian.AppendUint32(w.table, 0)
	w.table = binary.LittleEndian.AppendUint32(w.table, uint32(xxh64(nil)))
	foot := binary.LittleEndian.AppendUint32(nil, w.n+1)
	foot = append(foot, 0x80)
	foot = binary.LittleEndian.AppendUint32(foot, magicTable)
	table := skippable(tableNumber, w.table, foot)
	if err := w.write(checkOf(w.f.o.Key, table)); err != nil {
		return err
	}
	if err := w.write(table); err != nil {
		return fmt.Errorf("seek table: %w", err)
	}
	return nil
}
