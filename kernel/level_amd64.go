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
	if !x.HasAVX2 || !x.HasFMA {
		return nil
	}
	has = append(has, AVX2)
	if !x.HasAVX512F || !x.HasAVX512DQ || !x.HasAVX512BW || !x.HasAVX512VL {
		return has
	}
	switch {
	case !x.HasAVX512BF16 || !x.HasAVX512VBMI: // all but Cooper Lake have both or none
		return append(has, AVX512)
	case vendor() == "AuthenticAMD":
		return append(has, AVX512, AVX512BF16)
	}
	return append(has, AVX512BF16, AVX512)
}

// vendor is who made the processor, in 12 letters.
func vendor() string {
	b, c, d := cpuVendor()
	var s []byte
	for _, r := range []uint32{b, d, c} {
		s = append(s, byte(r), byte(r>>8), byte(r>>16), byte(r>>24))
	}
	return string(s)
}

// cpuVendor is registers EBX, ECX and EDX of CPUID leaf 0.
func cpuVendor() (b, c, d uint32)
