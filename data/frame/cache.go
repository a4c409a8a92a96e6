// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"pleach/blob"
	"pleach/internal/fault"
)

// disk is where the cache lies. A test puts one that fails in its place.
type disk interface {
	blob.Files
	Touch(path string) error             // was used now
	Used(path string) (time.Time, error) // last
}

type osDisk struct{ blob.OS }

func (osDisk) Touch(path string) error {
	now := time.Now()
	return os.Chtimes(path, now, now)
}

func (osDisk) Used(path string) (time.Time, error) {
	i, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return i.ModTime(), nil
}

// Names in the cache.
const (
	suffix     = ".zst"
	unfinished = ".tmp-"
	dead       = time.Hour // an unfinished file that nobody wrote to for so long is of a killed process
)

// inUse counts the open entries of this process by path, which are not evicted, and
// the bytes that they have; making is held by who makes an entry.
var inUse = struct {
	sync.Mutex
	n      map[string]int
	size   map[string]int64
	making map[string]*sync.Mutex
}{n: map[string]int{}, size: map[string]int64{}, making: map[string]*sync.Mutex{}}

// entry is an open file of the cache.
type entry struct {
	blob.File
	path string
	once sync.Once
}

func (e *entry) close() error {
	if e == nil {
		return nil
	}
	var err error
	e.once.Do(func() {
		err = e.File.Close()
		inUse.Lock()
		defer inUse.Unlock()
		if inUse.n[e.path]--; inUse.n[e.path] == 0 {
			delete(inUse.n, e.path)
			delete(inUse.size, e.path)
		}
	})
	return err
}

// openEntry opens an entry and counts it as open.
func (f *File) openEntry(path string, size int64) (*entry, error) {
	inUse.Lock()
	defer inUse.Unlock()
	file, err := f.o.disk.Open(path)
	if err != nil {
		return nil, err
	}
	inUse.n[path]++
	inUse.size[path] = size
	return &entry{File: file, path: path}, nil
}

// path is where the entry of the file is.
func (f *File) path() string {
	h := sha256.Sum256([]byte(f.o.Key))
	return filepath.Join(f.o.Cache, hex.EncodeToString(h[:16])+suffix)
}

// cached opens the entry of the file, and makes it if there is none that is good.
func (f *File) cached() (*source, error) {
	if f.o.Cache == "" || f.o.Key == "" {
		return nil, fault.Configf("frame: reading %s: it is read from a copy: want a cache folder and a key",
			f.name)
	}
	path := f.path()
	inUse.Lock()
	m := inUse.making[path]
	if m == nil {
		m = new(sync.Mutex)
		inUse.making[path] = m
	}
	inUse.Unlock()
	m.Lock() // others in this process wait for it instead of making it as well
	defer m.Unlock()
	if s, err := f.load(path); err == nil {
		_ = f.o.disk.Touch(path) // if it fails the entry only seems older than it is
		return s, nil
	}
	if err := f.make(path); err != nil {
		return nil, err
	}
	s, err := f.load(path)
	if err != nil {
		return nil, fault.Machinef("frame: reading %s back, just written for %s: %w", path, f.name, err)
	}
	return s, f.evict()
}

// remake makes the entry again of which s is a damaged one, unless another goroutine
// has done it.
func (f *File) remake(s *source) error {
	f.making.Lock()
	defer f.making.Unlock()
	f.mu.Lock()
	done := f.src != s
	f.mu.Unlock()
	if done {
		return nil
	}
	_ = s.entry.close() // it was read only; and Windows removes nothing that is open
	if err := f.o.disk.Remove(s.entry.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.failed("removing", s.entry.path, err)
	}
	n, err := f.cached()
	if err != nil {
		return err
	}
	if n.size() != f.size {
		_ = n.entry.close()
		return fault.Damagef("frame: reading %s: got %d bytes uncompressed where there were %d: the file has changed",
			f.name, n.size(), f.size)
	}
	f.mu.Lock()
	f.src = n
	f.mu.Unlock()
	return nil
}

// failed is an error of the cache.
func (f *File) failed(doing, path string, err error) error {
	return fault.Machinef("frame: %s %s, a copy of %s that can be read at offsets: %w",
		doing, path, f.name, err)
}

// An entry is a file of the zstd seekable format. Its first frame is skippable and
// says whose it is, its last one but the seek table is skippable and has a hash of
// the table, so that a table that is damaged is not believed:
//
//	skippable 0: version, SHA-256 of the key
//	frames     : pieceSize bytes each, with checksum
//	skippable 1: SHA-256 of (SHA-256 of the key, seek table)
//	skippable 14: seek table with checksums
const (
	version   = "pleach.frame.1\x00\x00"
	headSize  = 8 + int64(len(version)) + sha256.Size
	checkSize = 8 + sha256.Size
)

func skippable(number uint32, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	b := binary.LittleEndian.AppendUint32(nil, magicSkippable+number)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	return append(b, body...)
}

