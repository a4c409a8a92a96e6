// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"pleach/data"
	"pleach/train"
)

// nearest is the state of the checkpoint of a run directory that is the last one
// before a row or at it; nil if there is none. One that cannot be read is passed
// over, and said to w.
func nearest(dir string, row int64, w io.Writer) (*train.State, error) {
	folders, err := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*"))
	if err != nil {
		return nil, nil // a pattern in the name of the folder: no checkpoint is found
	}
	slices.Sort(folders)
	slices.Reverse(folders)
	for _, folder := range folders {
		c, state, err := train.OpenState(folder)
		if err != nil {
			fmt.Fprintf(w, "warning: passed over a bad checkpoint: %v\n", err)
			continue
		}
		_ = c.Close()
		if state.Data.Rows <= row {
			return &state, nil
		}
	}
	return nil, nil
}

// serve gives n rows from row on, fewer and io.EOF if the sources end, and lets go
// of those in front of them.
func (p *prepared) serve(ctx context.Context, show *eta, row int64, n int) ([]data.Row, error) {
	stop := context.AfterFunc(ctx, p.loader.Close)
	defer stop()
	defer show.erase()
	first := p.loader.State().Rows
	for at := first; at < row; {
		got, err := p.loader.Next(int(min(row-at, 64)))
		if at += int64(len(got)); err != nil {
			return nil, stoppable(ctx, err)
		}
		show.see(fmt.Sprintf("making rows %d … %d", first, row-1), at-first, row-first)
	}
	rows, err := p.loader.Next(n)
	return rows, stoppable(ctx, err)
}

// sourceNames are what the sources are called, in the order of the recipe.
func (p *prepared) sourceNames() []string {
	var names []string
	for _, s := range p.loader.Stats() {
		names = append(names, s.Name)
	}
	return names
}
