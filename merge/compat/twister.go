// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package compat

// Twister is the Mersenne Twister MT19937 with the seeding and the uniform numbers
// of torch's generator on a processor (Matsumoto and Nishimura 1998).
type Twister struct {
	state [624]uint32
	next  int
}

// NewTwister is a generator in the state after torch.manual_seed(seed).
func NewTwister(seed uint32) *Twister {
	g := &Twister{next: 624}
	g.state[0] = seed
	for i := 1; i < len(g.state); i++ {
		last := g.state[i-1]
		g.state[i] = 1812433253*(last^last>>30) + uint32(i)
	}
	return g
}

// Uint32 is the next word.
func (g *Twister) Uint32() uint32 {
	if g.next == len(g.state) {
		g.refill()
	}
	y := g.state[g.next]
	g.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// Float32 is the next number of [0, 1), a multiple of 2⁻²⁴.
func (g *Twister) Float32() float32 { return float32(g.Uint32()&(1<<24-1)) / (1 << 24) }

// refill makes the next 624 words.
func (g *Twister) refill() {
	s := &g.state
	for i := range s {
		y := s[i]&0x80000000 | s[(i+1)%624]&0x7fffffff
		s[i] = s[(i+397)%624] ^ y>>1 ^ y&1*0x9908b0df
	}
	g.next = 0
}
