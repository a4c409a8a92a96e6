// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Converging is the experiment of docs/converging.md: it trains one small model
// in every precision, with several seeds and two values of β2, and writes the
// tables and figures of that page. A line belongs here if it says which runs are
// made, or what is read off their events.
//
//	go run ./bench/converging --out runs/converging
//	go run ./bench/converging --out runs/converging --report
//
// The types to know: settings, what all runs share; spec, what one run is;
// result, what its events say; chart, a figure.
//
// Training is that of the command: the recipes in the folder are run by pleach
// train, and events.jsonl of each run is all that is read. A run that is done is
// not run again, and one that was stopped goes on from its checkpoint.
//
// Not here: how anything is trained, the definition of a spike (train).
package main
