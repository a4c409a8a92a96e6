// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"pleach/internal/fault"
)

// Publish makes a folder appear at once.
func (d *Dir) Publish(name string, build func(Tree) error) error {
	p, tmp, parent, err := d.beside(name, unfinished)
	if err != nil {
		return err
	}
	if _, err := d.Files.Stat(p); err == nil {
		return fault.Statef("blob: publishing %s: %w", p, fs.ErrExist)
	}
	if err := d.mkdir(parent); err != nil {
		return err
	}
	if err := d.removeAll(tmp); err != nil { // of a killed writer
		return err
	}
	t := &tree{d: d, root: tmp, name: p}
	if err := t.build(build); err != nil {
		_ = d.removeAll(tmp)
		return err
	}
	if err := d.Files.Rename(tmp, p); err != nil {
		_ = d.removeAll(tmp)
		return wrap("renaming to", p, err)
	}
	return wrap("flushing", parent, d.Files.SyncDir(parent))
}

// tree is an unfinished folder. The parents of its folders are flushed once, at
// the end: until the rename nothing in it has to survive.
type tree struct {
	d          *Dir
	root, name string   // where it is, and where it will be
	dirs       []string // made so far, parents before children
}

func (t *tree) build(build func(Tree) error) error {
	if err := t.mkdir("."); err != nil {
		return err
	}
	if err := build(t); err != nil {
		return err
	}
	for _, p := range slices.Backward(t.dirs) {
		at := filepath.Join(t.root, filepath.FromSlash(p))
		if err := t.d.Files.SyncDir(at); err != nil {
			return wrap("flushing", filepath.Join(t.name, filepath.FromSlash(p)), err)
		}
	}
	return nil
}

func (t *tree) mkdir(dir string) error {
	if slices.Contains(t.dirs, dir) {
		return nil
	}
	if dir != "." {
		if err := t.mkdir(path.Dir(dir)); err != nil {
			return err
		}
	}
	p := filepath.FromSlash(dir)
	if err := t.d.Files.Mkdir(filepath.Join(t.root, p)); err != nil {
		return wrap("making folder", filepath.Join(t.name, p), err)
	}
	t.dirs = append(t.dirs, dir)
	return nil
}

// Write adds a file.
func (t *tree) Write(name string, fill func(io.Writer) error) error {
	if !fs.ValidPath(name) || name == "." {
		return badName(name)
	}
	if err := t.mkdir(path.Dir(name)); err != nil {
		return err
	}
	p := filepath.FromSlash(name)
	return t.d.fill(filepath.Join(t.root, p), filepath.Join(t.name, p), fill)
}
