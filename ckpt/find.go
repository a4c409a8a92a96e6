// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"

	"pleach/blob"
	"pleach/internal/fault"
)

// Newest finds the newest good checkpoint in the store of a run: one whose every
// file has the size and the hash that its manifest says. For each newer one that
// was passed over, problems has an error that says why.
//
// A run without checkpoints gives an empty name and no error. A run in which all
// are bad gives an error of kind fault.State, since starting afresh would then
// be the wrong thing to do without asking.
func Newest(s blob.Store) (name string, step int64, problems []error, err error) {
	steps, err := list(s)
	if err != nil {
		return "", 0, nil, err
	}
	for _, n := range steps {
		err := Verify(s, Name(n))
		if err == nil {
			return Name(n), n, problems, nil
		}
		problems = append(problems, err)
	}
	if len(steps) > 0 {
		return "", 0, problems, fault.Statef("ckpt: %s: all %d checkpoints are bad:\n%w",
			s.Path(folder), len(steps), errors.Join(problems...))
	}
	return "", 0, nil, nil
}

// list is the steps of which there are checkpoints, newest first.
func list(s blob.Store) ([]int64, error) {
	es, err := s.List(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ckpt: %w", err)
	}
	var steps []int64
	for _, e := range es {
		if n, ok := stepOf(e.Name); ok && e.Dir {
			steps = append(steps, n)
		}
	}
	slices.SortFunc(steps, func(a, b int64) int { return cmp.Compare(b, a) })
	return steps, nil
}

// Verify reads every file of a checkpoint and reports each that is not as it was
// written, as errors of kind fault.State.
func Verify(s blob.Store, name string) error {
	m, err := readManifest(s, name)
	if err != nil {
		return err
	}
	errs := make([]error, len(m.Files))
	scratch := int64(1)
	for _, f := range m.Files {
		scratch = min(max(scratch, f.Bytes), 1<<20)
	}
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(4, runtime.GOMAXPROCS(0), len(m.Files)) {
		wg.Go(func() {
			buf := make([]byte, scratch)
			for i := range next {
				errs[i] = m.Files[i].checkHash(s, name, buf)
			}
		})
	}
	for i := range m.Files {
		next <- i
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// Prune removes all but the newest keep checkpoints and those that are
// permanent. Only checkpoints whose files are all there, with the right sizes,
// count as kept, so that a good old one is not given up for a bad new one; bad
// ones newer than the last one kept are left to be looked at, and so are those
// of another version of pleach.
func Prune(s blob.Store, keep int, permanent func(step int64) bool) error {
	if keep < 1 {
		return fault.Configf("ckpt: checkpoints to keep: got %d, want at least 1", keep)
	}
	steps, err := list(s)
	if err != nil {
		return err
	}
	for _, n := range steps {
		switch err := sizes(s, Name(n)); {
		case keep > 0:
			if err == nil {
				keep--
			}
		case permanent != nil && permanent(n), errors.Is(err, errFormat):
		default:
			if err := s.Remove(Name(n)); err != nil {
				return fmt.Errorf("ckpt: %w", err)
			}
		}
	}
	return nil
}

// sizes is Verify without reading the files.
func sizes(s blob.Store, name string) error {
	m, err := readManifest(s, name)
	if err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := f.checkSize(s, name); err != nil {
			return err
		}
	}
	return nil
}
