// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"
)

// BenchmarkFew8 is decoding: few rows by weights of int8, in a cache (256 KiB) and in
// memory (64 MiB), on one core and on two. Beside it, as rows0, the same weights are
// only read, as words that are added up.
func BenchmarkFew8(b *testing.B) {
	for _, l := range Levels()[1:] {
		for _, size := range []int{256, 64 << 10} {
			for _, cores := range []int{1, 2} {
				for _, m := range []int{0, 1, 4} {
					name := fmt.Sprintf("%v/%dKiB/cores%d/rows%d", l, size, cores, m)
					b.Run(name, func(b *testing.B) { benchmarkFew8(b, l, m, 1024, size, cores) })
				}
			}
		}
	}
}

func benchmarkFew8(b *testing.B, l Level, m, k, rows, cores int) {
	w, x := make([]int8, rows*k), make([]uint16, m*k)
	for i := range w {
		w[i] = int8(i%255 - 127)
	}
	for i := range x {
		x[i] = 0x3f80
	}
	weights := Int8{w, rows, k}
	var c, s [2][]float32
	for i := range c {
		c[i], s[i] = make([]float32, m*rows), make([]float32, l.GemmScratch16())
	}
	var sums [2]uint64
	const high = 128 // rows of a call
	b.SetBytes(int64(len(w)))
	for b.Loop() {
		var all sync.WaitGroup
		for i := range cores {
			all.Go(func() {
				n := rows / cores
				for j := i * n; j < (i+1)*n; j += high {
					if m == 0 {
						sums[i] += sumWords(w[j*k : (j+high)*k])
						continue
					}
					l.GemmNT8(c[i], x, weights, m, j, high, j+high, high, k, s[i])
				}
			})
		}
		all.Wait()
	}
}

// sumWords adds the words of q.
func sumWords(q []int8) (s uint64) {
	x := unsafe.Slice((*uint64)(unsafe.Pointer(&q[0])), len(q)/8)
	var sums [4]uint64
	for ; len(x) >= 8; x = x[8:] {
		sums[0] += x[0] + x[4]
		sums[1] += x[1] + x[5]
		sums[2] += x[2] + x[6]
		sums[3] += x[3] + x[7]
	}
	return sums[0] + sums[1] + sums[2] + sums[3]
}
