// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"cmp"
	"slices"
	"sync"
)

const (
	// gatherGap is the largest hole, in bytes, that is read rather than skipped.
	gatherGap = 4096
	// gatherWindow is how many bytes are read at a time.
	gatherWindow = 1 << 18
)

// gathering is the memory of [Set.gather], about 1 MiB.
type gathering struct {
	from   []spot
	window [gatherWindow]byte
}

// spot says that element i of a result is at byte at of a file.
type spot struct {
	at int64
	i  int32
}

var gatherings = sync.Pool{New: func() any { return &gathering{from: make([]spot, chunk)} }}

// gather sets dst to the elements from lo on of a tensor whose elements do not lie
// one after the other. They are read in the order of the file, near ones together.
func (s *Set) gather(t Tensor, stride []int, lo int, dst []byte) error {
	g := gatherings.Get().(*gathering)
	defer gatherings.Put(g)
	size := t.DType.Size()
	for len(dst) > 0 {
		n := min(chunk, len(dst)/size)
		g.locate(t, stride, lo, n)
		if err := s.fetch(t, g, n, dst[:n*size]); err != nil {
			return err
		}
		lo, dst = lo+n, dst[n*size:]
	}
	return nil
}

// locate finds n elements from lo on, in the order of the file.
func (g *gathering) locate(t Tensor, stride []int, lo, n int) {
	size := int64(t.DType.Size())
	at := make([]int, len(t.Shape)) // index in each dimension
	for d, i := len(at)-1, lo; d >= 0; d-- {
		at[d], i = i%t.Shape[d], i/t.Shape[d]
	}
	var off int64
	for d, i := range at {
		off += int64(i) * int64(stride[d])
	}
	for i := range n {
		g.from[i] = spot{t.Offset + off*size, int32(i)}
		for d := len(at) - 1; d >= 0; d-- {
			off += int64(stride[d])
			if at[d]++; at[d] < t.Shape[d] {
				break
			}
			off -= int64(at[d]) * int64(stride[d])
			at[d] = 0
		}
	}
	slices.SortFunc(g.from[:n], func(a, b spot) int { return cmp.Compare(a.at, b.at) })
}

// fetch reads what locate has found.
func (s *Set) fetch(t Tensor, g *gathering, n int, dst []byte) error {
	size := int64(t.DType.Size())
	for from := g.from[:n]; len(from) > 0; {
		first, k := from[0].at, 1
		end := first + size
		for k < len(from) && from[k].at <= end+gatherGap && from[k].at+size-first <= gatherWindow {
			end = from[k].at + size
			k++
		}
		w := g.window[:end-first]
		if err := s.bytes(t, first, w); err != nil {
			return err
		}
		for _, f := range from[:k] {
			copy(dst[int64(f.i)*size:][:size], w[f.at-first:])
		}
		from = from[k:]
	}
	return nil
}
