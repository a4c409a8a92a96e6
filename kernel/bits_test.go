// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// fixed is a source of the same numbers on every host.
type fixed struct{ *rand.Rand }

func (f fixed) floats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(f.Float64()*4 - 2)
	}
	return x
}

// TestBits: the bits of every kernel, equal on all architectures and for every
// GOAMD64. A changed order of a sum, or a product fused into it, shows here.
// RoPETable is left out: math.Sincos promises no bits.
func TestBits(t *testing.T) { each(t, testBits) }

func testBits(t *testing.T, l Level) {
	for _, c := range kernelCases(l) {
		h := fnv.New32a()
		for _, x := range c.run() {
			for _, v := range x {
				if v != v {
					v = float32(math.NaN())
				}
				h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
			}
		}
		if got, want := h.Sum32(), bits[c.name]; got != want {
			t.Errorf("%s: got %#08x, want %#08x", c.name, got, want)
		}
	}
}

// TestNoAllocations: a kernel lives from what it is given.
func TestNoAllocations(t *testing.T) { each(t, testNoAllocations) }

func testNoAllocations(t *testing.T, l Level) {
	for _, c := range kernelCases(l) {
		c.run() // makes the operands
		if n := testing.AllocsPerRun(3, func() { c.call() }); n != 0 {
			t.Errorf("%s: %v allocations, want none", c.name, n)
		}
	}
}

// bits are the FNV-1a hashes of what the kernels write.
var bits = map[string]uint32{
	"GemmNT":          0xa59b88ca,
	"GemmNN":          0xedaccdb4,
	"GemmTN":          0x3e5d9a16,
	"GemmNT1":         0x04fd80de,
	"Attention":       0xd2a2ac26,
	"AttentionGrad":   0xd03847ea,
	"AttentionCached": 0x24e3fbe7,
	"RMSNorm":         0x571379ee,
	"RMSNormInv":      0x3a93cc22,
	"RMSNormGradX":    0xe56c01c7,
	"RMSNormGradW":    0x21f99da7,
	"RoPE":            0x0f977b73,
	"SwiGLU":          0xfbfd24de,
	"SwiGLUGrad":      0x0330c83d,
	"Embed":           0x5ffe9590,
	"EmbedGrad":       0xca365241,
	"Add":             0x0c866519,
	"AddInto":         0x643b065b,
	"Scale":           0xa2e1c2b8,
	"AddBias":         0xce306a40,
	"BiasGrad":        0x12307da5,
	"SumSquares":      0xb85bfd5e,
	"AdamW":           0x2e6bfd35,
	"Exp32":           0x328fb9c3,
	"HeadStats":       0xdb4de357,
	"HeadLoss":        0x0c3cfbc1,
	"HeadGrad":        0x64ae60a3,
	"TopK":            0x75222923,
}
