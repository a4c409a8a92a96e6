// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package data

import (
	"encoding/json"
	"math/bits"
)

// Lengths is a histogram of lengths ≥ 0. Those below 64 are counted one by one,
// longer ones in 32 steps for each power of two, so that a quantile is good to 1 in
// 64. The zero value is empty.
type Lengths struct {
	Count, Sum, Longest int64
	bins                [fineBins]int64
}

const (
	fineBits = 5
	exact    = 2 << fineBits
	fineBins = exact + (62-fineBits)<<fineBits
)

// Add counts a length.
func (h *Lengths) Add(n int64) {
	h.Count++
	h.Sum += n
	h.Longest = max(h.Longest, n)
	h.bins[binOf(n)]++
}

func binOf(n int64) int {
	if n < exact {
		return int(n)
	}
	e := bits.Len64(uint64(n)) - 1 - fineBits // n>>e has fineBits+1 bits
	return e<<fineBits + int(n>>e)
}

// binFrom is the least length of a bin.
func binFrom(i int) int64 {
	if i < exact {
		return int64(i)
	}
	e := i>>fineBits - 1
	return int64(i-e<<fineBits) << e
}

func (h *Lengths) merge(o *Lengths) {
	h.Count += o.Count
	h.Sum += o.Sum
	h.Longest = max(h.Longest, o.Longest)
	for i, n := range o.bins {
		h.bins[i] += n
	}
}

// Mean is the mean length, 0 of none.
func (h *Lengths) Mean() float64 {
	if h.Count == 0 {
		return 0
	}
	return float64(h.Sum) / float64(h.Count)
}

// Quantile is the length that a part of all do not exceed, 0.5 for the median; the
// middle of its bin.
func (h *Lengths) Quantile(part float64) int64 {
	seen := int64(0)
	for i, n := range h.bins {
		if seen += n; n > 0 && float64(seen) >= part*float64(h.Count) {
			return min((binFrom(i)+binFrom(i+1)-1)/2, h.Longest)
		}
	}
	return 0
}

// A Bar is how many lengths are in From … To.
type Bar struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Count int64 `json:"count"`
}

// Bars is the histogram in powers of two, from the shortest length to the longest.
func (h *Lengths) Bars() []Bar {
	var bars []Bar
	for i, n := range h.bins {
		if n == 0 {
			continue
		}
		e := bits.Len64(uint64(binFrom(i))) // 2^(e−1) ≤ n < 2^e
		for len(bars) == 0 || bars[len(bars)-1].To < binFrom(i) {
			at := e
			if len(bars) > 0 {
				at = bits.Len64(uint64(bars[len(bars)-1].To)) + 1
			}
			bars = append(bars, Bar{From: 1 << at >> 1, To: 1<<at - 1})
		}
		bars[len(bars)-1].Count += n
	}
	return bars
}

// MarshalJSON writes what the histogram is for.
func (h Lengths) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Mean    float64 `json:"mean"`
		Median  int64   `json:"median"`
		P90     int64   `json:"p90"`
		Longest int64   `json:"longest"`
		Bars    []Bar   `json:"histogram"`
	}{h.Mean(), h.Quantile(0.5), h.Quantile(0.9), h.Longest, h.Bars()})
}
