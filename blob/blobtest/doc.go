// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package blobtest tests stores, and rooms that use them: [Run] is the contract
// of a blob.Store as a suite, [Mem] a disk in memory that forgets what was not
// flushed, and [Faulty] a disk that fails or crashes at a chosen operation. [S3]
// and [Hub] are servers in this process, and [Flaky] makes any server a bad one.
//
//	m := blobtest.NewMem()
//	f := &blobtest.Faulty{Files: m, Rule: blobtest.Rule{Ops: blobtest.Write, Nth: 3, Crash: true}}
//	err := save(&blob.Dir{Files: f, Root: "run"}) // fails
//	after := &blob.Dir{Files: m.After(blobtest.PowerCut, 0), Root: "run"}
//
// Not here: anything that a program needs outside of tests.
package blobtest
