// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log"
	"math"
	"slices"
)

// A row kernel is written once, as operations on vectors of 16 floats, and
// every instruction set makes of a vector as many registers as it needs: one of
// AVX-512, two of AVX2, four of NEON. The operations, their operands and their
// order are the same on each, and each rounds an operation once, so results are
// equal to the bit.
//
// Operations are collected until a loop begins or ends; then each result gets
// registers, which are free again after its last use. What lives longer is held.

// code is an operation on vectors.
type code int

const (
	opLoad     code = iota // 16 floats at p+off
	opSpread               // the float at p+off in all lanes
	opStore                // a to p+off
	opStoreOne             // lane 0 of a to p+off
	opRet                  // lane 0 of a is the result of the function
	opCopy                 // a
	opAdd                  // a + b
	opSub                  // a − b
	opMul                  // a·b
	opDiv                  // a/b
	opSqrt                 // √a
	opMin                  // a if a < b, else b
	opMax                  // a if a > b, else b
	opFMA                  // a·b + c, rounded once
	opFNMA                 // c − a·b, rounded once
	opShift                // the bits of a moved up by 23
	opKeep                 // a·b, or a·2ᵇ if exponents(); 0 where c ≤ d
	opSum                  // the sum of the lanes of a in lane 0, anything in others
	opHighest              // their maximum, likewise
	opSquares              // adds the squares of a to 16 float64 in b and c
	opProducts             // adds a·b to 16 float64 in c and d
	opAdd64                // adds a to 16 float64 in b and c

	opWiden  // 16 numbers of 16 bits at p+off, in the upper halves of lanes
	opExtend // the same in the lower halves
	opHalves // the upper halves of a to p+off
	opAnd    // bits of a and b
	opOr     // bits of a or b
	opPlus   // a + b as integers
	opWithin // a where b ≤ c, else 0
	opHigh   // the bits of a moved down by 16
	opIfNaN  // a where c is NaN, else b

	opFromF16 // 16 numbers of binary16 at p+off
	opToF16   // a, rounded to binary16, to p+off

	opAbove    // all bits where a > b, else none: a mask
	opAtLeast  // the same where a ≥ b
	opEqual    // the same where a = b
	opSelect   // a where the mask c has bits, else b
	opLarger   // the larger of a and b as integers without a sign
	opMinus    // a − b as integers
	opDown     // the bits of a moved down by 8
	opBucket   // the bits of a moved down by 18
	opSign     // the bits of a moved down by 31
	opSigns    // all bits where the sign bit of a is set, else none: a mask
	opSmaller  // the smaller of a and b as integers without a sign
	opMask     // the mask that 16 bits at p+off say
	opNegative // the upper bits of lanes, 16 bits to p+off
)

// op is one operation.
type op struct {
	code code
	dst  *val
	arg  []*val
	p    string
	off  int
}

// val is a vector, or a number that stands for a vector of it.
type val struct {
	reg  int // its vector register, −1 while it has none
	held bool
	last int // index of the operation that reads it last
	from *uniform
}

// uniform is a number that a kernel does not change.
type uniform struct {
	bits uint32 // a constant, if there is no name
	arg  string // an argument
	p    string // in memory at p+off
	off  int
}

// isa is an instruction set. Vector v is parts() machine registers from
// v·parts() on.
type isa interface {
	level() string
	parts() int
	vectors() int
	scratch() [2]int // machine registers for uniforms
	hoists() bool    // whether there are vectors to spare for uniforms
	exponents() bool // whether opKeep multiplies by 2ᵇ
	aliases() bool   // whether an FMA may write to a register that it multiplies
	gprs() []string

	argument(t *text, name string, off int, reg string) // to a general register
	uniform(t *text, reg int, k *kern, u *uniform)      // to all lanes of a machine register
	memory(t *text, o code, reg int, p string, off int)
	loadWords(t *text, o code, d []int, p string, off int) // opWiden or opExtend
	storeHalves(t *text, a []int, p string, off int)
	loadF16(t *text, d []int, p string, off int)
	storeF16(t *text, a []int, p string, off int)
	mask(k *kern, d []int, p string, off int)     // opMask
	negative(k *kern, a []int, p string, off int) // opNegative
	result(t *text, reg, off int)
	lanewise(t *text, o code, d int, a []int)
	across(t *text, o code, d []int, a [][]int)

	philox(k *kern)
	collect(k *kern)

	copy(t *text, src, dst string)
	add(t *text, by any, reg string)         // a number or a register
	jumpZero(t *text, reg, label string)     // if the register is zero
	down(t *text, by int, reg, label string) // subtracts, and jumps unless zero
	end(t *text)
}

