// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import "io"

// Files is the part of an operating system that a [Dir] needs. Paths are those
// of the operating system. blob/blobtest has one in memory that forgets what was
// not flushed, and one that fails on demand.
type Files interface {
	Create(path string) (File, error) // for writing; an old file is truncated
	Open(path string) (File, error)   // for reading
	Stat(path string) (Entry, error)  // follows links
	ReadDir(path string) ([]Entry, error)
	Mkdir(path string) error // the parent exists
	Rename(from, to string) error
	Remove(path string) error  // a file, a link, or an empty folder
	SyncDir(path string) error // flushes the names in a folder, not what they name
	Free(path string) (int64, error)
}

// File is an open file. Sync flushes its bytes to the disk.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Sync() error
}
