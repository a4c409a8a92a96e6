// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// Philox4x32-10 for many counters at once. A round takes words a, b, c, d to
//
//	hi(c·m1)^b^key, lo(c·m1), hi(a·m0)^d^key', lo(a·m0)
//
// so that every word of the next round is made where another one is read for the
// last time: words change places, and are not moved.

// philox is the definition; p is the counter's words and the keys of all rounds.
var philox = definition{
	name: "philox", doc: "r = n numbers of 16 bits, of blocks from p.ctr on; n is a multiple of 256.",
	params: join(params("*uint16", "r"), params("int", "n"), params("*philox", "p")),
	body:   func(k *kern) { k.philox(k) },
}

const (
	philoxRounds = 10
	philoxM0     = 0xD2511F53
	philoxM1     = 0xCD9E8D57
	keysAt       = 16 // in p
)

// vector is numbers in memory, one after the other.
func (k *kern) vector(n ...uint32) string {
	at := 4 * len(*k.table)
	*k.table = append(*k.table, n...)
	return fmt.Sprintf("number<>+%d(SB)", at)
}

// words are the registers of a, b, c and d.
type words [4]int

func (w *words) turn() { *w = words{w[1], w[2], w[3], w[0]} }

// crowd is groups of blocks of amd64, as many as registers hold, since a round
// waits for the one before. A word is the lower half of 64 bits, and the upper half
// is anything. Blocks are in an order that makes the two halves of a result
// contiguous: 0, half, 1, half+1, …
type crowd struct {
	*kern
	r      string // of registers
	blocks int    // of a group
	m0, m1 string
	keys   int // the first of 4 registers for keys
	spare  int // the first of 2
	group  []words
	mix    func(key, spare, to int) // to ^= spare ^ key
	join   func(low, high, spare int)
}

// newCrowd has n groups in the first registers, and 8 others behind them.
func newCrowd(k *kern, r string, n int) *crowd {
	c := &crowd{
		kern: k, r: r, blocks: 8 / k.parts(), keys: 4*n + 4, spare: 4*n + 2,
		m0: fmt.Sprint(r, 4*n), m1: fmt.Sprint(r, 4*n+1),
	}
	for i := range n {
		c.group = append(c.group, words{4 * i, 4*i + 1, 4*i + 2, 4*i + 3})
	}
	return c
}

func (s isaAVX512) philox(k *kern) {
	c := newCrowd(k, "Z", 4)
	c.mix = func(key, spare, to int) { k.asm.p("\tVPTERNLOGD $0x96, Z%d, Z%d, Z%d", key, spare, to) }
	c.join = func(low, high, _ int) { k.asm.p("\tVPSHUFD $0xa0, Z%d, K1, Z%d", high, low) }
	k.asm.p("\tMOVL $0xaaaa, AX\n\tKMOVW AX, K1")
	c.write()
}

func (s isaAVX2) philox(k *kern) {
	c := newCrowd(k, "Y", 2)
	c.mix = func(key, spare, to int) {
		k.asm.p("\tVPXOR Y%d, Y%d, Y%d\n\tVPXOR Y%d, Y%d, Y%d", key, to, to, spare, to, to)
	}
	c.join = func(low, high, spare int) {
		k.asm.p("\tVPSHUFD $0xa0, Y%d, Y%d", high, spare)
		k.asm.p("\tVPBLENDD $0xaa, Y%d, Y%d, Y%d", spare, low, low)
	}
	c.write()
}

// key reads key i of all rounds.
func (c *crowd) key(i int) int {
	reg := c.keys + i%4
	c.asm.p("\tVPBROADCASTD %d(%s), %s%d", keysAt+4*i, c.gpr["p"], c.r, reg)
	return reg
}

// write is the loop over all groups.
func (c *crowd) write() {
	t, r, p := &c.asm, c.r, c.gpr["p"]
	var order []uint32
	for i := range c.blocks / 2 {
		order = append(order, uint32(i), 0, uint32(i+c.blocks/2), 0)
	}
	at := c.vector(order...)
	t.p("\tVPBROADCASTD %s, %s\n\tVPBROADCASTD %s, %s", c.vector(philoxM0), c.m0, c.vector(philoxM1), c.m1)
	block := c.gpr[c.local("block")]
	t.p("\tMOVL 0(%s), %s\nloop:", p, block)
	for _, w := range c.group {
		t.p("\tVMOVD %s, X%d\n\tVPBROADCASTD X%d, %s%d", block, w[0], w[0], r, w[0])
		t.p("\tVPADDD %s, %s%d, %s%d", at, r, w[0], r, w[0])
		t.p("\tADDL $%d, %s", c.blocks, block)
		for i := 1; i < 4; i++ {
			t.p("\tVPBROADCASTD %d(%s), %s%d", 4*i, p, r, w[i])
		}
	}
	for i := range philoxRounds {
		c.round(i)
	}
	for i := range c.group {
		c.end(i)
	}
	bytes := 16 * c.blocks * len(c.group)
	c.isa.add(t, bytes, c.gpr["r"])
	c.down(t, bytes/2, c.gpr["n"], "loop")
}

