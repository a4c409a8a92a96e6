// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"slices"
)

// Runs enumerates a box of the given shape that lies at offset at in a
// row-major array of shape a, and at offset bt in one of shape b, as runs of
// elements that are contiguous in both: f gets the index of a run in a, in b,
// and its length. The last run that f fails on ends it. All slices have the
// same length, and the box lies within both arrays.
func Runs(shape, a, at, b, bt []int, f func(i, j, n int) error) error {
	if slices.Contains(shape, 0) {
		return nil
	}
	// The run covers the trailing dimensions in which the box is as wide as
	// both arrays, and the one before them.
	d, run := len(shape), 1
	for d > 0 {
		d--
		run *= shape[d]
		if shape[d] != a[d] || shape[d] != b[d] {
			break
		}
	}
	c := make([]int, d) // index in the leading dimensions of the box
	for {
		i, j := 0, 0
		for k := range shape {
			ck := 0
			if k < d {
				ck = c[k]
			}
			i = i*a[k] + at[k] + ck
			j = j*b[k] + bt[k] + ck
		}
		if err := f(i, j, run); err != nil {
			return err
		}
		k := d - 1
		for ; k >= 0; k-- {
			if c[k]++; c[k] < shape[k] {
				break
			}
			c[k] = 0
		}
		if k < 0 {
			return nil
		}
	}
}

// Box sets dst, row-major of the given shape, to the part of a tensor of floats
// that begins at offset.
func (s *Set) Box(name string, offset, shape []int, dst []float32) error {
	t, err := s.part(name, 0, 0)
	if err != nil {
		return err
	}
	n := 1
	ok := len(offset) == len(t.Shape) && len(shape) == len(t.Shape)
	for i := 0; ok && i < len(shape); i++ {
		ok = offset[i] >= 0 && shape[i] >= 0 && offset[i] <= t.Shape[i]-shape[i]
		n *= shape[i]
	}
	if !ok || len(dst) != n {
		return fmt.Errorf("weights: tensor %q of shape %d: "+
			"reading a box of shape %d at %d into %d elements", name, t.Shape, shape, offset, len(dst))
	}
	return Runs(shape, t.Shape, offset, shape, make([]int, len(shape)), func(i, j, n int) error {
		return s.Read(name, i, i+n, dst[j:j+n])
	})
}
