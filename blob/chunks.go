// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"pleach/internal/fault"
)

// Bounds on memory: a Remote holds at most inMemory + fetches chunks.
const (
	inMemory = 8 // chunks kept in memory, used last
	fetches  = 8 // chunks fetched at a time
	ahead    = 4 // of them, before anybody asks
)

// chunkID names a chunk: the version of an object and the place in it.
type chunkID struct {
	object [16]byte
	index  int64
}

func (id chunkID) String() string { return fmt.Sprintf("%x-%d", id.object, id.index) }

// identify hashes what tells versions of objects apart. Where a file has a hash,
// the commit it was found in does not matter.
func identify(o Object, chunk int) [16]byte {
	name := o.src.name(o.key)
	if r, ok := o.src.(*repository); ok {
		name = r.hub.endpoint + " " + r.bucket + " " + o.key
	} else if b, ok := o.src.(*bucket); ok {
		name += " " + b.options
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%d", name, o.Tag, o.Size, chunk))
	return [16]byte(h[:16])
}

// chunks are the parts of objects that are at hand. Each is fetched once,
// however many ask for it at the same time.
type chunks struct {
	r      *Remote
	disk   *diskCache // nil: none
	ctx    context.Context
	stop   context.CancelFunc
	slots  chan struct{} // of fetches
	early  chan struct{} // of fetches ahead
	wg     sync.WaitGroup
	mu     sync.Mutex
	closed bool
	held   []*chunk // in memory, used last at the end
	coming map[chunkID]*chunk
}

// chunk is one part. data and err may be read once ready is closed.
type chunk struct {
	id    chunkID
	ready chan struct{}
	data  []byte
	err   error
}

func newChunks(r *Remote) *chunks {
	c := &chunks{
		r: r, coming: map[chunkID]*chunk{},
		slots: make(chan struct{}, fetches), early: make(chan struct{}, ahead),
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	if r.opt.Cache != "" {
		c.disk = &diskCache{dir: r.opt.Cache, limit: r.opt.CacheLimit, spare: spareSpace, warn: r.opt.Warn}
	}
	return c
}

func (c *chunks) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.wg.Wait()
}

// find gives a chunk that is in memory or coming, or nil.
func (c *chunks) find(id chunkID) *chunk {
	if k := c.coming[id]; k != nil {
		return k
	}
	for i := len(c.held) - 1; i >= 0; i-- {
		if k := c.held[i]; k.id == id {
			c.held = append(append(c.held[:i], c.held[i+1:]...), k)
			return k
		}
	}
	return nil
}

// start gives a chunk that is in memory or coming; else it makes it come. It is
// nil after close, and for an early fetch if there are enough of them.
func (c *chunks) start(o Object, id chunkID, isEarly bool) *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.find(id); k != nil {
		return k
	}
	if c.closed {
		return nil
	}
	if isEarly {
		select {
		case c.early <- struct{}{}:
		default:
			return nil
		}
	}
	k := &chunk{id: id, ready: make(chan struct{})}
	c.coming[id] = k
	c.wg.Go(func() {
		c.bring(o, k)
		if isEarly {
			<-c.early
		}
	})
	return k
}

// bring gets a chunk from disk or from the store. It is not bound to the context
// of one reader, since others may wait for it.
func (c *chunks) bring(o Object, k *chunk) {
	k.data, k.err = c.load(o, k.id)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.coming, k.id)
	if k.err == nil {
		if len(c.held) == inMemory {
			c.held = append(c.held[:0], c.held[1:]...)
		}
		c.held = append(c.held, k)
	}
	close(k.ready)
}

func (c *chunks) load(o Object, id chunkID) ([]byte, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
	size := int64(c.r.opt.ChunkSize)
	off := id.index * size
	data := make([]byte, min(size, o.Size-off))
	if c.disk != nil && c.disk.load(id, data) {
		c.r.stats.count(func(s *Stats) { s.FromCache++ })
		return data, nil
	}
	w := &filler{b: data}
	if err := c.r.stream(c.ctx, o, off, int64(len(data)), w); err != nil {
		return nil, err
	}
	if c.disk != nil {
		c.disk.store(id, data)
	}
	return data, nil
}

// filler writes into bytes that are there.
type filler struct{ b []byte }

func (f *filler) Write(p []byte) (int, error) {
	n := copy(f.b, p)
	f.b = f.b[n:]
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// readAt copies bytes of one chunk. What is known to be whole on disk is read
// there, so that small reads all over an object do not fetch whole chunks.
func (c *chunks) readAt(ctx context.Context, o Object, id chunkID, b []byte, off int64) error {
	c.mu.Lock()
	k := c.find(id)
	c.mu.Unlock()
	if k == nil && c.disk != nil && c.disk.readAt(id, b, off) {
		return nil
	}
	if k = c.start(o, id, false); k == nil {
		return errClosed
	}
	select {
	case <-k.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if k.err != nil {
		return k.err
	}
	copy(b, k.data[off:])
	return nil
}

var errClosed = errors.New("the store is closed")

// objectReader reads one version of one object.
type objectReader struct {
	ctx    context.Context
	r      *Remote
	o      Object
	id     [16]byte
	mu     sync.Mutex
	last   int64 // the chunk read last
	closed bool
}

func newObjectReader(ctx context.Context, r *Remote, o Object) *objectReader {
	return &objectReader{ctx: ctx, r: r, o: o, id: identify(o, r.opt.ChunkSize), last: -1}
}

func (r *objectReader) Size() int64 { return r.o.Size }

func (r *objectReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

// ReadAt reads across chunks. Whoever reads on gets the next chunk fetched before
// it is asked for.
func (r *objectReader) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fault.Dataf("blob: reading %s: got offset %d, want none below 0", r.o.URL, off)
	}
	size := int64(r.r.opt.ChunkSize)
	for n < len(b) {
		if off >= r.o.Size {
			return n, io.EOF
		}
		i := off / size
		if err := r.at(i); err != nil {
			return n, err
		}
		within := off - i*size
		k := min(int64(len(b)-n), size-within, r.o.Size-off)
		if err := r.r.chunks.readAt(r.ctx, r.o, chunkID{r.id, i}, b[n:n+int(k)], within); err != nil {
			return n, r.told(err)
		}
		n, off = n+int(k), off+k
	}
	return n, nil
}

// at notes which chunk is read. From the second one in a row on, the one behind
// it is fetched too: many objects are opened only for their first bytes.
func (r *objectReader) at(i int64) error {
	r.mu.Lock()
	last, closed := r.last, r.closed
	r.last = i
	r.mu.Unlock()
	if closed {
		return r.told(errClosed)
	}
	if last < 0 || i != last+1 {
		return nil
	}
	c := r.r.chunks
	next := chunkID{r.id, i + 1}
	if (i+1)*int64(r.r.opt.ChunkSize) >= r.o.Size || c.disk != nil && c.disk.knows(next) {
		return nil
	}
	// The chunk itself is started first, so that it gets the connection first.
	c.start(r.o, chunkID{r.id, i}, false)
	c.start(r.o, next, true)
	return nil
}

func (r *objectReader) told(err error) error {
	switch {
	case errors.Is(err, errClosed):
		return fault.Machinef("blob: reading %s: %w", r.o.URL, err)
	case r.ctx.Err() != nil && errors.Is(err, r.ctx.Err()):
		return fault.Machinef("blob: reading %s: %w", r.o.URL, err)
	}
	return err
}
