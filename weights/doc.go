// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package weights reads and writes file formats that others defined:
// safetensors files, alone or in shards with an index, as Hugging Face model
// directories hold them, and their JSON files. It reads the files of torch.save too
// (pytorch_model.bin), without running what they say.
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
//
// # The format of torch.save
//
// A zip archive since PyTorch 1.6, all of whose entries are stored as they are, in
// one folder:
//
//	data.pkl     a pickle of protocol 2, a dictionary: name → tensor
//	data/KEY     a storage: an array that tensors are parts of
//	byteorder    "little", if it is there
//
// A tensor is a call of _rebuild_tensor_v2 with a storage, an offset, a shape and
// strides, all in elements.
//
// Differs: torch.load runs a pickle, all of it or, lately, what is on a list of
// allowed functions. Here there is nothing to run: names that plain tensors do not
// need are errors. A value that is no tensor is one too.
package weights
