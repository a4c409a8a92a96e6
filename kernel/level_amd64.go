// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "golang.org/x/sys/cpu"

// detect is the levels beside Portable, the fastest last. The flags include
// that the system saves the registers.
func detect() (has []Level) {
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasFMA {
		return nil
	}
	has = append(has, AVX2)
	if x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL {
		has = append(has, AVX512)
	}
	return has
}
