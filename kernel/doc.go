// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package kernel is loops over float32 numbers whose shape is their arguments.
//
// There are no types to know but [Heads], the shape of fused query, key and
// value rows, and [AdamWStep]. The functions to begin with are [GemmNT],
// [RMSNorm] and [Attention].
//
//	scratch := make([]float32, kernel.GemmScratch)
//	kernel.GemmNT(y, x, w, N, O, I, O, I, I, false, scratch) // y = x·wᵀ
//
// All kernels keep these rules:
//
//   - They take slices and sizes, allocate nothing and start nothing. Scratch is
//     passed in; its contents mean nothing before and after.
//   - A call computes rows, columns or heads of a result. However a result is cut
//     into calls, its bits are the same: a sum is a left fold in index order
//     unless the kernel says otherwise, and no value depends on where in a tile
//     it lies.
//   - Kernels of weight gradients add to the sums that they are given, token by
//     token, so cutting a batch into calls changes no bit either.
//   - A product is rounded before it is added, float32(a*b)+c: the same bits on
//     every architecture.
//   - NaN and Inf go through as arithmetic has it. What may overlap is said at
//     each kernel; what is not said must not. Slices that are too short, and ids
//     and positions out of range, panic: who calls has checked them.
//
// Not here: goroutines, the choice of tiles, tensors, and what a kernel is for.
package kernel
