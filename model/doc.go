// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package model writes the Llama family as programs. A line belongs here if it
// is in the paper of the model: architecture, parameters and their names in
// model files, forward pass, initialisation.
//
// The types to know: [Spec], the architecture; [Config], a Hugging Face
// config.json understood or refused; [Batch], the shape of what goes in. The
// programs are [Accumulate] (a micro-batch of training), [Score] (losses and
// most probable words) and [Extend] (prefill and decode with a cache).
//
//	spec, err := model.Preset("tiny", 512)
//	p, err := model.Accumulate(spec, program.Layout{Compute: half.F32, Sum: half.F32}, 0,
//		model.Batch{B: 4, T: 128})
//
// The path of a token is in llama.go. What is not here: reading files
// (weights, ckpt), the update of weights (optim), running anything (engine).
package model
