// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package blob is about names and bytes: it reads ranges, lists, and makes new
// bytes appear under a name all at once or not at all.
//
// Types to know: [Store] is what the other rooms use; [Dir] is a Store in a
// folder of this machine; [Files] is the few operations of the operating
// system that a Dir needs, so that a test can put a failing disk beneath it
// (package blob/blobtest).
//
//	s := blob.Local("runs/first")
//	err := s.Write("run.yaml", func(w io.Writer) error {
//		_, err := w.Write(recipe)
//		return err
//	})
//
// Not here: what the bytes mean (weights, ckpt, data).
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
package blob
