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
	case opAbove, opAtLeast, opEqual:
		t.p("\tVCMPPS $%d, Z%d, Z%d, K1\n\tVPMOVM2D K1, Z%d", compares[o], a[1], a[0], d)
	case opSelect:
		t.p("\tVPMOVD2M Z%d, K1\n\tVBLENDMPS Z%d, Z%d, K1, Z%d", a[2], a[0], a[1], d)
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

func (s isaAVX512) loadF16(t *text, d []int, p string, off int) {
	t.p("\tVCVTPH2PS %d(%s), Z%d", off, p, d[0])
}

func (s isaAVX512) storeF16(t *text, a []int, p string, off int) { // 0: to nearest even
	t.p("\tVCVTPS2PH $0, Z%d, %d(%s)", a[0], off, p)
}

func (s isaAVX512) mask(k *kern, d []int, p string, off int) {
	k.asm.p("\tKMOVW %d(%s), K1\n\tVPMOVM2D K1, Z%d", off, p, d[0])
}

func (s isaAVX512) negative(k *kern, a []int, p string, off int) {
	k.asm.p("\tVPMOVD2M Z%d, K1\n\tKMOVW K1, %d(%s)", a[0], off, p)
}

func (s isaAVX512) across(t *text, o code, d []int, a [][]int) {
	x := a[0][0]
	if o == opSquares || o == opProducts || o == opAdd64 {
		s.across64(t, o, a)
		return
	}
	t.p("\tVEXTRACTF64X4 $1, Z%d, Y31\n\t%s Y31, Y%d, Y%d", x, tree(o), x, d[0])
	t.p("\tVEXTRACTF32X4 $1, Y%d, X31", d[0])
	foldX(t, o, d[0], 31)
}

// across64 adds to 16 float64: the lower half of a vector goes to the first 8.
func (s isaAVX512) across64(t *text, o code, a [][]int) {
	for i, sum := range a[len(a)-2:] {
		wide := func(x, to int) {
			if i == 1 {
				t.p("\tVEXTRACTF64X4 $1, Z%d, Y%d", x, to)
				x = to
			}
			t.p("\tVCVTPS2PD Y%d, Z%d", x, to)
		}
		wide(a[0][0], 30+i)
		switch o {
		case opSquares:
			t.p("\tVFMADD231PD Z%[1]d, Z%[1]d, Z%[2]d", 30+i, sum[0])
		case opProducts:
			wide(a[1][0], 31-i)
			t.p("\tVFMADD231PD Z31, Z30, Z%d", sum[0])
		case opAdd64:
			t.p("\tVADDPD Z%[1]d, Z%[2]d, Z%[2]d", 30+i, sum[0])
		}
	}
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