// round is round i of all groups.
func (c *crowd) round(i int) {
	t, r := &c.asm, c.r
	for _, w := range c.group {
		t.p("\tVPMULUDQ %s, %s%d, %s%d\n\tVPMULUDQ %s, %s%d, %s%d", c.m0, r, w[0], r, w[0], c.m1, r, w[2], r, w[2])
	}
	for half, place := range [2][2]int{{2, 1}, {0, 3}} {
		key := c.key(2*i + half)
		for g, w := range c.group {
			t.p("\tVPSHUFD $0xf5, %s%d, %s%d", r, w[place[0]], r, c.spare+g%2)
			c.mix(key, c.spare+g%2, w[place[1]])
		}
	}
	for g := range c.group {
		c.group[g].turn()
	}
}

// end writes the blocks of group g.
func (c *crowd) end(g int) {
	t, r, w, size := &c.asm, c.r, c.group[g], 8*c.blocks
	c.join(w[0], w[1], c.spare)
	c.join(w[2], w[3], c.spare+1)
	for i, op := range []string{"VPUNPCKLQDQ", "VPUNPCKHQDQ"} {
		t.p("\t%s %s%d, %s%d, %s%d", op, r, w[2], r, w[0], r, c.spare+i)
		t.p("\tVMOVDQU%s %s%d, %d(%s)", map[string]string{"Z": "32"}[r], r, c.spare+i, (2*g+i)*size, c.gpr["r"])
	}
}

// philox of NEON has a word of 4 blocks in a register, and two groups of blocks:
// V0 to V3 and V4 to V7, as they are after all rounds.
func (s isaNEON) philox(k *kern) {
	const m0, m1, first, key = 16, 17, 18, 19
	t, p := &k.asm, k.gpr["p"]
	block, next, at := k.gpr[k.local("block")], k.gpr[k.local("next")], k.gpr[k.local("at")]
	t.p("\tMOVD $%s, %s\n\tFMOVQ (%s), F%d", k.vector(0, 1, 2, 3), at, at, first)
	t.p("\tMOVD $%s, %s\n\tVLD1R (%s), [V%d.S4]", k.vector(philoxM0), at, at, m0)
	t.p("\tMOVD $%s, %s\n\tVLD1R (%s), [V%d.S4]", k.vector(philoxM1), at, at, m1)
	t.p("\tMOVWU 0(%s), %s\nloop:", p, block)
	group := [2]words{{2, 3, 0, 1}, {6, 7, 4, 5}}
	for _, w := range group {
		t.p("\tVDUP %s, V%d.S4\n\tADD $4, %s, %s", block, w[0], block, block)
		t.arm(add32, w[0], w[0], first)
		for i := 1; i < 4; i++ {
			t.p("\tADD $%d, %s, %s\n\tVLD1R (%s), [V%d.S4]", 4*i, p, at, at, w[i])
		}
	}
	t.p("\tADD $%d, %s, %s", keysAt, p, next)
	for range philoxRounds {
		for half, place := range [2][2]int{{2, 1}, {0, 3}} {
			t.p("\tVLD1R.P 4(%s), [V%d.S4]", next, key)
			for g, w := range group {
				from, to, x := w[place[0]], w[place[1]], 20+2*g
				t.arm(umull, x, from, m1-half)
				t.arm(umull2, x+1, from, m1-half)
				t.arm(uzp1s, from, x, x+1)
				t.arm(uzp2s, x, x, x+1)
				t.arm(eor, to, to, key)
				t.arm(eor, to, to, x)
			}
		}
		for g := range group {
			group[g].turn()
		}
	}
	for _, w := range group {
		t.p("\tVST4.P [V%d.S4, V%d.S4, V%d.S4, V%d.S4], 64(%s)", w[0], w[1], w[2], w[3], k.gpr["r"])
	}
	k.down(t, 64, k.gpr["n"], "loop")
}
