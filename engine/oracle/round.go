// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"

	"pleach/half"
	"pleach/internal/rng"
)

// round rounds what the op has written to values of type bf16, by way of float32
// as an engine does it. What was rounded before, and what an op leaves as it is,
// stays.
func (c *call) round() {
	for i, v := range c.op.Out {
		if v.Type == half.BF16 {
			for j, x := range c.out[i] {
				c.out[i][j] = float64(half.FromBF16(half.ToBF16(float32(x))))
			}
		}
	}
}

// roundStochastically rounds what AdamW has written as [program.Rounding] says,
// one number at a time.
func (c *call) roundStochastically(t uint64) {
	if !c.op.Attr.Stochastic {
		return
	}
	for k, v := range c.op.Out {
		if v.Type != half.BF16 {
			continue
		}
		s := rng.New(c.op.Attr.Seed, "round "+c.op.RoundedAs(k))
		for j, x := range c.out[k] {
			i := uint64(c.shardOffset() + j)
			word := s.Block(t<<32 | i/8)[i/2%4]
			c.out[k][j] = float64(stochastic(float32(x), uint16(word>>(i%2*16))))
		}
	}
}

// stochastic is x rounded to bf16 by a random number.
func stochastic(x float32, r uint16) float32 {
	const largest = 0x7f7f
	switch bits := math.Float32bits(x); {
	case math.IsNaN(float64(x)) || math.IsInf(float64(x), 0):
		return x
	case bits<<1>>17 >= largest: // the neighbour is infinite
		return half.FromBF16(uint16(bits >> 16))
	default:
		return half.FromBF16(uint16((bits + uint32(r)) >> 16))
	}
}
