// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package frame makes a compressed file look like its uncompressed bytes, readable
// at any offset: gzip and zstd. A line of code belongs here if it is about frames
// of compressed bytes and where they lie, and nothing of what they hold.
//
// Types to know: [File] is an open file; [Options] says where the cache is.
//
//	f, err := frame.Open(r, size, "c4.json.gz", frame.Options{Cache: dir, Key: etag})
//	...
//	n, err := f.ReadAt(buf, f.Size()-100)
//
// Files that are made of small pieces are read as they are: zstd with a seek table
// or with frames of at most 8 MiB that tell their sizes, and BGZF, which is gzip in
// members of at most 64 KiB. So are small files: at most 1 MiB, and 8 MiB
// uncompressed. All others have to be decompressed from the start to
// reach an offset, so they are written once into the cache as zstd frames of
// 256 KiB with a seek table, and read from there.
//
// # The cache
//
// An entry is named by a hash of the key that the caller gives: whatever tells one
// version of the file from another. It appears by a rename when it is complete and
// flushed. Every frame and the table have checksums, and an entry that fails one is
// made again. Two processes that make the same entry each write a file of their own,
// and the later rename wins with the same bytes.
//
// Entries used longest ago are removed when the cache grows over its limit, but none
// that is open in this process. One that another process has open stays readable
// there; on Windows it is not removed.
//
// Not here: what the bytes mean (data), columns (data/table), object stores (blob).
package frame
