// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "golang.org/x/sys/cpu"

// detect is the levels beside Portable, the fastest last. The flags include
// that the system saves the registers.
//
// Processors of AMD multiply bf16 in pairs twice as fast as float32, those of
// Intel half as fast (measured on Xeons with AMX): there the level must be asked for.
// It is the vendor that decides and not a measurement, so that the same machine
// always computes the same bits.
func detect() (has []Level) {
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasFMA || !x.HasF16C {
		return nil
	}
	has = append(has, AVX2)
	if !hasAVX512() {
		return has
	}
	switch {
	case !x.HasAVX512BF16 || !x.HasAVX512VBMI: // all but Cooper Lake have both or none
		has = append(has, AVX512)
	case vendor() == "AuthenticAMD":
		has = append(has, AVX512, AVX512BF16)
	default:
		has = append(has, AVX512BF16, AVX512)
	}
	if amxFound().ok {
		has = append(has, AMX)
	}
	return has
}

// hasAVX512 says whether the processor has what AVX512 stands for.
func hasAVX512() bool {
	x := &cpu.X86
	return x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL
}

// vendor is who made the processor, in 12 letters.
func vendor() string {
	_, b, c, d := cpuid(0, 0)
	var s []byte
	for _, r := range []uint32{b, d, c} {
		s = append(s, byte(r), byte(r>>8), byte(r>>16), byte(r>>24))
	}
	return string(s)
}

// cpuid is registers EAX to EDX of a leaf of CPUID.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

// xgetbv is the lower half of XCR0: the registers that the system saves.
func xgetbv() uint32
