// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package blob is about names and bytes: it reads ranges, lists, and makes new
// bytes appear under a name all at once or not at all.
//
// Types to know: [Store] is what the other rooms write to; [Dir] is a Store in a
// folder of this machine; [Files] is the few operations of the operating
// system that a Dir needs, so that a test can put a failing disk beneath it
// (package blob/blobtest). [Remote] reads objects that lie elsewhere by URL, and
// [Fetch] copies them here; [Driver] is what it has to know of a vendor.
//
//	s := blob.Local("runs/first")
//	err := s.Write("run.yaml", func(w io.Writer) error {
//		_, err := w.Write(recipe)
//		return err
//	})
//
//	r := blob.NewRemote(blob.Options{Hub: blob.HubFromEnv(), Cache: "cache"})
//	objs, err := r.List(ctx, "hf://datasets/org/name@main/data/*.parquet")
//	f, err := r.Open(ctx, objs[0])
//	n, err := f.ReadAt(b, off)
//
// Not here: what the bytes mean (weights, ckpt, data), and which vendors' drivers
// a program has (cmd/pleach/stores.go).
//
// # What survives a crash
//
// A file is written under a temporary name in its own folder, flushed to the
// disk, renamed, and its folder flushed. A folder is published in the same way:
// its files and sub-folders are built and flushed under a temporary name beside
// the final one, then renamed. So after a kill or a power cut each name shows
// the old bytes or the new ones. Names that begin with ".tmp-" or ".old-" are
// what is not finished yet or not removed yet: List does not show them and
// Sweep removes them.
//
// Windows has no way to flush a folder; there a rename can be lost in a power
// cut, but not in a kill.
//
// # Objects elsewhere
//
// An object is read as it was when it was listed: requests name its version, and
// answers are compared with it. On the hub a revision stands for the commit that
// it names when it is first asked for.
//
// What may pass is tried again: a status of 408, 429 or 5xx, a connection that is
// refused or breaks, an answer that is late or too short. After an answer that
// was too short the rest is asked for. Everything else is said at once.
//
// Bytes come in chunks of 4 MiB. A chunk is fetched once, however many ask for it
// at the same time, and kept in a folder that several processes may share;
// diskcache.go says in which form. Whoever reads one chunk after the other gets
// the next one fetched ahead. In memory there are at most 16 chunks.
package blob
