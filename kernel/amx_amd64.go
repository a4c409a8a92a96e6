// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/cpu"
)

// amxAnswer is whether AMX may be used, and why not where the processor has it.
type amxAnswer struct {
	ok     bool
	denied string
}

// amxFound asks once for the process: the permission that the system gives covers
// all threads, those to come as well.
var amxFound = sync.OnceValue(func() amxAnswer {
	switch {
	case !hasAVX512() || !cpu.X86.HasAVX512BF16 || !cpu.X86.HasAVX512VBMI || !amxPresent():
		return amxAnswer{}
	case !amxSaved():
		return amxAnswer{denied: "the system does not save its registers"}
	case !amxShaped():
		return amxAnswer{denied: "its tiles are not 8 of 16 rows of 64 bytes"}
	}
	if err := amxPermit(); err != nil {
		return amxAnswer{denied: fmt.Sprintf("the system refuses its registers: %v", err)}
	}
	if why := amxCheck(AMX); why != "" {
		return amxAnswer{denied: why}
	}
	return amxAnswer{ok: true}
})

// Denied is why AMX is not among the Levels of a processor that has it, "" if it is
// or the processor has none: something to tell a user once.
func Denied() string {
	if why := amxFound().denied; why != "" {
		return "AMX is not used: " + why
	}
	return ""
}

// amxPresent: tiles, and products of bf16 on them. Intel, Software Developer's Manual,
// volume 2, CPUID, leaf 7.
func amxPresent() bool {
	const bf16, tile = 1 << 22, 1 << 24
	if most, _, _, _ := cpuid(0, 0); most < 0x1d {
		return false
	}
	_, _, _, d := cpuid(7, 0)
	return d&bf16 != 0 && d&tile != 0
}

// amxSaved: the system saves what configures tiles, and tiles. Volume 1, section
// 13.3.
func amxSaved() bool {
	const state = 1<<17 | 1<<18
	return xgetbv()&state == state
}

// amxShaped: palette 1 is what kernels take it for. Leaf 1Dh.
func amxShaped() bool {
	a, b, c, _ := cpuid(0x1d, 1)
	return a == 1024<<16|8192 && b == 8<<16|64 && c&0xffff == 16
}

// amxCheck compares products with those of plain Go: small ones with parts of tiles,
// with many and with few rows. It says what is wrong.
func amxCheck(l Level) string {
	const m, few, n, k = 70, 20, 83, 75
	a, b := make([]uint16, m*k), make([]uint16, k*n)
	for i := range a { // numbers from 1/128 to 2 and their negatives: their sums are rounded
		a[i] = uint16(0x3c00 + i*37%1024 + i*11%2<<15)
	}
	for i := range b {
		b[i] = uint16(0x3c00 + i*59%1024 + i*7%3&1<<15)
	}
	var results [2][]float32
	for i, l := range []Level{l, AMXPlain} {
		c, scratch := make([]float32, (m+few)*n), make([]float32, l.GemmScratch16())
		l.GemmNN16(c, a, b, m, n, k, n, k, n, false, scratch)
		l.GemmNT16(c[m*n:], a, b, few, n, k, n, k, k, false, scratch)
		results[i] = c
	}
	for i, want := range results[1] {
		if got := results[0][i]; math.Float32bits(got) != math.Float32bits(want) {
			return fmt.Sprintf("a product has an element of %v instead of %v", got, want)
		}
	}
	return ""
}
