// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"cmp"
	"slices"
	"testing"
)

// TestLargest compares with the indices, sorted and hashed, that torch.topk of torch
// 2.15 takes of numbers of which many are equal.
func TestLargest(t *testing.T) {
	for _, c := range []struct {
		n, m, kind, k int
		want          uint32
	}{
		{3, 2, 0, 2, 1},
		{500, 13, 0, 5, 7677184},
		{500, 13, 0, 7, 3082807660},
		{500, 13, 0, 8, 1870932231},
		{500, 13, 0, 250, 2751903954},
		{2000, 7, 0, 31, 1151397663},
		{2000, 7, 0, 700, 2495869197},
		{2000, 7, 0, 1999, 2899111847},
		{4096, 1, 1, 2048, 905446400},
		{4096, 8, 1, 60, 2819314718},
		{4096, 8, 1, 3000, 1278419260},
		{20000, 3, 1, 10000, 370613385},
	} {
		x := make([]float32, c.n)
		for i := range x {
			x[i] = float32((i*i*7919 + i*31) % c.m)
			if c.kind == 1 {
				x[i] = float32(min(i, c.n-1-i) / c.m)
			}
		}
		got := largest(x, c.k)
		slices.Sort(got)
		var h uint32
		for _, i := range got {
			h = h*31 + uint32(i)
		}
		if h != c.want {
			t.Errorf("%d of %d, kind %d: got hash %d, want %d", c.k, c.n, c.kind, h, c.want)
		}
	}
}

// FuzzLargest checks that what largest takes is as large as the front of a sorted
// list, and taken once.
func FuzzLargest(f *testing.F) {
	f.Add([]byte{1, 2, 3, 3, 2, 1, 9}, 3)
	f.Add([]byte{5, 5, 5, 5, 5, 5}, 1)
	f.Add(make([]byte, 300), 2)
	f.Fuzz(func(t *testing.T, b []byte, k int) {
		x := make([]float32, len(b))
		for i, v := range b {
			x[i] = float32(v)
		}
		k = clampInt(k, 0, len(x))
		got := largest(x, k)
		var values []float32
		for _, i := range got {
			values = append(values, x[i])
		}
		down := func(a, b float32) int { return cmp.Compare(b, a) }
		slices.SortFunc(values, down)
		slices.SortFunc(x, down)
		slices.Sort(got)
		if !slices.Equal(values, x[:k]) || len(slices.Compact(got)) != k {
			t.Errorf("got %v, want %v", values, x[:k])
		}
	})
}
