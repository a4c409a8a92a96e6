// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"io/fs"
	"os"
)

// OS is the files of this machine.
type OS struct{}

// Create opens a file for writing.
func (OS) Create(path string) (File, error) { return os.Create(path) }

// Open opens a file for reading.
func (OS) Open(path string) (File, error) { return os.Open(path) }

// Mkdir makes one folder.
func (OS) Mkdir(path string) error { return os.Mkdir(path, 0o777) }

// Rename moves a file or folder; a file that was there is replaced.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes a file, a link or an empty folder.
func (OS) Remove(path string) error { return os.Remove(path) }

// SyncDir flushes the names in a folder.
func (OS) SyncDir(path string) error { return syncDir(path) }

// Free is the free space of the disk that holds path.
func (OS) Free(path string) (int64, error) { return free(path) }

// Stat describes a file or folder.
func (OS) Stat(path string) (Entry, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return Entry{}, err
	}
	return entry(fi), nil
}

// ReadDir lists a folder in the order of names. The Hugging Face cache consists
// of links, so a link counts as what it points to.
func (OS) ReadDir(path string) ([]Entry, error) {
	des, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	es := make([]Entry, 0, len(des))
	for _, d := range des {
		fi, err := d.Info()
		if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			fi, err = os.Stat(path + string(os.PathSeparator) + d.Name())
		}
		if err != nil { // removed meanwhile, or a link to nothing
			es = append(es, Entry{Name: d.Name()})
			continue
		}
		e := entry(fi)
		e.Name = d.Name()
		es = append(es, e)
	}
	return es, nil
}

func entry(fi fs.FileInfo) Entry {
	e := Entry{Name: fi.Name(), Dir: fi.IsDir()}
	if !e.Dir {
		e.Size = fi.Size()
	}
	return e
}
