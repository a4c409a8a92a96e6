// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// Philox4x32-10 for many counters at once. A round takes words a, b, c, d to
//
//	hi(c·m1)^b^key, lo(c·m1), hi(a·m0)^d^key', lo(a·m0)
//
// so that every word of the next round is made where another one is read for the
// last time: words change places, and are not moved. The counters of a call differ
// in a only. In the first round it reaches two words, in the second one three:
// what comes of the others is folded into what is added there.

// philox is the definition; *philox is declared beside its caller.
var philox = definition{
	name: "philox", doc: "r = n numbers of 16 bits, of blocks from p.first on; n is a multiple of 256.",
	params: join(params("*uint16", "r"), params("int", "n"), params("*philox", "p")),
	body:   func(k *kern) { k.philox(k) },
}

const (
	philoxM0 = 0xD2511F53
	philoxM1 = 0xCD9E8D57
	rounds   = 8 // after the first two
)

// vector is numbers in memory, one after the other.
func (k *kern) vector(n ...uint32) string {
	at := len(*k.table)
	*k.table = append(*k.table, n...)
	return where(at)
}

// words are the registers of a, b, c and d. After 4 rounds they are the same again.
type words [4]int

func (w *words) turn() { *w = words{w[1], w[2], w[3], w[0]} }

// crowd is groups of blocks of amd64, as many as registers hold, since a round
// waits for the one before. A word is the lower half of 64 bits, and the upper half
// is anything.
type crowd struct {
	*kern
	r      string // of registers
	blocks int    // of a group
	group  []words
	count  int // the first of the registers of their first words, a group each
	spare  int // the first of 2
	factor [2]string
	masks  bool // whether there are masks, and operands from one word in memory
	read   int  // words of p
}

func (s isaAVX512) philox(k *kern) {
	k.asm.p("\tMOVL $0x5555, AX\n\tKMOVW AX, K1")
	newCrowd(k, "Z", 4, true).write()
}

func (s isaAVX2) philox(k *kern) { newCrowd(k, "Y", 2, false).write() }

func newCrowd(k *kern, r string, n int, masks bool) *crowd {
	c := &crowd{kern: k, r: r, blocks: 8 / k.parts(), count: 4 * n, spare: 5*n + 2, masks: masks}
	for i := range n {
		c.group = append(c.group, words{4 * i, 4*i + 1, 4*i + 2, 4*i + 3})
	}
	c.factor = [2]string{fmt.Sprint(r, 5*n), fmt.Sprint(r, 5*n+1)}
	return c
}

// op writes an instruction on registers, the result last.
func (c *crowd) op(name string, regs ...any) {
	list := ""
	for i, reg := range regs {
		if n, ok := reg.(int); ok {
			reg = fmt.Sprint(c.r, n)
		}
		list += []string{" ", ", "}[min(i, 1)] + reg.(string)
	}
	c.asm.p("\t%s%s", name, list)
}

// key is the next word of p as an operand.
func (c *crowd) key() string {
	c.read++
	at := fmt.Sprintf("%d(%s)", 4*c.read, c.gpr["p"])
	if c.masks {
		return at
	}
	reg := fmt.Sprint(c.r, c.spare+2+c.read%2)
	c.op("VPBROADCASTD", at, reg)
	return reg
}

// xor is to = from ^ key.
func (c *crowd) xor(key string, from, to int) {
	if c.masks {
		c.op("VPXORD.BCST", key, from, to)
	} else {
		c.op("VPXOR", key, from, to)
	}
}

// mix is to ^= from ^ key.
func (c *crowd) mix(key string, from, to int) {
	if c.masks {
		c.op("VPTERNLOGD.BCST $0x96,", key, from, to)
		return
	}
	c.op("VPXOR", key, to, to)
	c.op("VPXOR", from, to, to)
}

// pair takes a product to two words of the last round, side by side: its upper half
// mixed with word, and its lower half.
func (c *crowd) pair(key string, word, product int) {
	c.op("VPSHUFD $0xb1,", product, product)
	if c.masks {
		c.op("VPTERNLOGD.BCST $0x96,", key, word, "K1", product)
		return
	}
	c.mix(key, product, word)
	c.op("VPBLENDD $0xaa,", product, word, product)
}

const upper = "VPSHUFD $0xf5," // the upper half of a product, in the lower one

// write is the loop over all groups. Counters are in an order that makes the two
// halves of a result contiguous: 0, half, 1, half+1, …
func (c *crowd) write() {
	n, next := len(c.group), uint32(len(c.group)*c.blocks)
	c.op("VPBROADCASTD", c.vector(philoxM0), c.factor[0])
	c.op("VPBROADCASTD", c.vector(philoxM1), c.factor[1])
	c.op("VPBROADCASTD", "0("+c.gpr["p"]+")", c.count)
	for g := n - 1; g >= 0; g-- {
		var order []uint32
		for i := range c.blocks / 2 {
			i += g * c.blocks
			order = append(order, uint32(i), 0, uint32(i+c.blocks/2), 0)
		}
		c.op("VPADDD", c.vector(order...), c.count, c.count+g)
	}
	step := c.vector(slices.Repeat([]uint32{next}, 2*c.blocks)...)
	c.asm.p("loop:")
	c.begin(step)
	for i := range rounds {
		c.round(i)
	}
	for g := range c.group {
		c.end(g)
	}
	bytes := 16 * int(next)
	c.isa.add(&c.asm, bytes, c.gpr["r"])
	c.down(&c.asm, bytes/2, c.gpr["n"], "loop")
}