// headOf is the first frame of the entry of a key.
func headOf(key string) []byte {
	h := sha256.Sum256([]byte(key))
	return skippable(0, []byte(version), h[:])
}

func checkOf(key string, table []byte) []byte {
	h := sha256.Sum256([]byte(key))
	c := sha256.Sum256(append(h[:], table...))
	return skippable(1, c[:])
}

var errEntry = errors.New("it is not a whole entry of this key")

// load opens an entry and checks everything but the pieces, which have checksums.
func (f *File) load(path string) (*source, error) {
	st, err := f.o.disk.Stat(path)
	if err != nil {
		return nil, err
	}
	e, err := f.openEntry(path, st.Size)
	if err != nil {
		return nil, err
	}
	s := &source{r: e, name: f.name + " (copy " + path + ")", format: Zstd, entry: e}
	if err := s.verify(f.o.Key, st.Size); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return s, nil
}

func (s *source) verify(key string, size int64) error {
	head := make([]byte, headSize)
	if size < headSize+checkSize+8+tableFoot {
		return errEntry
	}
	if err := fault.ReadFull(s.r, head, 0); err != nil || !bytes.Equal(head, headOf(key)) {
		return errEntry
	}
	var foot [tableFoot]byte
	if err := fault.ReadFull(s.r, foot[:], size-tableFoot); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(foot[:]))
	length := 8 + 12*n + tableFoot
	if n > maxPieces || length > size-headSize-checkSize {
		return errEntry
	}
	b := make([]byte, checkSize+length)
	if err := fault.ReadFull(s.r, b, size-int64(len(b))); err != nil {
		return err
	}
	if !bytes.Equal(b[:checkSize], checkOf(key, b[checkSize:])) {
		return errEntry
	}
	ok, err := s.seekTable(size)
	if err == nil && !ok {
		err = errEntry
	}
	return err
}

// evict removes the entries that were used longest ago until the others are within
// the limit, and what killed processes left.
func (f *File) evict() error {
	es, err := f.o.disk.ReadDir(f.o.Cache)
	if err != nil {
		return f.failed("listing", f.o.Cache, err)
	}
	type old struct {
		path string
		size int64
		used time.Time
	}
	var olds []old
	total := int64(0)
	for _, e := range es {
		path := filepath.Join(f.o.Cache, e.Name)
		used, err := f.o.disk.Used(path)
		switch {
		case err != nil || e.Dir: // another process removed it
		case strings.HasPrefix(e.Name, unfinished) && time.Since(used) > dead:
			_ = f.o.disk.Remove(path)
		case strings.HasSuffix(e.Name, suffix):
			olds = append(olds, old{path, e.Size, used})
			total += e.Size
		}
	}
	slices.SortFunc(olds, func(a, b old) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path))
	})
	inUse.Lock()
	defer inUse.Unlock()
	for _, e := range olds {
		if total <= f.o.Limit {
			break
		}
		if inUse.n[e.path] > 0 {
			continue
		}
		// On Windows what another process has open cannot be removed; it counts
		// until that process is gone.
		if f.o.disk.Remove(e.path) == nil {
			total -= e.size
		}
	}
	return nil
}

// room is how many bytes a new entry may have beside those that are open here.
func (f *File) room() int64 {
	inUse.Lock()
	defer inUse.Unlock()
	n := f.o.Limit
	for path, size := range inUse.size {
		if filepath.Dir(path) == filepath.Clean(f.o.Cache) {
			n -= size
		}
	}
	return n
}

// make writes the entry: under a name of its own, flushed, then renamed.
func (f *File) make(path string) error {
	if err := f.mkdir(f.o.Cache); err != nil {
		return f.failed("making the folder of", path, err)
	}
	tmp := filepath.Join(f.o.Cache, unfinished+uniqueName())
	out, err := f.o.disk.Create(tmp)
	if err != nil {
		return f.failed("creating", path, err)
	}
	err = f.reframe(out, path)
	if err == nil {
		if e := out.Sync(); e != nil {
			err = f.failed("flushing", path, e)
		}
	}
	if e := out.Close(); err == nil && e != nil {
		err = f.failed("closing", path, e)
	}
	if err == nil {
		if e := f.o.disk.Rename(tmp, path); e != nil {
			err = f.failed("renaming to", path, e)
		}
	}
	if err != nil {
		_ = f.o.disk.Remove(tmp)
		return err
	}
	if err := f.o.disk.SyncDir(f.o.Cache); err != nil {
		return f.failed("flushing the folder of", path, err)
	}
	return nil
}

// mkdir makes a folder and those above it. Nothing in the cache has to survive a
// power cut, so the names are not flushed.
func (f *File) mkdir(path string) error {
	e, err := f.o.disk.Stat(path)
	switch {
	case err == nil && e.Dir:
		return nil
	case err == nil:
		return fmt.Errorf("%s is a file", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if up := filepath.Dir(path); up != path {
		if err := f.mkdir(up); err != nil {
			return err
		}
	}
	if err := f.o.disk.Mkdir(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

var _ io.ReaderAt = (*entry)(nil)
