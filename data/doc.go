// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package data turns documents into rows of ids, with a cursor that survives:
// a line of code belongs here if losing it would change which token comes next,
// or whether it counts in the loss.
//
// The types to know are [Spec] (what is read and how it is cut), [Loader] (the
// rows of a run, in order, ahead of whoever computes) and [State] (where the
// loader is: a few numbers for each lane). [Documents] reads one source in file
// order, for evaluation and for training a tokenizer; [Scan] looks at folders
// nobody has described yet; [Survey] says what documents are like, and
// [Loader.Repetitions] how often a run will see them.
//
// # Order
//
// The order of rows is a function of the seed, the sources and the number of
// lanes, and of nothing else: not of ranks, threads, how far ahead rows are made
// or when a state was taken.
//
//   - Row g of a run comes from lane g mod L. Data rank d of R computes the rows
//     g ≡ d (mod R), which are those of the lanes ≡ d (mod R).
//   - The files of a source stand one after the other; every
//     min(4 MiB, size/(64·L)) bytes, as they are stored, are a block; 1 MiB is the
//     limit where files are compressed or tables. A document belongs to the block in
//     which it starts.
//   - In epoch e the blocks, permuted by (seed, source, e), are dealt to the
//     lanes in turn. Within a block documents are shuffled, or stay in file order.
//   - Each lane rolls its own epoch of each source. Its next document comes from
//     the source with the largest deficit of tokens against its weight, since the
//     [Stage] began in which the row is.
//
// # Rows
//
// A document is its ids and one end-of-sequence id. A lane is the concatenation
// of its documents; its row k is the ids kT … kT+T, so rows overlap by one id
// and every id is a target once. Nothing is padded or dropped. With Spec.Whole
// documents that fit into a row are not cut, and what stays free is padded.
//
// # Documents
//
// A file is a document, or each line of a JSONL file is one, or each row of a
// Parquet or Arrow file: with the text in a field, or with a list of ids there. With
// format "lines" each line of a text file is one: a corpus of one long file would be
// one document, of which every lane reads a copy. Files may be compressed with gzip
// or zstd, and lie on this machine or behind a URL; see [Access]. What is no text is
// skipped and counted by reason; a line that is not JSON, or a damaged page, is an
// error unless Source.Damaged says how many may be left out.
//
// [Tokenize] writes the documents of sources as ids, and [WriteRows] the rows of a
// run; a source that has such a folder as its path gives the same rows.
//
// Not here: tokenizers (token), chat templates (template), names and bytes of
// object stores (blob), gradients.
package data
