// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package corpus finds plain text that is already on this machine and cuts it
// into two kinds, general and domain, with pieces held out. A line belongs here
// if it says which files are taken, what of them is text, or on which side of
// these two lines it falls.
//
// The types to know: [Corpus], where texts come from, made by [Find];
// [Quota], how much of each is wanted; [Amounts], how much there was.
//
//	c, err := corpus.Find(ctx, nil)
//	got, err := c.Write(ctx, "text", corpus.Quota{Train: 10 << 20, HeldOut: 100_000})
//	for text, err := range corpus.Read("text/"+corpus.FileName(corpus.Domain, true), 1<<20) { … }
//
// # Where from
//
//   - The user's own files or folders, text or JSONL.
//   - Else the Go sources of the environment's GOROOT or of the go command:
//     general is their comments, domain is their code without them.
//   - Else the two kinds of documentation with most text: manual pages, web
//     pages, change logs, licences, guides.
//
// # Held out
//
// About one in twenty is held out to measure on and never trained on: of Go,
// packages; of documentation, files; of the user's texts, pieces of at most 4000
// bytes. Packages and files are chosen by a hash of their names, the same ones
// on every machine, and give to both kinds or neither; of the user's pieces it
// is every twentieth, from the eleventh on. What is written is a function of the
// files and the quota.
//
// Not here: reading the network, tokens (token), the order of training (data),
// models.
package corpus
