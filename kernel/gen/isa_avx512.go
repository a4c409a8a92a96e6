// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

// isaAVX512 has 30 vectors; Z30 and Z31 are scratch.
type isaAVX512 struct{ amd64 }

func (isaAVX512) level() string   { return "AVX512" }
func (isaAVX512) parts() int      { return 1 }
func (isaAVX512) vectors() int    { return 30 }
func (isaAVX512) hoists() bool    { return true }
func (isaAVX512) exponents() bool { return true }
func (isaAVX512) scratch() [2]int { return [2]int{30, 31} }

func (s isaAVX512) lanewise(t *text, o code, d int, a []int) {
	switch o {
	case opKeep: // 22: not less or equal, NaN included, quiet.
		t.p("\tVCMPPS $22, Z%d, Z%d, K1\n\tVSCALEFPS.Z Z%d, Z%d, K1, Z%d", a[3], a[2], a[1], a[0], d)
	case opWithin: // 18: less or equal, quiet
		t.p("\tVCMPPS $18, Z%d, Z%d, K1\n\tVMOVAPS.Z Z%d, K1, Z%d", a[2], a[1], a[0], d)
	case opIfNaN: // 3: unordered
		t.p("\tVCMPPS $3, Z%d, Z%d, K1\n\tVBLENDMPS Z%d, Z%d, K1, Z%d", a[2], a[2], a[0], a[1], d)
	default:
		s.amd64.lanewise(t, o, d, a)
	}
}

func (s isaAVX512) loadWords(t *text, o code, d []int, p string, off int) {
	s.memory(t, o, d[0], p, off)
}

func (s isaAVX512) storeHalves(t *text, a []int, p string, off int) {
	t.p("\tVPSRLD $16, Z%d, Z31\n\tVPMOVDW Z31, %d(%s)", a[0], off, p)
}

func (s isaAVX512) across(t *text, o code, d []int, a [][]int) {
	x := a[0][0]
	if o == opSquares {
		t.p("\tVCVTPS2PD Y%d, Z30\n\tVFMADD231PD Z30, Z30, Z%d", x, a[1][0])
		t.p("\tVEXTRACTF64X4 $1, Z%d, Y31\n\tVCVTPS2PD Y31, Z31\n\tVFMADD231PD Z31, Z31, Z%d", x, a[2][0])
		return
	}
	t.p("\tVEXTRACTF64X4 $1, Z%d, Y31\n\t%s Y31, Y%d, Y%d", x, tree(o), x, d[0])
	t.p("\tVEXTRACTF32X4 $1, Y%d, X31", d[0])
	foldX(t, o, d[0], 31)
}

// foldX folds the 4 lanes of X registers d and u into lane 0 of d, on the way
// through u.
func foldX(t *text, o code, d, u int) {
	t.p("\t%[1]s X%[3]d, X%[2]d, X%[2]d\n\tVPERMILPS $0x4e, X%[2]d, X%[3]d", tree(o), d, u)
	t.p("\t%[1]s X%[3]d, X%[2]d, X%[2]d\n\tVPERMILPS $0xb1, X%[2]d, X%[3]d", tree(o), d, u)
	t.p("\t%[1]s X%[3]d, X%[2]d, X%[2]d", tree(o), d, u)
}

// tree is the instruction that folds lanes.
func tree(o code) string {
	if o == opSum {
		return x86[opAdd]
	}
	return x86[opMax]
}
