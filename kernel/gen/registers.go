// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// take is a free vector.
func (k *kern) take() int {
	for i, free := range k.free {
		if free {
			k.free[i] = false
			k.used = max(k.used, i+1)
			return i
		}
	}
	k.fail("too many vectors")
	return 0
}

// drop frees what is read for the last time by operation i.
func (k *kern) drop(i int) {
	for _, a := range k.block[i].arg {
		if !a.held && a.last == i && a.reg >= 0 {
			k.free[a.reg] = true
		}
	}
}

// flush writes the operations collected so far.
func (k *kern) flush() {
	k.prune()
	for i, o := range k.block {
		for _, a := range o.arg {
			a.last = i
		}
	}
	for i, o := range k.block {
		k.place(i, o)
		k.emit(o)
	}
	k.block = nil
}

// prune leaves out what computes a result that nothing reads.
func (k *kern) prune() {
	read := map[*val]bool{}
	var live []*op
	for _, o := range slices.Backward(k.block) {
		if o.dst != nil && !o.dst.held && !read[o.dst] {
			continue
		}
		for _, a := range o.arg {
			read[a] = true
		}
		live = append(live, o)
	}
	slices.Reverse(live)
	k.block = live
}

// place finds registers for the result of operation i and frees its operands.
func (k *kern) place(i int, o *op) {
	if o.dst == nil || o.dst.reg >= 0 {
		k.drop(i)
		return
	}
	if o.code == opFMA || o.code == opFNMA {
		k.placeFMA(i, o)
		return
	}
	k.drop(i)
	o.dst.reg = k.take()
}

// placeFMA prefers the register of the addend, then one of a factor.
func (k *kern) placeFMA(i int, o *op) {
	prefer := []*val{o.arg[2]}
	if k.aliases() {
		prefer = append(prefer, o.arg[0], o.arg[1])
	}
	for _, a := range prefer {
		if !a.held && a.last == i {
			o.dst.reg = a.reg
			k.drop(i)
			k.free[a.reg] = false
			return
		}
	}
	o.dst.reg = k.take() // while the factors are in theirs
	k.drop(i)
}

// emit writes an operation whose registers are known.
func (k *kern) emit(o *op) {
	t, n := &k.asm, k.parts()
	var regs [][]int
	slots := k.scratch()
	slot := 0
	for _, a := range o.arg {
		if a.from != nil && a.reg < 0 {
			k.isa.uniform(t, slots[slot], k, a.from)
			regs = append(regs, fill(n, func(int) int { return slots[slot] }))
			slot++
			continue
		}
		regs = append(regs, k.machine(a))
	}
	switch o.code {
	case opLoad, opStore:
		for i := range n {
			k.memory(t, o.code, k.machine(first(o))[i], k.gpr[o.p], o.off+i*64/n)
		}
	case opWiden, opExtend:
		k.loadWords(t, o.code, k.machine(o.dst), k.gpr[o.p], o.off)
	case opHalves:
		k.storeHalves(t, regs[0], k.gpr[o.p], o.off)
	case opFromF16:
		k.loadF16(t, k.machine(o.dst), k.gpr[o.p], o.off)
	case opToF16:
		k.storeF16(t, regs[0], k.gpr[o.p], o.off)
	case opMask:
		k.isa.mask(k, k.machine(o.dst), k.gpr[o.p], o.off)
	case opNegative:
		k.isa.negative(k, regs[0], k.gpr[o.p], o.off)
	case opSpread:
		for i := range n {
			k.memory(t, o.code, k.machine(o.dst)[i], k.gpr[o.p], o.off)
		}
	case opStoreOne:
		k.memory(t, o.code, regs[0][0], k.gpr[o.p], o.off)
	case opRet:
		k.isa.result(t, regs[0][0], k.offset(""))
	case opSum, opHighest:
		k.across(t, o.code, k.machine(o.dst), regs)
	case opSquares, opProducts, opAdd64:
		k.across(t, o.code, nil, regs)
	default:
		for i, d := range k.machine(o.dst) {
			k.lanewise(t, o.code, d, fill(len(regs), func(j int) int { return regs[j][i] }))
		}
	}
}

// first is what a load writes or a store reads.
func first(o *op) *val {
	if o.dst != nil {
		return o.dst
	}
	return o.arg[0]
}

// machine is the registers of a vector.
func (k *kern) machine(v *val) []int {
	return fill(k.parts(), func(i int) int { return v.reg*k.parts() + i })
}

func fill(n int, f func(i int) int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = f(i)
	}
	return x
}
