// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"pleach/half"
	"pleach/weights"
)

// Box is a part of a whole tensor of optimizer state: a source with the shape
// of the part, and where it lies. The type is F32, BF16 or F16, which float32
// holds exactly.
type Box struct {
	weights.Source       // Name is the whole tensor's
	Offset         []int // in the whole tensor; nil is the origin
	Whole          []int // shape of the whole tensor; nil is that of the part
}

// place is a box in rank-*.json.
type place struct {
	Key    string `json:"key"`
	Name   string `json:"name"`
	Offset []int  `json:"offset"`
	Whole  []int  `json:"whole"`

	shape []int
	dtype half.DType
}

type places struct {
	Boxes []place `json:"boxes"`
}

func (b Box) place() place {
	p := place{Name: b.Name, Offset: b.Offset, Whole: b.Whole, shape: b.Shape, dtype: b.DType}
	if p.Whole == nil {
		p.Whole = slices.Clone(b.Shape)
	}
	if p.Offset == nil {
		p.Offset = make([]int, len(p.Whole))
	}
	if p.Whole == nil { // a scalar; null is not a list
		p.Whole = []int{}
	}
	p.Key = p.key()
	return p
}

func (p place) key() string {
	if slices.Equal(p.shape, p.Whole) {
		return p.Name
	}
	var s strings.Builder
	for i := range min(len(p.shape), len(p.Offset)) {
		fmt.Fprintf(&s, ",%d:%d", p.Offset[i], p.Offset[i]+p.shape[i])
	}
	return p.Name + "[" + strings.TrimPrefix(s.String(), ",") + "]"
}

// check reports a box that does not lie within its tensor.
func (p place) check() error {
	ok := len(p.Offset) == len(p.Whole) && len(p.shape) == len(p.Whole)
	for i := 0; ok && i < len(p.Whole); i++ {
		ok = p.Offset[i] >= 0 && p.shape[i] >= 0 && p.Whole[i] >= p.shape[i] &&
			p.Offset[i] <= p.Whole[i]-p.shape[i]
	}
	switch {
	case ok && !countable(p.Whole):
		return fmt.Errorf("tensor %q: shape %d: too large", p.Name, p.Whole)
	case !ok:
		return fmt.Errorf("tensor %q of shape %d: the box of shape %d at %d is not in it",
			p.Name, p.Whole, p.shape, p.Offset)
	case !slices.Contains([]half.DType{half.F32, half.BF16, half.F16}, p.dtype):
		return fmt.Errorf("tensor %q: type: got %v, want f32, bf16 or f16", p.Name, p.dtype)
	case p.Key != p.key():
		return fmt.Errorf("tensor %q: key: got %q, want %q", p.Name, p.Key, p.key())
	}
	return nil
}

// overlap is the part of a and b that is in both, or false.
func overlap(at, shape, bt, bshape []int) (off, size []int, ok bool) {
	off, size = make([]int, len(at)), make([]int, len(at))
	for i := range at {
		lo, hi := max(at[i], bt[i]), min(at[i]+shape[i], bt[i]+bshape[i])
		if lo >= hi {
			return nil, nil, false
		}
		off[i], size[i] = lo, hi-lo
	}
	return off, size, true
}

// countable reports whether the number of elements is an int.
func countable(shape []int) bool {
	n := 1
	for _, d := range shape {
		if d > 0 && n > math.MaxInt/d {
			return false
		}
		n *= max(d, 1)
	}
	return true
}

func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// table is the boxes of each whole tensor, and the names in order of
// appearance.
type table struct {
	names []string
	boxes map[string][]place
}

// tabulate checks that the boxes of each tensor agree and cover it once.
func tabulate(ps []place) (table, error) {
	t := table{boxes: map[string][]place{}}
	for _, p := range ps {
		if err := p.check(); err != nil {
			return t, err
		}
		have := t.boxes[p.Name]
		if len(have) == 0 {
			t.names = append(t.names, p.Name)
		}
		for _, q := range have {
			if !slices.Equal(p.Whole, q.Whole) || p.dtype != q.dtype {
				return t, fmt.Errorf("tensor %q: one box says %v %d, another %v %d",
					p.Name, q.dtype, q.Whole, p.dtype, p.Whole)
			}
			if _, _, both := overlap(p.Offset, p.shape, q.Offset, q.shape); both || p.Key == q.Key {
				return t, fmt.Errorf("tensor %q: the boxes of shape %d at %d and of shape %d at %d overlap",
					p.Name, q.shape, q.Offset, p.shape, p.Offset)
			}
		}
		t.boxes[p.Name] = append(have, p)
	}
	for _, name := range t.names {
		got := 0
		for _, p := range t.boxes[name] {
			got += volume(p.shape)
		}
		if want := volume(t.boxes[name][0].Whole); got != want {
			return t, fmt.Errorf("tensor %q: its boxes have %d elements, want %d", name, got, want)
		}
	}
	return t, nil
}

// add reads a rank-*.json.
func (ps *places) add(b []byte) error {
	var more places
	if err := json.Unmarshal(b, &more); err != nil {
		return fmt.Errorf("not a list of boxes: %w", err)
	}
	ps.Boxes = append(ps.Boxes, more.Boxes...)
	return nil
}

// locate looks up shapes and types; every tensor has one place.
func (ps *places) locate(set *weights.Set) error {
	for i := range ps.Boxes {
		p := &ps.Boxes[i]
		t, ok := set.Lookup(p.Key)
		if !ok {
			return fmt.Errorf("tensor %q: its box %q is missing", p.Name, p.Key)
		}
		p.shape, p.dtype = t.Shape, t.DType
	}
	if got, want := len(ps.Boxes), len(set.Tensors()); got != want {
		return fmt.Errorf("got places for %d boxes, want %d", got, want)
	}
	return nil
}