// param is an argument of a kernel.
type param struct{ name, kind string }

// uniform says whether it is a number that vectors are computed with.
func (p param) uniform() bool { return p.kind == "float32" || p.kind == "uint32" }

// definition is a kernel in the language.
type definition struct {
	name   string
	doc    string
	params []param
	result bool   // a float32
	only   string // the one level that has it, if not all have
	body   func(k *kern)
}

// kern is a kernel being written for one instruction set.
type kern struct {
	isa
	definition
	asm    text // its body
	block  []*op
	free   []bool // of the vectors
	used   int    // vectors
	fixed  []*val // uniforms in registers
	known  map[uniform]*val
	table  *[]uint32
	gpr    map[string]string
	moving []string // what the innermost loop advances
	labels int
}

// build writes a kernel for an instruction set. table collects the constants of
// the file.
func build(t *text, s isa, table *[]uint32, def definition) {
	k := &kern{
		isa: s, definition: def, free: make([]bool, s.vectors()),
		known: map[uniform]*val{}, table: table, gpr: map[string]string{},
	}
	for i := range k.free {
		k.free[i] = true
	}
	for _, p := range k.params {
		if !p.uniform() {
			k.local(p.name)
		}
	}
	k.body(k)
	k.flush()
	t.p("// func %s%s%s", k.name, s.level(), def.signature())
	t.p("TEXT ·%s%s(SB), NOSPLIT, $0-%d", k.name, s.level(), k.frame())
	for _, p := range k.params {
		if !p.uniform() {
			s.argument(t, p.name, k.offset(p.name), k.gpr[p.name])
		}
	}
	for _, v := range k.fixed {
		s.uniform(t, v.reg, k, v.from)
	}
	if k.used+len(k.fixed) > s.vectors() {
		k.fail("too many vectors")
	}
	t.Write(k.asm.Bytes())
	s.end(t)
}

func (k *kern) fail(what string) { log.Fatalf("%s for %s: %s", k.name, k.level(), what) }

// local names another general register.
func (k *kern) local(name string) string {
	if len(k.gpr) == len(k.gprs()) {
		k.fail("too many names")
	}
	k.gpr[name] = k.gprs()[len(k.gpr)]
	return name
}

// offset is where an argument lies in the frame.
func (d *definition) offset(name string) int {
	at := 0
	for _, p := range d.params {
		size := p.size()
		at = (at + size - 1) / size * size
		if p.name == name {
			return at
		}
		at += size
	}
	return (at + 7) / 8 * 8 // the result's
}

func (p param) size() int {
	if p.uniform() {
		return 4
	}
	return 8
}

// frame is the size of arguments and result. A float32 result is not padded.
func (d *definition) frame() int {
	if d.result {
		return d.offset("") + 4
	}
	at := 0
	for _, p := range d.params {
		at = d.offset(p.name) + p.size()
	}
	return at
}

// The operations.

func (k *kern) do(o code, a ...*val) *val {
	dst := &val{reg: -1}
	k.block = append(k.block, &op{code: o, dst: dst, arg: a})
	return dst
}

// to is an operation on a held vector.
func (k *kern) to(dst *val, o code, a ...*val) {
	k.block = append(k.block, &op{code: o, dst: dst, arg: a})
}

