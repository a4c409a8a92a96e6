// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package compat merges tensors with the rounding of mergekit 0.1.5 on a processor:
// every elementary operation is rounded to the type of the inputs, sums are added in
// the order of torch, and random masks come from its generator. A line belongs here
// if it exists to give the numbers of mergekit and not the best ones.
//
// The functions to know: [Merge] merges a tensor; [NewTwister] is the random stream
// of a whole merge; [Bytes] says what memory a tensor needs.
//
// # What is equal
//
// Sums and norms follow the order of torch 2.15 on x86-64 with AVX2 and one thread:
// eight lanes, four of them at a time, in four levels. Elementwise work, masks
// without equal magnitudes and random numbers are equal to the bit; so are all
// methods on bfloat16 and float16 in the tables of the test. Sines, arc cosines,
// exponentials and dot products of vectors (karcher) are those of another library
// there: in float32, slerp, nuslerp and karcher differ by up to 2·10⁻⁷ of the largest
// element. With more threads torch adds in another order.
//
// Among equal magnitudes the first in the tensor are taken by methods that sort, where
// torch takes arbitrary ones; sce takes those that torch takes.
package compat
