// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

// isaAVX512 has 30 vectors; Z30 and Z31 are scratch.
type isaAVX512 struct{ amd64 }

func (isaAVX512) level() string   { return "AVX512" }
func (isaAVX512) parts() int      { return 1 }
func (isaAVX512) vectors() int    { return 30 }
func (isaAVX512) hoists() bool    { return true }
func (isaAVX512) scratch() [2]int { return [2]int{30, 31} }

func (s isaAVX512) lanewise(t *text, o code, d int, a []int) {
	if o != opKeep {
		s.amd64.lanewise(t, o, d, a)
		return
	}
	// 22: not less or equal, NaN included, quiet.
	t.p("\tVCMPPS $22, Z%d, Z%d, K1\n\tVMULPS.Z Z%d, Z%d, K1, Z%d", a[3], a[2], a[1], a[0], d)
}

func (s isaAVX512) across(t *text, o code, d []int, a [][]int) {
	x := a[0][0]
	if o == opSquares {
		t.p("\tVCVTPS2PD Y%d, Z30\n\tVFMADD231PD Z30, Z30, Z%d", x, a[1][0])
		t.p("\tVEXTRACTF64X4 $1, Z%d, Y31\n\tVCVTPS2PD Y31, Z31\n\tVFMADD231PD Z31, Z31, Z%d", x, a[2][0])
		return
	}
	// Every lane is folded with the lane 8 away, then 4, 2, 1.
	for _, swap := range []string{"VSHUFF64X2 $0x4e, Z%[1]d, Z%[1]d", "VSHUFF64X2 $0xb1, Z%[1]d, Z%[1]d", "VPERMILPS $0x4e, Z%[1]d", "VPERMILPS $0xb1, Z%[1]d"} {
		t.p("\t"+swap+", Z31\n\t%[2]s Z31, Z%[1]d, Z%[3]d", x, tree(o), d[0])
		x = d[0]
	}
}

// tree is the instruction that folds lanes.
func tree(o code) string {
	if o == opSum {
		return x86[opAdd]
	}
	return x86[opMax]
}
