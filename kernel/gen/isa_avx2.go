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
	case opAbove, opAtLeast, opEqual:
		t.p("\tVCMPPS $%d, Y%d, Y%d, Y%d", compares[o], a[1], a[0], d)
	case opSelect:
		t.p("\tVBLENDVPS Y%d, Y%d, Y%d, Y%d", a[2], a[0], a[1], d)
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

func (s isaAVX2) loadF16(t *text, d []int, p string, off int) {
	for i, r := range d {
		t.p("\tVCVTPH2PS %d(%s), Y%d", off+16*i, p, r)
	}
}

func (s isaAVX2) storeF16(t *text, a []int, p string, off int) {
	for i, r := range a { // 0: to nearest even
		t.p("\tVCVTPS2PH $0, Y%d, %d(%s)", r, off+16*i, p)
	}
}

func (s isaAVX2) mask(k *kern, d []int, p string, off int) {
	k.asm.p("\tVPBROADCASTW %d(%s), Y14", off, p)
	for i, r := range d {
		k.asm.p("\tVMOVDQU %s, Y15\n\tVPAND Y15, Y14, Y%d\n\tVPCMPEQD Y15, Y%d, Y%d", k.eachBit(8*i, 8), r, r, r)
	}
}

func (s isaAVX2) negative(k *kern, a []int, p string, off int) {
	lo, hi := k.gpr[k.local("lo")], k.gpr[k.local("hi")]
	k.asm.p("\tVMOVMSKPS Y%d, %s\n\tVMOVMSKPS Y%d, %s", a[0], lo, a[1], hi)
	k.asm.p("\tSHLL $8, %[2]s\n\tORL %[2]s, %[1]s\n\tMOVW %[1]s, %[3]d(%[4]s)", lo, hi, off, p)
}

func (s isaAVX2) across(t *text, o code, d []int, a [][]int) {
	x := a[0]
	if o == opSquares || o == opProducts || o == opAdd64 {
		s.across64(t, o, a)
		return
	}
	t.p("\t%s Y%d, Y%d, Y%d", tree(o), x[1], x[0], d[0])
	t.p("\tVEXTRACTF128 $1, Y%d, X15", d[0])
	foldX(t, o, d[0], 15)
}

// across64 adds to 16 float64: the lower half of a vector goes to the first 8.
func (s isaAVX2) across64(t *text, o code, a [][]int) {
	n := len(a)
	wide := func(x []int, i, to int) {
		t.p("\tVEXTRACTF128 $%d, Y%d, X%d\n\tVCVTPS2PD X%d, Y%d", i%2, x[i/2], to, to, to)
	}
	for i, y := range []int{a[n-2][0], a[n-2][1], a[n-1][0], a[n-1][1]} {
		wide(a[0], i, 15)
		switch o {
		case opSquares:
			t.p("\tVFMADD231PD Y15, Y15, Y%d", y)
		case opProducts:
			wide(a[1], i, 14)
			t.p("\tVFMADD231PD Y14, Y15, Y%d", y)
		case opAdd64:
			t.p("\tVADDPD Y15, Y%d, Y%d", y, y)
		}
	}
}
