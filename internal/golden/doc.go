// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package golden knows where the reference numbers lie that other rooms are
// tested against, and how to read them. A line belongs here if it reads a file
// of testdata or compares a number with one; it computes nothing of its own.
//
// The types to know are [Row], a line of ids with an optional mask; [Score],
// what transformers says of such a row; and [Step], one step of a training loop
// in PyTorch. testdata/README.md says how every file was made. A test of
// another room reads a case so:
//
//	for _, dir := range golden.Cases(t, "score") {
//		rows := golden.ReadLines[golden.Row](t, filepath.Join(dir, "rows.jsonl"))
//		want := golden.ReadLines[golden.Score](t, filepath.Join(dir, "want.jsonl"))
//		…
//		if err := golden.NearAll(got, want[i].LogProbs, golden.Tol{Abs: 1e-4}); err != nil {
//			t.Errorf("%s: row %d: log-probabilities: %v", dir, i, err)
//		}
//	}
//
// # Rewriting goldens
//
// What lies here is written by the Python scripts beside it and by nothing
// else: a test never rewrites it. A room whose goldens come from its own output
// keeps them in its own testdata and rewrites them with a flag of its tests:
//
//	var update = flag.Bool("update", false, "rewrite the golden files of this package")
//
// so that `go test ./room -update` rewrites, `git diff` shows what moved, and
// the change says why. -update stays off in every script and in continuous
// integration. A tolerance is not widened in the change that it makes pass.
//
// What is not here: the readers of model directories (weights, model), of
// recipes (config), and goldens of tokenizers (token), which that room keeps.
package golden
