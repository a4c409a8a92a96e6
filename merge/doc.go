// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package merge makes one model of several, as a configuration in the language of
// mergekit says. A line belongs here if it works on whole models: which tensors
// become which, with what parameters, and how they stream from files to files.
//
// The types to know: [Config], what a user wrote; [Plan], every tensor of the
// output with its sources and parameters, known before any is read; [Tensor], one
// of them.
//
// Not here: the formulas (merge/method), mergekit's rounding of them (merge/compat),
// vocabularies (merge/vocab), file formats (weights).
package merge
