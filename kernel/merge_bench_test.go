// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"testing"

	"pleach/internal/rng"
)

// BenchmarkMerge measures the kernels of merging on chunks that fit the second cache:
// ns per element, and bytes that a call must move.
func BenchmarkMerge(b *testing.B) {
	for _, l := range Levels() {
		for _, c := range mergeRows(l) {
			b.Run(l.String()+"/"+c.name, func(b *testing.B) { measure(b, c) })
		}
	}
}

func mergeRows(l Level) []kernelCase {
	const n = 1 << 14
	f := newFixed(9)
	x, z, y, h := f.floats(n), f.floats(n), make([]float32, n), make([]uint16, n)
	v := Votes{f.floats(n), f.floats(n), f.floats(n), f.floats(n), f.floats(n)}
	keep, w, s := make([]uint64, n/64), make([]uint32, n), rng.New(1, "bench")
	open, bounds := make([]uint64, n/64), [256]uint16{}
	Portable.RandomBelow(keep, s, 0, n, 1<<23)
	Portable.Narrow16F(h, x)
	lo, hi := math.Float32bits(1), math.Float32bits(1.05)
	c := func(name string, bytes float64, call func()) kernelCase {
		return kernelCase{name: name, elems: n, flops: int(bytes * n), call: call}
	}
	return []kernelCase{
		c("Sub", 12, func() { l.Sub(y, x, z) }),
		c("AddScaled", 12, func() { l.AddScaled(y, x, 0x1p-30) }),
		c("Scale", 8, func() { l.Scale(y, x, 0.3) }),
		c("Divide", 8, func() { l.Divide(y, x, 0.3) }),
		c("KeepKeys", 8, func() { l.KeepKeys(y, x, lo, hi) }),
		c("KeepBits", 8.125, func() { l.KeepBits(y, x, keep) }),
		c("Vote", 44, func() { l.Vote(v, x, 0x1p-30) }),
		c("Elect", 16, func() { l.Elect(y, v, false) }),
		c("ElectMean", 24, func() { l.Elect(y, v, true) }),
		c("Dot64", 8, func() { l.Dot64(x, z) }),
		c("SumAbs64", 4, func() { l.SumAbs64(x) }),
		c("SumAbs64Bits", 4.125, func() { l.SumAbs64Bits(x, keep) }),
		c("Largest", 4, func() { l.Largest(x) }),
		c("Collect", 4, func() { l.Collect(w, x, lo, hi) }),
		c("CollectHalf", 4, func() { l.Collect(w, x, lo, magnitude) }),
		c("RandomWords", 4, func() { l.RandomWords(w, s, 0) }),
		c("RandomBelow", 0.125, func() { l.RandomBelow(keep, s, 0, n, 1<<23) }),
		c("WordsBelow", 4.125, func() { l.WordsBelow(keep, w, 1<<23) }),
		c("Bucket", 12, func() { l.Bucket(w, x, lo) }),
		c("Sieve", 4.25, func() { l.Sieve(keep, open, w, &bounds) }),
		c("CountBelow", 4, func() { l.CountBelow(x, lo) }),
		c("Widen16F", 6, func() { l.Widen16F(y, h) }),
		c("Narrow16F", 6, func() { l.Narrow16F(h, x) }),
	}
}