func (k *kern) add(a, b *val) *val          { return k.do(opAdd, a, b) }
func (k *kern) sub(a, b *val) *val          { return k.do(opSub, a, b) }
func (k *kern) mul(a, b *val) *val          { return k.do(opMul, a, b) }
func (k *kern) div(a, b *val) *val          { return k.do(opDiv, a, b) }
func (k *kern) sqrt(a *val) *val            { return k.do(opSqrt, a) }
func (k *kern) min(a, b *val) *val          { return k.do(opMin, a, b) }
func (k *kern) max(a, b *val) *val          { return k.do(opMax, a, b) }
func (k *kern) fma(a, b, c *val) *val       { return k.do(opFMA, a, b, c) }
func (k *kern) fnma(a, b, c *val) *val      { return k.do(opFNMA, a, b, c) }
func (k *kern) shift(a *val) *val           { return k.do(opShift, a) }
func (k *kern) keep(a, b, c, lim *val) *val { return k.do(opKeep, a, b, c, lim) }
func (k *kern) sum(a *val) *val             { return k.do(opSum, a) }
func (k *kern) highest(a *val) *val         { return k.do(opHighest, a) }
func (k *kern) and(a, b *val) *val          { return k.do(opAnd, a, b) }
func (k *kern) or(a, b *val) *val           { return k.do(opOr, a, b) }
func (k *kern) plus(a, b *val) *val         { return k.do(opPlus, a, b) }
func (k *kern) within(a, b, lim *val) *val  { return k.do(opWithin, a, b, lim) }
func (k *kern) high(a *val) *val            { return k.do(opHigh, a) }
func (k *kern) ifNaN(a, b, c *val) *val     { return k.do(opIfNaN, a, b, c) }
func (k *kern) above(a, b *val) *val        { return k.do(opAbove, a, b) }
func (k *kern) atLeast(a, b *val) *val      { return k.do(opAtLeast, a, b) }
func (k *kern) equal(a, b *val) *val        { return k.do(opEqual, a, b) }
func (k *kern) pick(a, b, mask *val) *val   { return k.do(opSelect, a, b, mask) }
func (k *kern) minus(a, b *val) *val        { return k.do(opMinus, a, b) }
func (k *kern) down8(a *val) *val           { return k.do(opDown, a) }
func (k *kern) larger(a, b *val) *val       { return k.do(opLarger, a, b) }
func (k *kern) smaller(a, b *val) *val      { return k.do(opSmaller, a, b) }

func (k *kern) memop(o code, p string, off int, a ...*val) *val {
	if _, ok := k.gpr[p]; !ok {
		k.fail("no pointer " + p)
	}
	x := &op{code: o, arg: a, p: p, off: off}
	switch o {
	case opLoad, opSpread, opWiden, opExtend, opFromF16, opMask:
		x.dst = &val{reg: -1}
	}
	k.block = append(k.block, x)
	return x.dst
}

func (k *kern) load(p string) *val                { k.moves(p); return k.nth(p, 0) }
func (k *kern) loadAt(p string, off int) *val     { return k.memop(opLoad, p, off) }
func (k *kern) extend(p string) *val              { k.moves(p); return k.memop(opExtend, p, 0) }
func (k *kern) halves(p string, a *val)           { k.moves(p); k.memop(opHalves, p, 0, a) }
func (k *kern) fromF16(p string) *val             { k.moves(p); return k.memop(opFromF16, p, 0) }
func (k *kern) toF16(p string, a *val)            { k.moves(p); k.memop(opToF16, p, 0, a) }
func (k *kern) mask(p string) *val                { k.moves(p); return k.memop(opMask, p, 0) }
func (k *kern) negative(p string, a *val)         { k.moves(p); k.memop(opNegative, p, 0, a) }
func (k *kern) spread(p string) *val              { return k.memop(opSpread, p, 0) }
func (k *kern) store(p string, a *val)            { k.moves(p); k.memop(opStore, p, 0, a) }
func (k *kern) storeAt(p string, off int, a *val) { k.memop(opStore, p, off, a) }
func (k *kern) storeOne(p string, a *val)         { k.memop(opStoreOne, p, 0, a) }
func (k *kern) ret(a *val)                        { k.block = append(k.block, &op{code: opRet, arg: []*val{a}}) }

func (k *kern) squares(a, lo, hi *val) {
	k.block = append(k.block, &op{code: opSquares, arg: []*val{a, lo, hi}})
}

func (k *kern) products(a, b, lo, hi *val) {
	k.block = append(k.block, &op{code: opProducts, arg: []*val{a, b, lo, hi}})
}

