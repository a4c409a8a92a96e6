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
// GOAMD64, and for all levels in assembly. A changed order of a sum, or a product fused into it, shows here.
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
		want := bits[c.name][0]
		if l != Portable {
			want = bits[c.name][1]
		}
		if got := h.Sum32(); got != want {
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

// bits are the FNV-1a hashes of what the kernels write: one of plain Go, and one
// of all levels in assembly.
var bits = map[string][2]uint32{
	"GemmNT":          {0xa59b88ca, 0xe44ab0b2},
	"GemmNN":          {0xedaccdb4, 0x921b4015},
	"GemmTN":          {0x3e5d9a16, 0xba5b7e97},
	"GemmNT1":         {0x04fd80de, 0xb72fbc9b},
	"Attention":       {0xd2a2ac26, 0x1f9daf95},
	"AttentionGrad":   {0x0f57621c, 0x752362a4},
	"AttentionCached": {0x24e3fbe7, 0x5d81b6e7},
	"RMSNorm":         {0x571379ee, 0xba635583},
	"RMSNormInv":      {0x3a93cc22, 0x7484c802},
	"RMSNormGradX":    {0xe56c01c7, 0x907dd7c1},
	"RMSNormGradW":    {0x21f99da7, 0x7d0099f6},
	"RoPE":            {0x0f977b73, 0x766f309f},
	"SwiGLU":          {0xfbfd24de, 0xf39d3827},
	"SwiGLUGrad":      {0x0330c83d, 0xbe2ee815},
	"Embed":           {0x5ffe9590, 0x5ffe9590},
	"EmbedGrad":       {0xca365241, 0xca365241},
	"Add":             {0x0c866519, 0x0c866519},
	"AddInto":         {0x643b065b, 0x643b065b},
	"Scale":           {0xa2e1c2b8, 0xa2e1c2b8},
	"AddBias":         {0xce306a40, 0xce306a40},
	"BiasGrad":        {0x12307da5, 0x12307da5},
	"SumSquares":      {0x40b0f16f, 0xec5f6d5b},
	"AdamW":           {0x2e6bfd35, 0x2f3a9ff5},
	"softmaxRows":     {0x93ad1a61, 0x5740d855},
	"softmaxGradRows": {0xeb4782c8, 0x4d226d46},
	"scaleRows":       {0x82fea03a, 0x82fea03a},
	"dotRow":          {0x804ca70d, 0x119afe24},
	"Exp32":           {0x328fb9c3, 0x328fb9c3},
	"HeadStats":       {0xdb4de357, 0x9c20e87b},
	"HeadLoss":        {0x0c3cfbc1, 0x4c802c03},
	"HeadGrad":        {0x64ae60a3, 0x951cd23a},
	"TopK":            {0x75222923, 0x75222923},
	"Widen":           {0xdc44c187, 0xdc44c187},
	"Narrow":          {0xf4462997, 0xf4462997},
	"Round":           {0xdc44c187, 0xdc44c187},
	"NarrowRandom":    {0xc5183fe1, 0xc5183fe1},
	"RandomBits":      {0x14b501a8, 0x14b501a8},
	"AddInto16":       {0x00714e20, 0x00714e20},
	"EmbedGrad16":     {0x53d6ce77, 0x53d6ce77},
	"BiasGrad16":      {0x5a17778f, 0x5a17778f},
	"ScaleColumns":    {0x7b627b9c, 0x7b627b9c},
	"RMSNormGradW16":  {0x550e0521, 0x9f8a26bd},
	"Sub":             {0xfa1eba9d, 0xfa1eba9d},
	"KeepKeys":        {0xb95736dc, 0xb95736dc},
	"SumAbs64Bits":    {0xa5aab023, 0xa5aab023},
	"CountBelow":      {0xebf66a1c, 0xebf66a1c},
	"Bucket":          {0x94a8fd34, 0x94a8fd34},
	"WordsBelow":      {0xee0a0295, 0xee0a0295},
	"Sieve":           {0x728fc4f6, 0x728fc4f6},
	"AddScaled":       {0x297a379c, 0x297a379c},
	"Divide":          {0x73fc8400, 0x73fc8400},
	"KeepBits":        {0x72638321, 0x72638321},
	"Elect":           {0x9f2bb454, 0x9f2bb454},
	"Elect the mean":  {0xeeadb922, 0xeeadb922},
	"Vote":            {0x740bba76, 0x740bba76},
	"Dot64":           {0x28ba9ad6, 0x28ba9ad6},
	"SumAbs64":        {0x98625334, 0x98625334},
	"Largest":         {0x3f66f13d, 0x3f66f13d},
	"RandomWords":     {0x50eb11d9, 0x50eb11d9},
	"RandomBelow":     {0xaea5f5ba, 0xaea5f5ba},
	"Widen16F":        {0x284b77c6, 0x284b77c6},
	"Narrow16F":       {0x604a30b2, 0x604a30b2},
	"Collect":         {0x5406efd5, 0x5406efd5},
}
