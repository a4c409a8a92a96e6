// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package compare measures how models differ, tensor by tensor. A line belongs here
// if it is a figure of how two models differ; it never changes one.
//
// The types to know: [Job], which models to compare and with what means; [Result],
// what came of it for every tensor; [Sums], which add up from tensors to layers and
// kinds of tensors; [Figures], what a person reads off them for two models.
//
//	r, err := compare.Run(ctx, compare.Job{Models: models, Base: base, Level: kernel.Best()})
//	f := r.Grid().All.Figures(0, 1)
//	fmt.Println(f.TaskCosine, f.Opposed)
//
// Models are read once, a chunk of every one at a time. Differences are taken in
// float32, products and sums in float64: Chunk elements at a time, chunks in their
// order. So the figures are the same to the bit for any number of threads and any
// level of kernels.
//
// Not here: how figures are shown (cmd/pleach), merging (merge).
package compare
