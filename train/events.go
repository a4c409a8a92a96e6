// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train

import (
	"fmt"
	"time"

	"pleach/internal/fault"
	"pleach/program"
	"pleach/track"
)

// emit records an event; a run whose record cannot be written stops.
func (r *run) emit(e track.Event) error {
	if err := r.Sink.Write(time.Now(), e); err != nil {
		return fmt.Errorf("train: recording step %d: %w", r.state.Step, err)
	}
	return nil
}

// warn records what a person should know; that it could not be recorded shows at
// the next event.
func (r *run) warn(what string) {
	_ = r.Sink.Write(time.Now(), track.Warning{Step: r.state.Step, Reason: what})
}

func (r *run) emitStart() error {
	info := r.Engine.Info()
	return r.emit(track.Start{
		Version: r.Version, RecipeHash: r.Recipe,
		Model: track.Model{
			Parameters: int64(r.Config.Count()), Layers: r.Config.L, Width: r.Config.D, Vocabulary: r.Config.V,
		},
		Mesh:   axes(r.Layout.Mesh),
		Engine: info.Engine, Level: info.Level, Threads: info.Threads, ResumedFrom: r.result.Resumed,
	})
}

// axes are the ranks of a mesh, as records have them.
func axes(m program.Mesh) map[string]int {
	return map[string]int{
		"data": m.Size(program.Data), "pipeline": m.Size(program.Pipe), "tensor": m.Size(program.Tensor),
	}
}

// end records what the data was and how the run ended.
func (r *run) end(err error) {
	for _, s := range r.Data.Stats() {
		_ = r.emit(track.Source{
			Name: s.Name, Documents: s.Documents, Tokens: s.Tokens, Epoch: int64(s.Epoch), Skipped: s.Skipped,
			Retries: s.Retries, Padded: r.Data.Padded(),
		})
	}
	reason := "finished"
	if err != nil {
		reason = err.Error()
	}
	_ = r.emit(track.End{
		Step: r.state.Step, Reason: reason, ExitCode: fault.Exit(err),
		LostSteps: r.state.Step - r.result.Step, Goodput: r.ledger.Seconds(),
	})
}
