// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"io"
)

// Store is named bytes. Names are relative and use slashes ("a/b.json"); "." is
// the store itself; names with "..", an empty element or a leading slash are
// refused.
//
// A Store may be used by several goroutines, but a name has one writer at a
// time.
//
// Errors name the file. A missing name matches fs.ErrNotExist and is of kind
// fault.Data unless the caller knows better; a full disk and every other
// failure of the machine is of kind fault.Machine.
type Store interface {
	// Open opens the bytes of a name for reading in ranges.
	Open(name string) (Reader, error)

	// List gives the files and folders directly inside a folder, sorted by
	// name, without unfinished ones. A missing folder matches fs.ErrNotExist.
	List(name string) ([]Entry, error)

	// Write makes what fill writes the bytes of name, replacing earlier ones
	// atomically. When fill or the machine fails, the earlier bytes stay.
	// Folders on the way are made.
	Write(name string, fill func(io.Writer) error) error

	// Publish makes the files that build creates appear as the folder name, all
	// at once. A folder that exists already is not touched: the error matches
	// fs.ErrExist. When build or the machine fails, nothing appears, except that
	// a failure to flush the parent folder, after the rename, leaves it visible.
	Publish(name string, build func(Tree) error) error

	// Remove makes a file or a folder disappear at once, then frees its space.
	// A missing name is no error.
	Remove(name string) error

	// Sweep removes what killed writers left in a folder. Nothing may be
	// writing there. A missing folder is no error.
	Sweep(name string) error

	// Free is the number of bytes that can still be written, or -1 if unknown.
	Free() (int64, error)

	// Path says where a name is, for messages and people.
	Path(name string) string
}

// Tree is a folder that is being built.
type Tree interface {
	// Write adds a file with the bytes that fill writes; names as in [Store].
	Write(name string, fill func(io.Writer) error) error
}

// Reader reads ranges of one file and may be used by several goroutines.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Entry is one line of a listing. Size is 0 for folders.
type Entry struct {
	Name string // without the folder
	Dir  bool
	Size int64
}

// ReadFile reads all bytes of a name, at most limit of them: a larger file is
// refused before anything is allocated.
func ReadFile(s Store, name string, limit int64) ([]byte, error) {
	r, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size() > limit {
		return nil, tooLarge(s.Path(name), r.Size(), limit)
	}
	b := make([]byte, r.Size())
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return nil, wrap("reading", s.Path(name), err)
	}
	return b, nil
}
