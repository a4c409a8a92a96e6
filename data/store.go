// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pleach/blob"
	"pleach/internal/fault"
)

// A store is where documents lie. Names are what a recipe and an error message
// call an object; the store alone knows how they map to places.
type store interface {
	// find lists the objects that a path, folder or pattern stands for, in an
	// order that depends on their names only.
	find(path string) ([]found, error)
	// open opens an object for reading at offsets, by several at a time.
	open(name string) (object, error)
}

type object interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Access is how the bytes of a source are reached.
type Access struct {
	// Cache is a folder for what is kept of compressed and remote files. Default:
	// pleach/data in the user's folder for caches.
	Cache string
	// Remote reads paths that are URLs. Without it they are refused.
	Remote *blob.Remote
}

// cache is the folder for what is kept.
func (a Access) cache() string {
	if a.Cache != "" {
		return a.Cache
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "pleach", "data")
}

// store is where a path leads to.
func (a Access) store(path string) store {
	if blob.IsRemote(path) {
		return &elsewhere{remote: a.Remote, objects: map[string]blob.Object{}}
	}
	return local{}
}

// elsewhere is objects that URLs stand for. It opens what it has found.
type elsewhere struct {
	remote  *blob.Remote
	objects map[string]blob.Object
}

func (e *elsewhere) find(path string) ([]found, error) {
	if e.remote == nil {
		return nil, fault.Configf("data: %s: only files of this machine are read here", path)
	}
	all, err := e.remote.List(context.Background(), path)
	if err != nil {
		return nil, err
	}
	tree := len(all) != 1 || !strings.HasSuffix(path, "/"+all[0].Rel)
	list := make([]found, len(all))
	for i, o := range all {
		list[i] = found{name: o.URL, rel: o.Rel, tree: tree, size: o.Size, tag: o.Tag}
		if hidden(o.Rel) {
			list[i].skip = "hidden"
		}
		e.objects[o.URL] = o
	}
	return list, nil
}

// hidden reports whether a name, or a folder on the way to it, begins with a dot.
func hidden(rel string) bool {
	return strings.HasPrefix(rel, ".") || strings.Contains(rel, "/.")
}

func (e *elsewhere) open(name string) (object, error) {
	return e.remote.Open(context.Background(), e.objects[name])
}

// found is one object that a path stands for.
type found struct {
	name string // opens it
	size int64  // if the listing tells
	tag  string // tells this version of it from others, "" if nothing but its bytes does
	rel  string // what stays the same when the corpus moves: below the path given
	tree bool   // met in a folder rather than named
	skip string // why it is not even opened, if so
}

// local is the file system of this machine.
type local struct{}

type localFile struct {
	*os.File
	size int64
}

func (f localFile) Size() int64 { return f.size }

func (local) open(name string) (object, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fault.Dataf("data: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fault.Dataf("data: %w", err)
	}
	return localFile{f, info.Size()}, nil
}

func (local) find(path string) ([]found, error) {
	// A file whose name holds a [ or * is taken for itself.
	if _, err := os.Stat(path); err == nil {
		return walk(path, filepath.Dir(path))
	} else if !errors.Is(err, fs.ErrNotExist) || !strings.ContainsAny(path, "*?[") {
		return nil, fault.Configf("data: %w", err)
	}
	names, err := filepath.Glob(path)
	if err != nil {
		return nil, fault.Configf("data: pattern %s: %w", path, err)
	}
	if len(names) == 0 {
		return nil, fault.Configf("data: pattern %s: matches no file", path)
	}
	root := filepath.Dir(path[:strings.IndexAny(path, "*?[")] + "x")
	var all []found
	for _, name := range names {
		fs, err := walk(name, root)
		if err != nil {
			return nil, err
		}
		all = append(all, fs...)
	}
	return all, nil
}

// walk lists a file, or the files below a folder.
func walk(path, root string) ([]found, error) {
	top, err := os.Stat(path)
	if err != nil {
		return nil, fault.Dataf("data: %w", err)
	}
	if top.IsDir() {
		root = path
		path += string(filepath.Separator) // a link that was named is followed
	}
	var all []found
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		tree := top.IsDir()
		if tree && name == path {
			return nil
		}
		f := found{name: filepath.Clean(name), tree: tree, skip: unfit(name, d, tree)}
		if d.IsDir() && f.skip == "" {
			return nil
		}
		if f.rel, err = filepath.Rel(root, name); err != nil {
			f.rel = name
		}
		f.rel = filepath.ToSlash(f.rel)
		all = append(all, f)
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fault.Dataf("data: listing %s: %w", path, err)
	}
	return all, nil
}

// unfit says why an entry of a folder is not opened. Links to files are
// followed: download caches are made of them. Links to folders are not: they may
// be loops.
func unfit(name string, d fs.DirEntry, tree bool) string {
	if tree && strings.HasPrefix(d.Name(), ".") {
		return "hidden"
	}
	if d.IsDir() || d.Type().IsRegular() {
		return ""
	}
	switch info, err := os.Stat(name); {
	case err != nil:
		return "broken link"
	case info.IsDir():
		return "link to a folder"
	case !info.Mode().IsRegular():
		return "not a file"
	}
	return ""
}

// readAt reads len(p) bytes at off of an object that is known to have them.
func readAt(o object, name string, p []byte, off int64) error {
	n, err := o.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fault.Dataf("data: %s (byte %d): reading %d bytes: %w", name, off, len(p), err)
}
