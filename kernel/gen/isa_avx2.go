// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

// isaAVX2 has 7 vectors; Y14 and Y15 are scratch.
type isaAVX2 struct{ amd64 }

func (isaAVX2) level() string   { return "AVX2" }
func (isaAVX2) parts() int      { return 2 }
func (isaAVX2) vectors() int    { return 7 }
func (isaAVX2) hoists() bool    { return false }
func (isaAVX2) exponents() bool { return false }
func (isaAVX2) scratch() [2]int { return [2]int{15, 14} }

func (s isaAVX2) lanewise(t *text, o code, d int, a []int) {
	switch o {
	case opKeep: // 22: not less or equal, NaN included, quiet. The limit is the only uniform.
		t.p("\tVCMPPS $22, Y%d, Y%d, Y14\n\tVMULPS Y%d, Y%d, Y%d\n\tVANDPS Y14, Y%d, Y%d",
			a[3], a[2], a[1], a[0], d, d, d)
	case opWithin: // 18: less or equal, quiet. The limit is the only uniform.
		t.p("\tVCMPPS $18, Y%d, Y%d, Y14\n\tVANDPS Y14, Y%d, Y%d", a[2], a[1], a[0], d)
	case opIfNaN: // 3: unordered. No operand is a uniform.
		t.p("\tVCMPPS $3, Y%d, Y%d, Y14\n\tVBLENDVPS Y14, Y%d, Y%d, Y%d", a[2], a[2], a[0], a[1], d)
	default:
		s.amd64.lanewise(t, o, d, a)
	}
}

func (s isaAVX2) loadWords(t *text, o code, d []int, p string, off int) {
	for i, r := range d {
		s.memory(t, o, r, p, off+16*i)
	}
}

func (s isaAVX2) storeHalves(t *text, a []int, p string, off int) {
	for i, r := range a {
		t.p("\tVPSRLD $16, Y%d, Y%d", r, 15-i)
	}
	t.p("\tVPACKUSDW Y14, Y15, Y15\n\tVPERMQ $0xd8, Y15, Y15\n\tVMOVUPS Y15, %d(%s)", off, p)
}

func (s isaAVX2) across(t *text, o code, d []int, a [][]int) {
	x := a[0]
	if o == opSquares {
		for i, y := range []int{a[1][0], a[1][1], a[2][0], a[2][1]} {
			t.p("\tVEXTRACTF128 $%d, Y%d, X15\n\tVCVTPS2PD X15, Y15\n\tVFMADD231PD Y15, Y15, Y%d", i%2, x[i/2], y)
		}
		return
	}
	t.p("\t%s Y%d, Y%d, Y%d", tree(o), x[1], x[0], d[0])
	t.p("\tVEXTRACTF128 $1, Y%d, X15", d[0])
	foldX(t, o, d[0], 15)
}
