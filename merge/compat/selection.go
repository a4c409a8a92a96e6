// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

import "math/bits"

// element is a number and where it is in a tensor.
type element struct {
	value float32
	index int
}

// before says that e is sorted before f: the larger first.
func (e element) before(f element) bool { return e.value > f.value }

// largest are the indices of the k largest numbers. Of equal ones it takes those that
// torch.topk takes, which selects with nth_element and partial_sort of the GNU C++
// library.
func largest(x []float32, k int) []int {
	if k <= 0 {
		return nil
	}
	list := make([]element, len(x))
	for i, v := range x {
		list[i] = element{v, i}
	}
	if k*64 <= len(list) {
		heapSelect(list, k)
	} else {
		nthElement(list, k-1)
	}
	out := make([]int, k)
	for i := range out {
		out[i] = list[i].index
	}
	return out
}

// nthElement moves the n+1 first elements in sorted order to the front (introspective
// selection, Musser 1997, with the median of three as pivot).
func nthElement(list []element, n int) {
	lo, hi := 0, len(list)
	for depth := 2 * (bits.Len(uint(len(list))) - 1); hi-lo > 3; depth-- {
		if depth == 0 {
			heapSelect(list[lo:hi], n+1-lo)
			list[lo], list[n] = list[n], list[lo]
			return
		}
		cut := lo + partition(list[lo:hi])
		if cut <= n {
			lo = cut
		} else {
			hi = cut
		}
	}
	insertionSort(list[lo:hi])
}

// partition moves a median of three to the front and returns where the elements begin
// that are not before it.
func partition(list []element) int {
	medianToFront(list, 1, len(list)/2, len(list)-1)
	pivot := list[0]
	lo, hi := 1, len(list)
	for {
		for list[lo].before(pivot) {
			lo++
		}
		hi--
		for pivot.before(list[hi]) {
			hi--
		}
		if lo >= hi {
			return lo
		}
		list[lo], list[hi] = list[hi], list[lo]
		lo++
	}
}

// medianToFront swaps the median of elements a, b and c with the first.
func medianToFront(list []element, a, b, c int) {
	if !list[a].before(list[b]) {
		a, b = b, a
	}
	median := b
	switch {
	case list[b].before(list[c]):
	case list[a].before(list[c]):
		median = c
	default:
		median = a
	}
	list[0], list[median] = list[median], list[0]
}

// insertionSort sorts a short list and keeps the order of equal elements.
func insertionSort(list []element) {
	for i := 1; i < len(list); i++ {
		for k := i; k > 0 && list[k].before(list[k-1]); k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
}

// heapSelect moves the k first elements in sorted order to the front, as a heap whose
// last one in that order is its root.
func heapSelect(list []element, k int) {
	for parent := (k - 2) / 2; parent >= 0 && k > 1; parent-- {
		sift(list[:k], parent, list[parent])
	}
	for i := k; i < len(list); i++ {
		if e := list[i]; e.before(list[0]) {
			list[i] = list[0]
			sift(list[:k], 0, e)
		}
	}
}

// sift lets the hole at top sink to a leaf, and value rise from there.
func sift(heap []element, top int, value element) {
	hole := top
	for child := 2*hole + 2; child <= len(heap); child = 2*hole + 2 {
		if child == len(heap) || heap[child].before(heap[child-1]) {
			child--
		}
		heap[hole] = heap[child]
		hole = child
	}
	for parent := (hole - 1) / 2; hole > top && heap[parent].before(value); parent = (hole - 1) / 2 {
		heap[hole] = heap[parent]
		hole = parent
	}
	heap[hole] = value
}
