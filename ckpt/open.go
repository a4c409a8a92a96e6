// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"pleach/blob"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/weights"
)

// Checkpoint is an open checkpoint. Its methods but Close may be called from
// several goroutines.
type Checkpoint struct {
	Step    int64
	Config  []byte       // config.json
	State   []byte       // training/state.json
	Weights *weights.Set // the published weights

	path  string
	state *weights.Set
	table
}

// Open opens a checkpoint by its name in a store: Name(step) in the store of a
// run, or "." in the store that is its folder. Sizes are checked, hashes are not:
// that is [Verify], which [Newest] has done. Errors are of kind fault.State.
func Open(s blob.Store, name string) (*Checkpoint, error) {
	c, err := open(s, name)
	if err != nil {
		return nil, fault.As(fault.State, err)
	}
	return c, nil
}

func open(s blob.Store, name string) (_ *Checkpoint, err error) {
	m, err := readManifest(s, name)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Step: m.Step, path: s.Path(name)}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	var ranks []string
	for _, f := range m.Files {
		if err := f.checkSize(s, name); err != nil {
			return nil, err
		}
		if ok, _ := path.Match("training/rank-*.safetensors", f.Name); ok {
			ranks = append(ranks, f.Name)
		}
	}
	if c.Config, err = c.read(s, name, "config.json"); err != nil {
		return nil, err
	}
	if c.State, err = c.read(s, name, "training/state.json"); err != nil {
		return nil, err
	}
	if c.Weights, err = weights.Open(s, name); err != nil {
		return nil, err
	}
	return c, c.openRanks(s, name, ranks)
}

func (c *Checkpoint) read(s blob.Store, name, file string) ([]byte, error) {
	b, err := blob.ReadFile(s, path.Join(name, file), jsonLimit)
	if err != nil {
		return nil, fmt.Errorf("ckpt: %w", err)
	}
	return b, nil
}

func (c *Checkpoint) openRanks(s blob.Store, name string, ranks []string) error {
	files := make([]string, len(ranks))
	for i, r := range ranks {
		files[i] = path.Join(name, r)
	}
	var err error
	if c.state, err = weights.OpenFiles(s, files...); err != nil {
		return err
	}
	var all places
	for _, r := range ranks {
		b, err := c.read(s, name, strings.TrimSuffix(r, ".safetensors")+".json")
		if err != nil {
			return err
		}
		if err := all.add(b); err != nil {
			return fmt.Errorf("ckpt: %s: %s: %w", c.path, r, err)
		}
	}
	if err := all.locate(c.state); err != nil {
		return fmt.Errorf("ckpt: %s: training: %w", c.path, err)
	}
	if c.table, err = tabulate(all.Boxes); err != nil {
		return fmt.Errorf("ckpt: %s: training: %w", c.path, err)
	}
	return nil
}

// Close closes the files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, s := range []*weights.Set{c.Weights, c.state} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Names is the whole tensors of the optimizer state, in the order of ranks and
// within a rank in that of saving.
func (c *Checkpoint) Names() []string { return slices.Clone(c.names) }

// Lookup is the type and the shape of a whole tensor of the optimizer state.
func (c *Checkpoint) Lookup(name string) (t half.DType, shape []int, ok bool) {
	ps := c.boxes[name]
	if len(ps) == 0 {
		return 0, nil, false
	}
	return ps[0].dtype, slices.Clone(ps[0].Whole), true
}

// Box sets dst, row-major of the given shape, to the part of a whole tensor of
// the optimizer state that begins at offset, from whichever ranks wrote it.
func (c *Checkpoint) Box(name string, offset, shape []int, dst []float32) error {
	ps := c.boxes[name]
	if len(ps) == 0 {
		return fault.Statef("ckpt: %s: tensor %q: there is none of this name", c.path, name)
	}
	want := place{Name: name, Offset: offset, Whole: ps[0].Whole, shape: shape, dtype: ps[0].dtype}
	want.Key = want.key()
	if err := want.check(); err != nil {
		return fmt.Errorf("ckpt: reading %s: %w", c.path, err)
	}
	if len(dst) != volume(shape) {
		return fmt.Errorf("ckpt: reading %s: tensor %q: a box of shape %d into %d elements",
			c.path, name, shape, len(dst))
	}
	for _, p := range ps {
		off, size, ok := overlap(p.Offset, p.shape, offset, shape)
		if !ok {
			continue
		}
		err := weights.Runs(size, p.shape, minus(off, p.Offset), shape, minus(off, offset),
			func(i, j, n int) error { return c.state.Read(p.Key, i, i+n, dst[j:j+n]) })
		if err != nil {
			return fault.As(fault.State, err)
		}
	}
	return nil
}

func minus(a, b []int) []int {
	c := make([]int, len(a))
	for i := range a {
		c[i] = a[i] - b[i]
	}
	return c
}
