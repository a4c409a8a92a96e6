// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"pleach/internal/fault"
)

// Names that begin so are unfinished or already given up.
const (
	unfinished = ".tmp-"
	dropped    = ".old-"
)

// Dir is a [Store] in a folder.
type Dir struct {
	Files Files
	Root  string // a path of the operating system; made when first written to
}

// Local is the store in a folder of this machine.
func Local(root string) *Dir { return &Dir{Files: OS{}, Root: root} }

var _ Store = (*Dir)(nil)

// Path is the path of a name for the operating system.
func (d *Dir) Path(name string) string { return filepath.Join(d.Root, filepath.FromSlash(name)) }

func (d *Dir) path(name string) (string, error) {
	if !fs.ValidPath(name) || strings.Contains(name, `\`) {
		return "", badName(name)
	}
	return d.Path(name), nil
}

// Open opens a file for reading in ranges.
func (d *Dir) Open(name string) (Reader, error) {
	p, err := d.path(name)
	if err != nil {
		return nil, err
	}
	e, err := d.Files.Stat(p)
	if err != nil {
		return nil, wrap("opening", p, err)
	}
	if e.Dir {
		return nil, fault.Dataf("blob: opening %s: got a folder, want a file", p)
	}
	f, err := d.Files.Open(p)
	if err != nil {
		return nil, wrap("opening", p, err)
	}
	return &reader{f, p, e.Size}, nil
}

type reader struct {
	f    File
	path string
	size int64
}

func (r *reader) Size() int64  { return r.size }
func (r *reader) Close() error { return wrap("closing", r.path, r.f.Close()) }

func (r *reader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.f.ReadAt(b, off)
	if err != nil && err != io.EOF {
		err = wrap("reading", r.path, err)
	}
	return n, err
}

// List lists a folder.
func (d *Dir) List(name string) ([]Entry, error) {
	p, err := d.path(name)
	if err != nil {
		return nil, err
	}
	es, err := d.Files.ReadDir(p)
	if err != nil {
		return nil, wrap("listing", p, err)
	}
	n := 0
	for _, e := range es {
		if !passing(e.Name) {
			es[n] = e
			n++
		}
	}
	return es[:n], nil
}

func passing(name string) bool {
	return strings.HasPrefix(name, unfinished) || strings.HasPrefix(name, dropped)
}

// beside gives the path of a name, that of its passing name with this prefix,
// and that of the folder of both.
func (d *Dir) beside(name, prefix string) (p, tmp, parent string, err error) {
	if name == "." {
		return "", "", "", badName(name)
	}
	if p, err = d.path(name); err != nil {
		return
	}
	return p, d.Path(path.Join(path.Dir(name), prefix+path.Base(name))), filepath.Dir(p), nil
}

// Write replaces a file.
func (d *Dir) Write(name string, fill func(io.Writer) error) error {
	p, tmp, parent, err := d.beside(name, unfinished)
	if err != nil {
		return err
	}
	if err := d.mkdir(parent); err != nil {
		return err
	}
	if err := d.fill(tmp, p, fill); err != nil {
		_ = d.Files.Remove(tmp)
		return err
	}
	if err := d.Files.Rename(tmp, p); err != nil {
		_ = d.Files.Remove(tmp)
		return wrap("renaming to", p, err)
	}
	return wrap("flushing", parent, d.Files.SyncDir(parent))
}

// fill creates, writes and flushes the file at path; messages call it by the
// name that it will have.
func (d *Dir) fill(path, name string, fill func(io.Writer) error) error {
	f, err := d.Files.Create(path)
	if err != nil {
		return wrap("creating", name, err)
	}
	if err := fill(&writer{f, name}); err != nil {
		return errors.Join(err, wrap("closing", name, f.Close()))
	}
	// A file whose flush failed must not be used: the kernel may have dropped
	// the pages and reports it only once.
	if err := f.Sync(); err != nil {
		return errors.Join(wrap("flushing", name, err), wrap("closing", name, f.Close()))
	}
	return wrap("closing", name, f.Close())
}

type writer struct {
	f    File
	path string
}

func (w *writer) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	return n, wrap("writing", w.path, err)
}

// mkdir makes a folder and those above it. Each new name is flushed in its
// parent, else a power cut could take the folder and what is in it.
func (d *Dir) mkdir(p string) error {
	e, err := d.Files.Stat(p)
	switch {
	case err == nil && e.Dir:
		return nil
	case err == nil:
		return fault.Configf("blob: making folder %s: a file of this name exists", p)
	case !errors.Is(err, fs.ErrNotExist):
		return wrap("making folder", p, err)
	}
	up := filepath.Dir(p)
	if up != p {
		if err := d.mkdir(up); err != nil {
			return err
		}
	}
	if err := d.Files.Mkdir(p); err != nil && !errors.Is(err, fs.ErrExist) {
		return wrap("making folder", p, err)
	}
	return wrap("flushing", up, d.Files.SyncDir(up))
}

// Remove removes a file or a folder.
func (d *Dir) Remove(name string) error {
	p, old, parent, err := d.beside(name, dropped)
	if err != nil {
		return err
	}
	if _, err := d.Files.Stat(p); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := d.removeAll(old); err != nil {
		return err
	}
	if err := d.Files.Rename(p, old); err != nil {
		return wrap("removing", p, err)
	}
	if err := d.Files.SyncDir(parent); err != nil {
		return wrap("flushing", parent, err)
	}
	return d.removeAll(old)
}

// removeAll removes a tree. It tries a plain removal first, so that a link goes
// and what it points to stays.
func (d *Dir) removeAll(p string) error {
	err := d.Files.Remove(p)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	es, listErr := d.Files.ReadDir(p)
	if listErr != nil || len(es) == 0 {
		return wrap("removing", p, err)
	}
	for _, e := range es {
		if err := d.removeAll(filepath.Join(p, e.Name)); err != nil {
			return err
		}
	}
	return wrap("removing", p, d.Files.Remove(p))
}

// Sweep removes what killed writers left in a folder.
func (d *Dir) Sweep(name string) error {
	p, err := d.path(name)
	if err != nil {
		return err
	}
	es, err := d.Files.ReadDir(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return wrap("listing", p, err)
	}
	for _, e := range es {
		if !passing(e.Name) {
			continue
		}
		if err := d.removeAll(filepath.Join(p, e.Name)); err != nil {
			return err
		}
	}
	return nil
}

// Free is the free space of the disk that holds the folder, or will hold it.
func (d *Dir) Free() (int64, error) {
	p, err := filepath.Abs(d.Root)
	if err != nil {
		return 0, wrap("finding", d.Root, err)
	}
	for {
		n, err := d.Files.Free(p)
		if up := filepath.Dir(p); errors.Is(err, fs.ErrNotExist) && up != p {
			p = up
			continue
		}
		return n, wrap("asking for free space at", p, err)
	}
}
