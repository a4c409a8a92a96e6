// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

//go:generate go run ./gen

import (
	"slices"
	"strings"

	"pleach/internal/fault"
)

// Level is a set of kernels: its methods compute the same formulas with other
// instructions. Within a level the bits of a result do not depend on the
// machine; the levels in assembly agree with each other to the bit, and with
// [Portable] within rounding, since they fuse products into sums.
type Level uint8

// The levels. AVX2 and AVX512 are amd64's, NEON is arm64's.
const (
	Portable   Level = iota + 1 // plain Go
	AVX2                        // AVX2, FMA and F16C
	AVX512                      // AVX-512 F, DQ, BW and VL
	AVX512BF16                  // AVX512 and VBMI, and products of bf16 in pairs
	AMX                         // AVX512BF16, and products of bf16 on tiles
	NEON
	levels // those that a user may name

	// AMXPlain is AMX with tiles in plain Go: the same bits, slowly, for tests on a
	// processor that has AVX512 but no AMX. It is never among Levels.
	AMXPlain = levels

	// How the others multiply bf16: see multiplies.
	pairs      = levels + 1
	onTiles    = levels + 2
	plainTiles = levels + 3
	allLevels  = levels + 4
)

var levelNames = [levels + 1]string{
	Portable: "portable", AVX2: "avx2", AVX512: "avx512", AVX512BF16: "avx512bf16", AMX: "amx", NEON: "neon",
	AMXPlain: "amx in plain Go",
}

func (l Level) String() string { return levelNames[l] }

// Levels are those that this processor and its system have, the fastest last.
func Levels() []Level { return append([]Level{Portable}, detect()...) }

// Best is the fastest level of this processor.
func Best() Level { h := Levels(); return h[len(h)-1] }

// ParseLevel is the level of a name. One that this processor lacks is an error
// that says which it has.
func ParseLevel(name string) (Level, error) {
	i := slices.Index(levelNames[:levels], name)
	if i < int(Portable) {
		return 0, fault.Configf("kernel: level: got %q, want %s", name, strings.Join(levelNames[Portable:levels], ", "))
	}
	if l, has := Level(i), Levels(); slices.Contains(has, l) {
		return l, nil
	}
	why := ""
	if d := Denied(); d != "" && Level(i) == AMX {
		why = ": " + d
	}
	return 0, fault.Machinef("kernel: level: this processor has no %s, it has %v%s", name, Levels(), why)
}
