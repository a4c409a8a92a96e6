// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle runs programs in float64 with plain loops: the reference for
// every engine and every gradient, and, with a goroutine for each rank, the
// proof of every layout. It is slow on purpose; it never learns a trick.
//
// The types to know: [World], the ranks' connections; [Rank], one of them with
// its memory; [Frame], where temporaries live; [Engine], the same behind the
// contract of package engine.
//
//	r := &oracle.Rank{World: oracle.NewWorld(p.Mesh, 1), Mem: map[string][]float64{…}}
//	f := oracle.Heap{}
//	r.Run(p, program.Whole, f)
//
// What is not here: speed, and element types. Integers are float64 too.
package oracle
