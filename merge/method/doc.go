// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package method is the arithmetic of merging: what becomes of one tensor of
// several models. A line belongs here if it is in the formula of a method, and it
// sees blocks of float32, never a file.
//
// The types to know: [Method], one of [Methods], says which parameters there are;
// [Problem] is a tensor to merge; [Job], its computation, which walks over the
// elements in one or more passes and needs little memory besides. A job may be a
// [Warner] too.
//
//	m, _ := method.Find("ties")
//	job, err := m.New(problem)
//	err = method.Solve(job, inputs, out, 2)
//
// # Order of arithmetic
//
// Elementwise work is in float32 in the order of the formulas, each operation
// rounded on its own. Norms, dot products and other sums over elements are in
// float64: partial sums of each chunk, whose size follows from the shape of the
// tensor alone, are added in the order of chunks. So a result is the same to the bit
// for any number of threads and any way of reading, on every processor.
package method
