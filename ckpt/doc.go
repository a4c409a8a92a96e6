// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package ckpt is what must survive kill -9: it writes checkpoints so that a run
// has, at every moment, each old one whole and the new one whole or not at all,
// and it finds, checks and reads them again.
//
// Types to know: [Model] and [Training] are what [Save] takes, as tensors that
// hand out their elements in ranges; [Checkpoint] is what [Open] gives, read in
// boxes by global coordinates; [Newest] finds where a run goes on.
//
//	s := blob.Local("runs/first")
//	n, err := ckpt.Save(s, 1000, model, training)
//	name, step, problems, err := ckpt.Newest(s)
//	c, err := ckpt.Open(s, name)
//	err = c.Box("m.model.norm.weight", []int{0}, []int{4096}, m)
//
// Not here: what the state means (train), which tensors there are (model,
// optim), when to save (train), anything of the recipe.
//
// # A checkpoint
//
// A store for a run holds checkpoints/step-00001000/ and so on. Each is a
// Hugging Face model directory; what only pleach reads is in a folder of its own,
// so that tools which take every *.safetensors file do not take it:
//
//	config.json, tokenizer files      as given
//	model.safetensors                 the published weights, or shards with an index
//	training/state.json               an object of train's: step, cursors, seeds, schedule, …
//	training/rank-00000.safetensors   optimizer state as boxes; one writer per file
//	training/rank-00000.json          where each of those boxes lies
//	manifest.json                     size and SHA-256 of every other file
//
// A box is a rectangular part of a whole tensor. The boxes of a tensor, over all
// ranks, do not overlap and leave nothing out, and ranks may be read by any
// other number of ranks. rank-*.json is
//
//	{"boxes": [{"key": "m.w[0:2,0:4]", "name": "m.w", "offset": [0,0], "whole": [4,4]}]}
//
// where key is the name in the safetensors file, which also has the shape and
// the type, name is the whole tensor's, and offset and whole are in elements.
// The key of a box that is whole is its name.
//
// manifest.json is exactly what encoding/json prints with two spaces of indent:
//
//	{"format": 1, "step": 1000, "files": [{"name": …, "bytes": …, "sha256": …}]}
//
// with files sorted by name. A byte of it that is changed makes the checkpoint
// bad, as does a change in any file that it names. Other files are ignored.
//
// # Publishing
//
// The folder is built and flushed under the name .tmp-step-00001000, and renamed
// (see package blob). A checkpoint that is there and good is never replaced; a
// bad one of the same step is removed first. What a killed save left is removed
// by the next one. A run has one writer at a time.
//
// Nothing in a checkpoint depends on time or place, so saving the same state
// twice gives the same bytes, except for what the caller puts into the state.
package ckpt
