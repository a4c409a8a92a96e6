// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package kernel is loops over float32 numbers whose shape is their arguments.
//
// The types to know are [Level], the set of instructions that kernels use;
// [Heads], the shape of fused query, key and value rows; and [AdamWStep].
// Kernels are methods of a level. The ones to begin with are [Level.GemmNT],
// [Level.RMSNorm] and [Level.Attention].
//
//	l := kernel.Best()
//	scratch := make([]float32, l.GemmScratch())
//	l.GemmNT(y, x, w, N, O, I, O, I, I, false, scratch) // y = x·wᵀ
//
// All kernels keep these rules:
//
//   - They take slices and sizes, allocate nothing and start nothing. Scratch is
//     passed in; its contents mean nothing before and after.
//   - A call computes rows, columns or heads of a result. However a result is cut
//     into calls, its bits are the same: the order of a sum is fixed, and no value
//     depends on where in a tile it lies, unless the kernel says otherwise.
//   - Kernels of weight gradients add to the sums that they are given, token by
//     token, so cutting a batch into calls changes no bit either.
//   - NaN and Inf go through as arithmetic has it. What may overlap is said at
//     each kernel; what is not said must not. Slices that are too short, and ids
//     and positions out of range, panic: who calls has checked them.
//
// # Levels
//
// [Portable] is plain Go. A product is rounded before it is added,
// float32(a*b)+c, and a sum is a left fold in index order: the same bits on every
// architecture. Functions are computed in float64 and rounded once.
//
// [AVX2], [AVX512] and [NEON] are assembly that kernel/gen writes. They agree with
// each other to the bit, since each row kernel is one program for vectors of 16
// floats, of which an instruction set makes one, two or four registers:
//
//   - What is added to a product is fused with it, where the formula of a kernel
//     shows a·b + c.
//   - A sum along a row has 16 lanes. Element i goes to lane i mod 16, in order;
//     then lane i and lane i+8 become one, i+4, i+2, i+1. A row of more than 32768
//     elements is so many sums, added in order.
//   - Elements that do not fill a vector are computed in one, filled up with zeros
//     or with what else changes nothing: an element has the same bits wherever it
//     lies, and nothing outside the slices is read or written.
//   - e^x is float32 with an error of at most 0.9 units in the last place.
//   - A call into assembly takes less than 50 µs, since Go cannot stop a goroutine
//     there.
//
// Where a probability below 2⁻¹²⁶ would be a denormal number it is 0, on every
// level.
//
// # bf16
//
// Numbers of 16 bits are bf16 in a []uint16. [Level.Widen], [Level.Narrow] and
// [Level.Round] convert; [Level.NarrowRandom] rounds at random, by numbers that
// [Level.RandomBits] makes from a stream of package rng. Their results have the same
// bits on every level, Portable included. What ends in 16 computes in float32 with
// operands in bf16, as if they were widened first; but products add in the order of
// their level, and [AVX512BF16] and [AMX] flush denormal numbers there. Each of the two
// agrees to the bit with a definition in plain Go, not with the other levels.
//
// [AMX] has the kernels of AVX512 and multiplies bf16 on tiles. It is a level where the
// processor has tiles, Linux lets the process use them, and the first products have the
// bits that they should have; [Denied] says why it is not. An operation takes 32 steps
// of k, so on AMX a product over tokens that is cut into calls, or into micro-batches,
// has the same bits only if each cut is at a multiple of 32. Rows are read fastest if
// their distance is an odd multiple of 64 bytes.
//
// # Merging
//
// The kernels that combine the weights of models have the same bits on every level,
// Portable included. [Level.AddScaled], [Level.Vote] and others round a product before
// they add it. [Level.Dot64] and [Level.SumAbs64] add in float64, in 16 lanes that
// rows of any length share. [Level.RandomBelow] and [Level.RandomWords] are words of a
// stream, [Level.Collect] is for selecting the largest, and [Level.Widen16F] and
// [Level.Narrow16F] convert binary16 numbers.
//
// # int8
//
// Weights of 8 bits are an [Int8], whose memory is in the order of decoding. They are
// right operands of products with bf16: [Level.PackNT8] and [Level.GemmNT8], which have
// the bits of products with the same numbers as bf16, and [Level.ScaleColumns] after
// them.
//
// Not here: goroutines, the choice of tiles, tensors, and what a kernel is for.
package kernel
