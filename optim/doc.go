// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package optim turns gradients into updates: the program that ends a step,
// AdamW and its decay groups, and learning-rate schedules. A line belongs here
// if it would be the same for any model; layers are unknown.
//
// The types to know: [AdamW], the constants of an optimizer; [Schedule], the
// learning rate of each step; [Precision], in which types a run is; [Update], the
// program.
//
//	s := optim.Schedule{Kind: optim.Cosine, Peak: 3e-4, Floor: 3e-5, Warmup: 2000, Length: 100_000}
//	lr := s.Rate(1)
//
// What is not here: gradients themselves (program), the loop (train).
package optim
