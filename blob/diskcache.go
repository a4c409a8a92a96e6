// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"pleach/internal/fault"
)

// diskCache keeps chunks as files in one folder, which several processes may
// share. A file is
//
//	8 bytes   "PLCHUNK1"
//	8 bytes   length of the data, little endian
//	4 bytes   CRC-32C of the name of the file and the data, little endian
//	          the data
//
// It is written under a passing name and renamed, and checked when a process
// first reads it: whatever a kill, a power cut or a bad disk leaves, a damaged
// chunk is fetched again. So nothing is flushed.
//
// All that changes the folder happens under a lock on the file ".lock", whose
// first 8 bytes count the bytes of all chunks: too many after a kill, never too
// few. When they would exceed the limit, the folder is listed, the count
// corrected, and the chunks used longest ago, by the time of their files, are
// removed down to nine tenths of the limit.
type diskCache struct {
	dir   string
	limit int64
	spare int64 // bytes of the disk that are left to others
	warn  func(string)

	mu     sync.Mutex
	known  map[chunkID]bool // checked by this process
	warned bool
	retry  time.Time // nothing is stored before
}

const (
	chunkMagic  = "PLCHUNK1"
	chunkHeader = 20
	chunkSuffix = ".chunk"
	// spareSpace is what others need the disk for: checkpoints, say.
	spareSpace = 512 << 20
	// restTime is how long storing rests after it failed.
	restTime = time.Minute
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(name string, data []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(name), castagnoli), castagnoli, data)
}

func (c *diskCache) path(id chunkID) string {
	return filepath.Join(c.dir, id.String()+chunkSuffix)
}

// knows says whether this process has checked a chunk.
func (c *diskCache) knows(id chunkID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[id]
}

func (c *diskCache) note(id chunkID, good bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[chunkID]bool{}
	}
	if good {
		c.known[id] = true
	} else {
		delete(c.known, id)
	}
}

// readAt reads part of a chunk that was checked before.
func (c *diskCache) readAt(id chunkID, b []byte, off int64) bool {
	if !c.knows(id) {
		return false
	}
	f, err := os.Open(c.path(id))
	if err == nil {
		defer f.Close()
		_, err = f.ReadAt(b, chunkHeader+off)
	}
	if err != nil { // removed by another process, say
		c.note(id, false)
	}
	return err == nil
}

// load reads and checks a whole chunk. A damaged one is removed.
func (c *diskCache) load(id chunkID, data []byte) bool {
	p := c.path(id)
	f, err := os.Open(p)
	if err != nil {
		return false
	}
	good := readChunk(f, id.String(), data)
	_ = f.Close()
	if !good {
		_ = os.Remove(p)
		return false
	}
	now := time.Now()
	_ = os.Chtimes(p, now, now) // used last; of no consequence if it fails
	c.note(id, true)
	return true
}

func readChunk(f *os.File, name string, data []byte) bool {
	info, err := f.Stat()
	if err != nil || info.Size() != chunkHeader+int64(len(data)) {
		return false
	}
	var head [chunkHeader]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return false
	}
	if _, err := f.ReadAt(data, chunkHeader); err != nil {
		return false
	}
	return bytes.Equal(head[:], header(name, data))
}

// header is what stands before the data.
func header(name string, data []byte) []byte {
	b := append(make([]byte, 0, chunkHeader), chunkMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	return binary.LittleEndian.AppendUint32(b, checksum(name, data))
}

// store keeps a chunk. That it cannot is said once and is no error: the store
// has the bytes.
func (c *diskCache) store(id chunkID, data []byte) {
	c.mu.Lock()
	rests := time.Now().Before(c.retry)
	c.mu.Unlock()
	if rests || chunkHeader+int64(len(data)) > c.limit {
		return
	}
	if err := c.write(id, data); err != nil {
		c.fail(err)
		return
	}
	c.note(id, true)
}

func (c *diskCache) fail(err error) {
	c.mu.Lock()
	first := !c.warned
	c.warned, c.retry = true, time.Now().Add(restTime)
	c.mu.Unlock()
	if first {
		c.warn("the cache of objects cannot be written, so they are read from their store each time: " + err.Error())
	}
}

func (c *diskCache) write(id chunkID, data []byte) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return wrap("making folder", c.dir, err)
	}
	lock := filepath.Join(c.dir, ".lock")
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return wrap("opening", lock, err)
	}
	defer f.Close() // unlocks
	if err := lockFile(f); err != nil {
		return wrap("locking", lock, err)
	}
	need := chunkHeader + int64(len(data))
	total, err := c.makeRoom(f, need)
	if err != nil {
		return err
	}
	if free, err := (OS{}).Free(c.dir); err == nil && free >= 0 && free < c.spare+need {
		return fault.Machinef("blob: writing to %s: the disk has %d MiB free, want %d MiB left to others",
			c.dir, free>>20, c.spare>>20)
	}
	if err := setTotal(f, total+need); err != nil {
		return wrap("writing", lock, err)
	}
	if err := c.publish(id, data); err != nil {
		_ = setTotal(f, total)
		return err
	}
	return nil
}

func (c *diskCache) publish(id chunkID, data []byte) error {
	p := c.path(id)
	tmp := filepath.Join(c.dir, unfinished+id.String())
	f, err := os.Create(tmp)
	if err != nil {
		return wrap("creating", p, err)
	}
	_, err = f.Write(header(id.String(), data))
	if err == nil {
		_, err = f.Write(data)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(tmp, p)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return wrap("writing", p, err)
}

// getTotal is the count of bytes in the locked file, or -1.
func getTotal(f *os.File) int64 {
	var b [8]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return -1
	}
	return int64(binary.LittleEndian.Uint64(b[:]))
}

func setTotal(f *os.File, n int64) error {
	_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(n)), 0)
	return err
}

// makeRoom removes chunks if need bytes do not fit, and gives the bytes of those
// that stay.
func (c *diskCache) makeRoom(lock *os.File, need int64) (int64, error) {
	if total := getTotal(lock); total >= 0 && total+need <= c.limit {
		return total, nil
	}
	all, total, err := c.scan()
	if err != nil {
		return 0, err
	}
	if total+need <= c.limit {
		return total, nil
	}
	goal := max(0, min(c.limit-need, c.limit/10*9))
	for _, e := range all {
		if total <= goal {
			break
		}
		if err := os.Remove(filepath.Join(c.dir, e.name)); err == nil || errors.Is(err, fs.ErrNotExist) {
			total -= e.size
		}
	}
	if total+need > c.limit {
		return 0, fault.Machinef("blob: making room in %s: old chunks cannot be removed", c.dir)
	}
	return total, nil
}

type cached struct {
	name string
	size int64
	at   time.Time
}

// scan lists the chunks, used longest ago first, and removes what killed writers
// left: the lock is held, so nobody else is writing.
func (c *diskCache) scan() (all []cached, total int64, err error) {
	des, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, 0, wrap("listing", c.dir, err)
	}
	for _, d := range des {
		if strings.HasPrefix(d.Name(), unfinished) {
			_ = os.Remove(filepath.Join(c.dir, d.Name()))
			continue
		}
		info, err := d.Info()
		if err != nil || !strings.HasSuffix(d.Name(), chunkSuffix) {
			continue
		}
		all = append(all, cached{d.Name(), info.Size(), info.ModTime()})
		total += info.Size()
	}
	slices.SortFunc(all, func(a, b cached) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name))
	})
	return all, total, nil
}
