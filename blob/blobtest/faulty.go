// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blobtest

import (
	"errors"
	"path/filepath"
	"sync"

	"pleach/blob"
)

// Op is a set of operations that change a disk.
type Op uint

// The operations.
const (
	Create Op = 1 << iota
	Write
	Sync
	Mkdir
	Rename
	Remove
	SyncDir

	Any = Create | Write | Sync | Mkdir | Rename | Remove | SyncDir
)

// ErrCrash is what every operation returns from a crash on.
var ErrCrash = errors.New("the machine crashed")

// Rule says which operation fails and how. The zero value lets all pass.
type Rule struct {
	Ops    Op     // which operations count; 0 is Any
	Path   string // only those whose last path element matches this pattern, if not empty
	Nth    int    // the n-th one fails, counted from 1; 0 is never
	Always bool   // and all that come after it, as on a disk that stays full
	Err    error  // what it returns
	Crash  bool   // nothing at all works afterwards; Err is ErrCrash
}

// Faulty is a disk that breaks by a rule. A write that fails has written half of
// its bytes.
type Faulty struct {
	blob.Files
	Rule

	mu      sync.Mutex
	count   int
	crashed bool
}

// Count is the number of operations so far that the rule's Ops and Path name.
func (f *Faulty) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

func (f *Faulty) check(op Op, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed {
		return ErrCrash
	}
	if f.Ops != 0 && f.Ops&op == 0 {
		return nil
	}
	if f.Path != "" {
		if ok, _ := filepath.Match(f.Path, filepath.Base(path)); !ok {
			return nil
		}
	}
	f.count++
	if f.Nth == 0 || f.count < f.Nth || f.count > f.Nth && !f.Always {
		return nil
	}
	if f.Crash {
		f.crashed = true
		return ErrCrash
	}
	return f.Err
}

// Create may fail by the rule.
func (f *Faulty) Create(path string) (blob.File, error) {
	if err := f.check(Create, path); err != nil {
		return nil, err
	}
	g, err := f.Files.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{g, f, path}, nil
}

// Mkdir may fail by the rule.
func (f *Faulty) Mkdir(path string) error {
	if err := f.check(Mkdir, path); err != nil {
		return err
	}
	return f.Files.Mkdir(path)
}

// Rename may fail by the rule; the pattern is for the new name.
func (f *Faulty) Rename(from, to string) error {
	if err := f.check(Rename, to); err != nil {
		return err
	}
	return f.Files.Rename(from, to)
}

// Remove may fail by the rule.
func (f *Faulty) Remove(path string) error {
	if err := f.check(Remove, path); err != nil {
		return err
	}
	return f.Files.Remove(path)
}

// SyncDir may fail by the rule.
func (f *Faulty) SyncDir(path string) error {
	if err := f.check(SyncDir, path); err != nil {
		return err
	}
	return f.Files.SyncDir(path)
}

type faultyFile struct {
	blob.File
	f    *Faulty
	path string
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if err := f.f.check(Write, f.path); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f *faultyFile) Sync() error {
	if err := f.f.check(Sync, f.path); err != nil {
		return err
	}
	return f.File.Sync()
}
