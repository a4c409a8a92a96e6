// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pleach/internal/fault"
	"pleach/program"
)

// pieceLen is the number of elements that move at a time, less what makes whole rows
// of them: 1 MiB of float32.
const pieceLen = 1 << 18

// Transfer moves all weights from tensors as files name them into parameters as
// programs do: it reads elements [lo,lo+len(dst)) of each tensor and writes them
// at their place in the parameter, whole rows at a time.
func (s Spec) Transfer(read func(t Tensor, lo int, dst []float32) error, write func(param string, lo int, src []float32) error) error {
	return s.TransferTo(program.Layout{}, read, write)
}

// TransferTo is Transfer into the parameters of a layout, see Held.
func (s Spec) TransferTo(
	l program.Layout, read func(t Tensor, lo int, dst []float32) error, write func(param string, lo int, src []float32) error,
) error {
	var buf []float32
	for _, t := range tensorsOf(s.Held(l)) {
		row := t.Shape[len(t.Shape)-1]
		most := max(1, pieceLen/row) * row
		buf = slices.Grow(buf[:0], most)[:most]
		for lo := 0; lo < t.Len(); lo += most {
			piece := buf[:min(most, t.Len()-lo)]
			if err := read(t, lo, piece); err != nil {
				return err
			}
			if err := write(t.Param, t.Lo+lo, piece); err != nil {
				return err
			}
		}
	}
	return nil
}

// Match compares the tensors of a model directory, name to shape, with those
// that s wants, and names every one that is missing, unknown or of another
// shape.
func (s Spec) Match(have map[string][]int) error {
	var bad []string
	want := map[string]bool{}
	for _, t := range s.Tensors() {
		want[t.Name] = true
		shape, ok := have[t.Name]
		switch {
		case !ok:
			bad = append(bad, fmt.Sprintf("tensor %q is missing, want shape %d", t.Name, t.Shape))
		case !slices.Equal(shape, t.Shape):
			bad = append(bad, fmt.Sprintf("tensor %q: shape %d, want %d", t.Name, shape, t.Shape))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !want[name] && !s.Ignored(name) {
			bad = append(bad, fmt.Sprintf("tensor %q: config.json gives no place for it", name))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	const most = 8
	if n := len(bad) - most; n > 0 {
		bad = append(bad[:most], fmt.Sprintf("and %d more", n))
	}
	return fault.Dataf("model: weights do not fit config.json:\n  %s", strings.Join(bad, "\n  "))
}
