// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Pleach takes a Llama-family language model from documents to a finished
// checkpoint. This package is its command: a verb is a file, and here alone
// concrete engines, stores and sinks are named. A line belongs here if it names
// concrete things or prints; what computes is elsewhere.
//
//	pleach quickstart
//	pleach train recipe.yaml
//	pleach generate runs/recipe/checkpoints/step-00001000 "Once upon a time"
//
// Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 try
// again, 2 the recipe or the command line, 3 data, 4 checkpoint or state, 70 a
// bug, 75 saved and may run again.
package main