func (k *kern) add64(a, lo, hi *val) {
	k.block = append(k.block, &op{code: opAdd64, arg: []*val{a, lo, hi}})
}

// putNth makes a vector i at p: floats, or bf16 numbers rounded to nearest, whatever p
// points to.
func (k *kern) putNth(p string, i int, a *val) {
	if n := k.stride(p); n < 64 {
		k.memop(opHalves, p, n*i, nearest(k, a))
		return
	}
	k.memop(opStore, p, 64*i, a)
}

// nth is vector i at p: floats, or bf16 numbers widened, whatever p points to.
func (k *kern) nth(p string, i int) *val {
	if n := k.stride(p); n < 64 {
		return k.memop(opWiden, p, n*i)
	}
	return k.memop(opLoad, p, 64*i)
}

// stride is the bytes of a vector at p; whole words of 64 bits are masks.
func (k *kern) stride(p string) int {
	switch {
	case slices.Contains(k.params, param{p, "*uint16"}):
		return 32
	case slices.Contains(k.params, param{p, "*uint64"}):
		return 2
	}
	return 64
}

// moves says that the loop goes along p.
func (k *kern) moves(p string) {
	if !slices.Contains(k.moving, p) {
		k.moving = append(k.moving, p)
	}
}

// hold is a vector that lives on, with the value a at first.
func (k *kern) hold(a *val) *val {
	h := &val{reg: -1, held: true}
	h.reg = k.take()
	k.to(h, opCopy, a)
	return h
}

// release frees a held vector.
func (k *kern) release(h *val) {
	k.flush()
	k.free[h.reg] = true
}

func (k *kern) number(x float64) *val        { return k.uniform(uniform{bits: math.Float32bits(float32(x))}) }
func (k *kern) bits(b uint32) *val           { return k.uniform(uniform{bits: b}) }
func (k *kern) arg(name string) *val         { return k.uniform(uniform{arg: name}) }
func (k *kern) field(p string, off int) *val { return k.uniform(uniform{p: p, off: off}) }

func (k *kern) uniform(u uniform) *val {
	v := k.known[u]
	if v == nil {
		v = &val{reg: -1, held: true, from: &u}
		k.known[u] = v
		if u.arg == "" && u.p == "" && !slices.Contains(*k.table, u.bits) {
			*k.table = append(*k.table, u.bits)
		}
		if k.hoists() {
			k.fixed = append(k.fixed, v)
			v.reg = k.vectors() - len(k.fixed)
		}
	}
	return v
}

// Control.

// loop runs body for each 16 of the n numbers, of which there may be none.
func (k *kern) loop(n string, body func()) {
	k.flush()
	outer := k.moving
	k.moving = nil
	k.labels++
	head, end := k.label("loop"), k.label("end")
	k.jumpZero(&k.asm, k.gpr[n], end)
	k.asm.p("%s:", head)
	body()
	k.flush()
	for _, p := range k.moving {
		k.isa.add(&k.asm, k.stride(p), k.gpr[p])
	}
	k.down(&k.asm, 16, k.gpr[n], head)
	k.asm.p("%s:", end)
	k.moving = outer
}

// repeat runs body n ≥ 1 times.
func (k *kern) repeat(n string, body func()) {
	k.flush()
	k.labels++
	head := k.label("row")
	k.asm.p("%s:", head)
	body()
	k.flush()
	k.down(&k.asm, 1, k.gpr[n], head)
}

// when runs body unless the pointer is nil.
func (k *kern) when(p string, body func()) {
	k.flush()
	k.labels++
	end := k.label("none")
	k.jumpZero(&k.asm, k.gpr[p], end)
	body()
	k.flush()
	k.asm.p("%s:", end)
}

func (k *kern) label(what string) string { return what + string(rune('0'+k.labels)) }

// step moves a pointer by a number of bytes, or by what a name holds.
func (k *kern) step(p string, by any) {
	k.flush()
	if name, ok := by.(string); ok {
		by = k.gpr[name]
	}
	k.isa.add(&k.asm, by, k.gpr[p])
}

// same sets a name to what another holds.
func (k *kern) same(dst, src string) {
	k.flush()
	k.isa.copy(&k.asm, k.gpr[src], k.gpr[dst])
}