// begin is the first two rounds.
func (c *crowd) begin(step string) {
	key := c.key()
	for g, w := range c.group {
		c.op("VPMULUDQ", c.factor[0], c.count+g, w[3])
		c.op("VPADDD", step, c.count+g, c.count+g)
		c.op(upper, w[3], w[2])
		c.xor(key, w[2], w[2])
	}
	key = c.key()
	for _, w := range c.group {
		c.op("VPMULUDQ", c.factor[1], w[2], w[1])
		c.op(upper, w[1], w[0])
		c.xor(key, w[0], w[0])
	}
	key = c.key()
	for _, w := range c.group {
		c.xor(key, w[3], w[2])
	}
}

// round is round i of those after the first two. The third one makes its c from a
// product only.
func (c *crowd) round(i int) {
	for _, w := range c.group {
		c.op("VPMULUDQ", c.factor[0], w[0], w[0])
	}
	key := c.key()
	for g, w := range c.group {
		spare := c.spare + g%2
		c.op("VPMULUDQ", c.factor[1], w[2], w[2])
		switch i {
		case 0:
			c.op(upper, w[0], w[3])
			c.xor(key, w[3], w[3])
		case rounds - 1:
			c.pair(key, w[3], w[0])
		default:
			c.op(upper, w[0], spare)
			c.mix(key, spare, w[3])
		}
	}
	key = c.key()
	for g, w := range c.group {
		spare := c.spare + g%2
		if i == rounds-1 {
			c.pair(key, w[1], w[2])
			continue
		}
		c.op(upper, w[2], spare)
		c.mix(key, spare, w[1])
		c.group[g].turn()
	}
}

// end writes the blocks of group g: pairs of a and b, and of c and d, are where the
// last products were.
func (c *crowd) end(g int) {
	w, size := c.group[g], 8*c.blocks
	for i, op := range []string{"VPUNPCKLQDQ", "VPUNPCKHQDQ"} {
		c.op(op, w[0], w[2], c.spare+i)
		c.op("VMOVUPS", c.spare+i, fmt.Sprintf("%d(%s)", (2*g+i)*size, c.gpr["r"]))
	}
}

// The registers of NEON: two groups of 4 blocks are V0 to V3 and V4 to V7, a word
// of all blocks in each.
const (
	neonM0, neonM1 = 16, 17
	neonCount      = 18 // and 19
	neonStep       = 20
	neonKey        = 21
	neonSpare      = 22 // and 23
)

func (s isaNEON) philox(k *kern) {
	next := k.gpr[k.local("next")]
	group := []words{{0, 1, 2, 3}, {4, 5, 6, 7}}
	neonCounters(k, len(group))
	k.asm.p("loop:\n\tADD $4, %s, %s", k.gpr["p"], next)
	neonRounds(&k.asm, group, func() { k.asm.p("\tVLD1R.P 4(%s), [V%d.S4]", next, neonKey) })
	for _, w := range group {
		k.asm.p("\tVST4.P [V%d.S4, V%d.S4, V%d.S4, V%d.S4], 64(%s)", w[0], w[1], w[2], w[3], k.gpr["r"])
	}
	k.down(&k.asm, 64, k.gpr["n"], "loop")
}

// neonCounters sets what is not p's, and the first words of all groups.
func neonCounters(k *kern, groups int) {
	t, at := &k.asm, k.gpr[k.local("at")]
	for i, n := range []uint32{philoxM0, philoxM1, 0, 4, 8} {
		t.p("\tMOVD $%s, %s\n\tVLD1R (%s), [V%d.S4]", k.vector(n), at, at, neonM0+i)
	}
	t.p("\tMOVD $%s, %s\n\tFMOVQ (%s), F%d", k.vector(0, 1, 2, 3), at, at, neonSpare)
	t.p("\tVLD1R (%s), [V%d.S4]", k.gpr["p"], neonKey)
	t.arm(add32, neonSpare, neonSpare, neonKey)
	for g := range groups {
		t.arm(add32, neonCount+g, neonCount+g, neonSpare)
	}
}

// neonRounds is all rounds; key reads the next word of p.
func neonRounds(t *text, group []words, key func()) {
	key()
	for g, w := range group {
		neonProduct(t, neonM0, neonCount+g, w[3], w[2])
		t.arm(add32, neonCount+g, neonCount+g, neonStep)
		t.arm(eor, w[2], w[2], neonKey)
	}
	key()
	for _, w := range group {
		neonProduct(t, neonM1, w[2], w[1], w[0])
		t.arm(eor, w[0], w[0], neonKey)
	}
	key()
	for _, w := range group {
		t.arm(eor, w[2], w[3], neonKey)
	}
	for i := range rounds {
		for half, place := range [2][2]int{{0, 3}, {2, 1}} {
			key()
			for _, w := range group {
				from, to, high := w[place[0]], w[place[1]], neonSpare
				neonProduct(t, neonM0+half, from, from, high)
				if i+half == 0 {
					t.arm(eor, to, high, neonKey)
					continue
				}
				t.arm(eor, to, to, neonKey)
				t.arm(eor, to, to, high)
			}
		}
		for g := range group {
			group[g].turn()
		}
	}
}

// neonProduct is the halves of 4 products; low may be x.
func neonProduct(t *text, m, x, low, high int) {
	t.arm(umull, neonSpare, x, m)
	t.arm(umull2, neonSpare+1, x, m)
	t.arm(uzp1s, low, neonSpare, neonSpare+1)
	t.arm(uzp2s, high, neonSpare, neonSpare+1)
}
