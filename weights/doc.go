// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package weights reads and writes file formats that others defined:
// safetensors files, alone or in shards with an index, as Hugging Face model
// directories hold them, and their JSON files.
//
// Types to know: [Set] is the tensors of a model directory, read in ranges;
// [Tensor] is one of them, where it lies and what it is; [Source] is a tensor
// to be written, which hands out its elements in ranges, so that neither
// reading nor writing holds a tensor whole.
//
//	set, err := weights.OpenDir("llama-2-7b")
//	row := make([]float32, 4096)
//	err = set.Read("model.embed_tokens.weight", 0, len(row), row)
//
// Not here: what a tensor is for (model), training state (ckpt), GGUF (later).
//
// # The safetensors format
//
//	8 bytes      n, the length of the header, little-endian
//	n bytes      a JSON object: name → {"dtype", "shape", "data_offsets": [begin, end]},
//	             and "__metadata__": string → string; then spaces up to a multiple of 8
//	the rest     the tensors, little-endian, row-major; offsets count from here,
//	             and the tensors fill the rest without hole or overlap
//
// Differs: the reference implementation takes the last of two equal keys and
// ignores unknown keys of a tensor; both are refused here. It writes tensors
// sorted by descending alignment and then by name; here they stand in the order
// given, and files are equal byte for byte when the order is the same.
package weights
