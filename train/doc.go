// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package train is order in time: what happens in which step of a run. A line
// belongs here if it would be wrong one step earlier or later; formulas are
// elsewhere.
//
// The types to know: [Job], everything a run is told; [Run], the loop;
// [Stepper], one optimizer step for whoever wants only that.
//
//	result, err := train.Run(ctx, train.Job{Engine: e, Config: c, Data: loader, …})
//
// A run resumes from the newest good checkpoint in its store without being told,
// saves when its context is cancelled, and always saves its last step. Killed at
// any moment and started again it ends with the same bits.
//
// What is not here: concrete engines, stores and sinks (cmd/pleach), the format
// of checkpoints (ckpt), how a held-out text is scored (eval).
package train
