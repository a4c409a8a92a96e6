// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package track

import "time"

// Event is one thing that happened. The types of this package are all there are.
type Event interface {
	// Kind is the name in the file.
	Kind() string
}

// Sink takes the events of a run in their order. It keeps nothing of an event
// after Write has returned.
type Sink interface {
	Write(at time.Time, e Event) error
	Close() error
}

// Start is the begin of a run, or of its continuation.
type Start struct {
	Version     string         `json:"version"`
	RecipeHash  string         `json:"recipe_hash"`
	Model       Model          `json:"model"`
	Mesh        map[string]int `json:"mesh"`   // ranks by axis
	Engine      string         `json:"engine"` // cpu, pjrt
	Level       string         `json:"level"`  // of the kernels
	Threads     int            `json:"threads"`
	ResumedFrom string         `json:"resumed_from,omitempty"` // path of a checkpoint
}

// Model is the size of a model.
type Model struct {
	Parameters int64 `json:"parameters"`
	Layers     int   `json:"layers,omitempty"`
	Width      int   `json:"width,omitempty"`
	Vocabulary int   `json:"vocabulary,omitempty"`
}

// Step is one step of the optimizer.
type Step struct {
	Step            int64    `json:"step"`
	LossNats        float64  `json:"loss_nats"` // mean over targets, before the update
	GradNorm        float64  `json:"grad_norm"` // before clipping
	WeightNorm      float64  `json:"weight_norm"`
	LR              float64  `json:"lr"`
	Tokens          int64    `json:"tokens"`  // since the begin of the run
	Targets         int64    `json:"targets"` // of this step: unmasked ids
	TokensPerSecond float64  `json:"tokens_per_second"`
	StepSeconds     float64  `json:"step_seconds"`
	DataWaitSeconds float64  `json:"data_wait_seconds"`
	ShareOfPeak     float64  `json:"share_of_peak"` // 0 to 1
	Rows            [2]int64 `json:"rows"`          // first and last
}

// Eval is the perplexity of one held-out set.
type Eval struct {
	Step        int64   `json:"step"`
	Name        string  `json:"name"`
	NLLNats     float64 `json:"nll_nats"` // mean per token
	Perplexity  float64 `json:"perplexity"`
	BitsPerByte float64 `json:"bits_per_byte"`
	Tokens      int64   `json:"tokens"`
	Bytes       int64   `json:"bytes"`
	Seconds     float64 `json:"seconds"`
}

// Checkpoint is one that was saved.
type Checkpoint struct {
	Step           int64   `json:"step"`
	Path           string  `json:"path"`
	Bytes          int64   `json:"bytes"`
	BlockedSeconds float64 `json:"blocked_seconds"` // training stood still
	TotalSeconds   float64 `json:"total_seconds"`   // until it was on the disk
}

// Spike is a run of steps whose gradient norm stood out.
type Spike struct {
	Step      int64    `json:"step"`
	GradNorm  float64  `json:"grad_norm"`
	Mean      float64  `json:"mean"` // of the norms before
	Length    int      `json:"length"`
	Documents []string `json:"documents"` // ids of what the rows hold
	Action    string   `json:"action"`
}

// Source is the progress in one source of documents.
type Source struct {
	Name      string           `json:"name"`
	Documents int64            `json:"documents"`
	Tokens    int64            `json:"tokens"`
	Epoch     int64            `json:"epoch"`
	Skipped   map[string]int64 `json:"skipped"` // by reason
	// Retries are the requests to object stores that were repeated, by reason, over
	// all sources that lie there; absent where none does.
	Retries map[string]int64 `json:"retries,omitempty"`
	Padded  int64            `json:"padded,omitempty"` // ids of rows that stand for no document, over all sources
}

// Restart is a worker that was started again.
type Restart struct {
	Step      int64              `json:"step,omitempty"`
	Reason    string             `json:"reason"`
	ExitCode  int                `json:"exit_code"`
	LostSteps int64              `json:"lost_steps"`
	Goodput   map[string]float64 `json:"goodput,omitempty"` // seconds by state
}

// Fault is what ended a worker.
type Fault struct {
	Step      int64              `json:"step,omitempty"`
	Reason    string             `json:"reason"`
	ExitCode  int                `json:"exit_code"`
	LostSteps int64              `json:"lost_steps"`
	Goodput   map[string]float64 `json:"goodput,omitempty"`
}

// Warning is what the user should know and the run survives.
type Warning struct {
	Step   int64  `json:"step,omitempty"`
	Reason string `json:"reason"`
}

// End is the end of a run, or of one sitting of it.
type End struct {
	Step      int64              `json:"step,omitempty"`
	Reason    string             `json:"reason"`
	ExitCode  int                `json:"exit_code"`
	LostSteps int64              `json:"lost_steps"`
	Goodput   map[string]float64 `json:"goodput,omitempty"`
}

// Unknown is an event of a later version, as [Read] finds it.
type Unknown struct {
	Name string
	Line []byte // the whole object
}

// Kind is "start".
func (Start) Kind() string { return "start" }

// Kind is "step".
func (Step) Kind() string { return "step" }

// Kind is "eval".
func (Eval) Kind() string { return "eval" }

// Kind is "checkpoint".
func (Checkpoint) Kind() string { return "checkpoint" }

// Kind is "spike".
func (Spike) Kind() string { return "spike" }

// Kind is "source".
func (Source) Kind() string { return "source" }

// Kind is "restart".
func (Restart) Kind() string { return "restart" }

// Kind is "fault".
func (Fault) Kind() string { return "fault" }

// Kind is "warning".
func (Warning) Kind() string { return "warning" }

// Kind is "end".
func (End) Kind() string { return "end" }

// Kind is the name of the event in the file.
func (u Unknown) Kind() string { return u.Name }
