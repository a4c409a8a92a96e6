// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

import "pleach/kernel"

// window is which elements of a tensor are kept by magnitude: those in the middle of
// the ascending order, all places from bottom to n−top−1. So exactly n−top−bottom
// elements stay. Among equal magnitudes at either end the ones that come first in the
// tensor stay.
type window struct {
	rank        *ranking
	bottom, top int
	done        bool

	low, high       uint32 // magnitudes of the ends
	lowEnd, highEnd cut    // of the elements with them that stay
}

// newWindow is for n elements in chunks of a size. Some elements stay.
func newWindow(n, size, bottom, top int) *window {
	w := &window{rank: newRanking(n, size, bottom), bottom: bottom, top: top}
	if top > 0 {
		w.rank.add(n - top - 1)
	}
	return w
}

// startAt sets the first place that stays, before the first walk.
func (w *window) startAt(bottom int) {
	w.bottom = bottom
	w.rank.targets[0].place = bottom
}

// settle is [ranking.settle].
func (w *window) settle() (more bool) {
	if w.done {
		return false
	}
	if w.rank.settle() {
		return true
	}
	n := w.rank.n
	low := w.rank.targets[0]
	high := w.rank.targets[len(w.rank.targets)-1]
	w.low, w.high, w.done = low.key, largestKey, true
	switch {
	case w.top == 0:
		w.lowEnd = low.cut(low.less + low.equal - w.bottom)
		w.highEnd = cut{Chunks(n, w.rank.size), 0}
	case low.key == high.key: // all that stay are equal
		w.high = high.key
		w.lowEnd = low.cut(n - w.top - w.bottom)
		w.highEnd = w.lowEnd
	default:
		w.high = high.key
		w.lowEnd = low.cut(low.less + low.equal - w.bottom)
		w.highEnd = high.cut(n - w.top - high.less)
	}
	w.rank = nil
	return false
}

// view is a window as it is in one chunk: of elements with the magnitudes of the ends
// those before an index stay.
type view struct {
	low, high       uint32
	lowEnd, highEnd int
}

// view is of a chunk of n elements, of which at gives one.
func (w *window) view(chunk, n int, at func(i int) float32) view {
	return view{
		low: w.low, high: w.high,
		lowEnd: w.lowEnd.in(chunk, n, w.low, at), highEnd: w.highEnd.in(chunk, n, w.high, at),
	}
}

// in is the index in a chunk of n elements before which elements with a key count.
func (c cut) in(chunk, n int, k uint32, at func(i int) float32) int {
	switch {
	case chunk < c.chunk:
		return n
	case chunk > c.chunk:
		return 0
	}
	i := 0
	for left := c.count; left > 0; i++ {
		if key(at(i)) == k {
			left--
		}
	}
	return i
}

// keep sets to 0 what does not stay of d, which begins with element lo of the chunk.
func (v view) keep(l kernel.Level, d []float32, lo int) {
	low, high := min(max(v.lowEnd-lo, 0), len(d)), min(max(v.highEnd-lo, 0), len(d))
	for from := 0; from < len(d); {
		to, first, end := len(d), v.low+1, v.high
		if from < low {
			to, first = low, v.low
		}
		if from < high {
			to, end = min(to, high), v.high+1
		}
		l.KeepKeys(d[from:to], d[from:to], first, end)
		from = to
	}
}
