// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blobtest

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"pleach/blob"
)

// Mem is a disk in memory. It keeps what each file and folder holds now and what
// it held when last flushed. The zero value is not usable; see [NewMem].
type Mem struct {
	mu   sync.Mutex
	root *node
	free int64
}

// node is a file (kids is nil) or a folder.
type node struct {
	kids, kidsFlushed map[string]*node
	data, dataFlushed []byte
}

func dir() *node {
	return &node{kids: map[string]*node{}, kidsFlushed: map[string]*node{}}
}

// NewMem is an empty disk of unknown size.
func NewMem() *Mem { return &Mem{root: dir(), free: -1} }

// SetFree sets the free space that Free tells; writes do not count against it.
func (m *Mem) SetFree(n int64) { m.free = n }

// A Loss is what a crash takes away.
type Loss int

// Losses. After Kill everything written is there, since the operating system
// lives on. After PowerCut only what was flushed is there. After Torn each name
// and each file that was not flushed kept its old state, its new one, or, for
// files, the first part of the new one, at random.
const (
	Kill Loss = iota
	PowerCut
	Torn
)

// After is a copy of the disk as it is found after a crash. The seed is for Torn.
func (m *Mem) After(l Loss, seed uint64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Mem{root: m.root.after(l, rand.New(rand.NewPCG(seed, 0))), free: m.free}
}

func (n *node) after(l Loss, r *rand.Rand) *node {
	if n.kids == nil {
		d := n.data
		switch {
		case l == PowerCut, l == Torn && r.IntN(2) == 0:
			d = n.dataFlushed
		case l == Torn && !bytes.Equal(d, n.dataFlushed):
			d = d[:r.IntN(len(d)+1)]
		}
		d = bytes.Clone(d)
		return &node{data: d, dataFlushed: d}
	}
	c := dir()
	for _, name := range names(n.kids, n.kidsFlushed) {
		now, old := n.kids[name], n.kidsFlushed[name]
		if l == PowerCut || l == Torn && r.IntN(2) == 0 {
			now = old
		}
		if now != nil {
			c.kids[name] = now.after(l, r)
		}
	}
	c.kidsFlushed = maps.Clone(c.kids)
	return c
}

func names(ms ...map[string]*node) []string {
	var s []string
	for _, m := range ms {
		s = slices.AppendSeq(s, maps.Keys(m))
	}
	slices.Sort(s)
	return slices.Compact(s)
}

// find walks to a path; up is the folder that holds it.
func (m *Mem) find(path string) (up, n *node, name string, err error) {
	n = m.root
	for e := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(path)), "/") {
		if e == "" || e == "." {
			continue
		}
		if n == nil || n.kids == nil {
			return nil, nil, "", fs.ErrNotExist
		}
		up, n, name = n, n.kids[e], e
	}
	return up, n, name, nil
}

func (m *Mem) must(path string) (*node, error) {
	_, n, _, err := m.find(path)
	if err == nil && n == nil {
		err = fs.ErrNotExist
	}
	return n, err
}

// Create makes or truncates a file.
func (m *Mem) Create(path string) (blob.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	up, n, name, err := m.find(path)
	switch {
	case err != nil:
		return nil, err
	case up == nil || n != nil && n.kids != nil:
		return nil, syscall.EISDIR
	case n == nil:
		n = &node{}
		up.kids[name] = n
	}
	n.data = nil
	return &file{m, n}, nil
}

// Open opens a file.
func (m *Mem) Open(path string) (blob.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.must(path)
	if err != nil {
		return nil, err
	}
	return &file{m, n}, nil
}

// Stat describes a file or folder.
func (m *Mem) Stat(path string) (blob.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.must(path)
	if err != nil {
		return blob.Entry{}, err
	}
	return n.entry(filepath.Base(path)), nil
}

func (n *node) entry(name string) blob.Entry {
	return blob.Entry{Name: name, Dir: n.kids != nil, Size: int64(len(n.data))}
}

// ReadDir lists a folder.
func (m *Mem) ReadDir(path string) ([]blob.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.must(path)
	if err != nil {
		return nil, err
	}
	if n.kids == nil {
		return nil, syscall.ENOTDIR
	}
	var es []blob.Entry
	for _, name := range names(n.kids) {
		es = append(es, n.kids[name].entry(name))
	}
	return es, nil
}

// Mkdir makes a folder.
func (m *Mem) Mkdir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	up, n, name, err := m.find(path)
	if err != nil {
		return err
	}
	if n != nil {
		return fs.ErrExist
	}
	up.kids[name] = dir()
	return nil
}

// Rename moves a file or folder.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	fromUp, n, fromName, err := m.find(from)
	if err != nil {
		return err
	}
	toUp, old, toName, err := m.find(to)
	switch {
	case err != nil:
		return err
	case n == nil:
		return fs.ErrNotExist
	case old != nil && len(old.kids) > 0:
		return syscall.ENOTEMPTY
	}
	delete(fromUp.kids, fromName)
	toUp.kids[toName] = n
	return nil
}

// Remove removes a file or an empty folder.
func (m *Mem) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	up, n, name, err := m.find(path)
	switch {
	case err != nil:
		return err
	case n == nil:
		return fs.ErrNotExist
	case len(n.kids) > 0:
		return syscall.ENOTEMPTY
	}
	delete(up.kids, name)
	return nil
}

// SyncDir flushes the names in a folder.
func (m *Mem) SyncDir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.must(path)
	if err != nil {
		return err
	}
	n.kidsFlushed = maps.Clone(n.kids)
	return nil
}

// Free tells what SetFree set.
func (m *Mem) Free(string) (int64, error) { return m.free, nil }

type file struct {
	m *Mem
	n *node
}

func (f *file) Write(b []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.data = append(f.n.data, b...)
	return len(b), nil
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off > int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.n.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.dataFlushed = bytes.Clone(f.n.data)
	return nil
}

func (f *file) Close() error { return nil }
