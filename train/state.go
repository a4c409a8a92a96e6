// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"pleach/blob"
	"pleach/ckpt"
	"pleach/data"
	"pleach/half"
	"pleach/internal/fault"
	"pleach/model"
	"pleach/weights"
)

// State is what a run must know to go on, beside weights and moments: the file
// training/state.json.
type State struct {
	Types
	Step     int64              `json:"step"`
	Updates  int64              `json:"updates"` // steps that were applied: the t of AdamW
	Tokens   int64              `json:"tokens"`
	Seed     uint64             `json:"seed"`
	Recipe   string             `json:"recipe_hash"`
	Engine   string             `json:"engine"`
	Level    string             `json:"level"`
	Mesh     map[string]int     `json:"mesh"` // ranks by axis
	Length   int64              `json:"schedule_length"`
	Recent   []float64          `json:"recent_norms"`
	Spike    int                `json:"spike_length"`  // steps that the present spike has lasted
	Refused  int                `json:"refused_steps"` // in a row, up to now
	Baseline map[string]float64 `json:"baseline_perplexity"`
	// Lasting are the checkpoints that are kept for good, where time decides.
	Lasting []int64    `json:"permanent_steps,omitempty"`
	Data    data.State `json:"data"`
}

// moments are the optimizer states of a parameter, by the prefix of their names.
var moments = []string{"m.", "v."}

// master begins the names of exact weights among them.
const master = "master."

// weightSources are the published tensors, read from the engine when they are
// written.
func (r *run) weightSources() []weights.Source {
	var ts []weights.Source
	for _, t := range r.Config.Tensors() {
		ts = append(ts, r.source(t.Name, r.stepper.Exact(t.Param), t, r.Save.DType))
	}
	return ts
}

// boxes are the tensors of the optimizer state, in the shapes and with the names
// of the model's, each in the type that the run has it in. Where the published
// weights are rounded, the exact ones are among them.
func (r *run) boxes() []ckpt.Box {
	var bs []ckpt.Box
	add := func(prefix, param string, t model.Tensor) {
		dtype, _ := r.stepper.Type(param)
		bs = append(bs, ckpt.Box{Source: r.source(prefix+t.Name, param, t, dtype)})
	}
	for _, t := range r.Config.Tensors() {
		exact := r.stepper.Exact(t.Param)
		if dtype, _ := r.stepper.Type(exact); dtype != r.Save.DType && r.Save.DType != half.F32 {
			add(master, exact, t)
		}
	}
	for _, prefix := range moments {
		for _, t := range r.Config.Tensors() {
			add(prefix, prefix+t.Param, t)
		}
	}
	return bs
}

// source is a tensor as the engine has it, in the weight or state of a name.
func (r *run) source(name, from string, t model.Tensor, dtype half.DType) weights.Source {
	return weights.Source{Name: name, DType: dtype, Shape: t.Shape, Read: func(lo, hi int, dst []float32) error {
		return r.stepper.Read(from, t.Lo+lo, dst[:hi-lo])
	}}
}

// save writes a checkpoint of the present step and returns its size in bytes.
func (r *run) save() (int64, error) {
	m := ckpt.Model{Config: r.Config.JSON(), Files: r.Files, Tensors: r.weightSources()}
	r.state.Data = r.Data.State()
	r.state.Recent, r.state.Spike = r.spikes.Recent, r.spikes.Length
	return ckpt.Save(r.Store, r.state.Step, m, ckpt.Training{State: r.state, Ranks: [][]ckpt.Box{r.boxes()}})
}

// restore continues from a checkpoint: weights, moments, counters, data.
func (r *run) restore(c *ckpt.Checkpoint) error {
	config, err := model.ParseConfig(c.Config)
	if err != nil {
		return fault.As(fault.State, err)
	}
	if config.Spec != r.Config.Spec {
		return fault.Statef("train: resuming: the checkpoint holds another architecture: %+v, want %+v",
			config.Spec, r.Config.Spec)
	}
	r.state.Types = Types{} // not in every state
	if err := json.Unmarshal(c.State, &r.state); err != nil {
		return fault.Statef("train: resuming: training/state.json: %w", err)
	}
	if err := r.sameTypes(); err != nil {
		return err
	}
	if err := errors.Join(Restore(c, r.Config.Spec, r.stepper.Write), r.stepper.Lost()); err != nil {
		return err
	}
	r.spikes.Recent, r.spikes.Length = r.state.Recent, r.state.Spike
	if r.state.Length != r.Schedule.Length {
		r.warn(fmt.Sprintf("the schedule was %d steps long and is now %d: the learning rate bends at step %d",
			r.state.Length, r.Schedule.Length, r.state.Step))
		r.state.Length = r.Schedule.Length
	}
	if info := r.Engine.Info(); r.state.Engine != info.Engine || r.state.Level != info.Level {
		r.warn(fmt.Sprintf("the run was made on %s %s and goes on with %s %s: its numbers may differ in their last bits",
			r.state.Engine, r.state.Level, info.Engine, info.Level))
		r.state.Engine, r.state.Level = info.Engine, info.Level
	}
	r.state.Types = r.types()
	r.state.Recipe, r.state.Mesh = r.Recipe, axes(r.Layout.Mesh) // what may change has changed
	return r.Data.Restore(r.state.Data)
}

// sameTypes refuses to go on from a checkpoint whose numbers are of other types:
// to convert them is to begin another run.
func (r *run) sameTypes() error {
	if got, want := r.state.orF32(), r.types(); got != want {
		return fault.Statef("train: resuming: the checkpoint is of a run in %v, this one is in %v: want the same, or a "+
			"new run that begins with `model: {path: CHECKPOINT, state: kept}`, which converts", got, want)
	}
	return nil
}

// Restore reads weights and optimizer state of a checkpoint and hands them out by
// the names and places that programs use. Weights come from their exact copies
// where the published ones are rounded.
func Restore(c *ckpt.Checkpoint, s model.Spec, write func(name string, lo int, x []float32) error) error {
	exact := false
	for _, name := range c.Names() {
		exact = exact || strings.HasPrefix(name, master)
	}
	err := s.Transfer(func(t model.Tensor, lo int, dst []float32) error {
		if exact {
			return readBox(c, master+t.Name, t, lo, dst)
		}
		return c.Weights.ReadFinite(t.Name, lo, lo+len(dst), dst)
	}, write)
	for _, prefix := range moments {
		if err != nil {
			break
		}
		err = s.Transfer(func(t model.Tensor, lo int, dst []float32) error {
			return readBox(c, prefix+t.Name, t, lo, dst)
		}, func(param string, lo int, x []float32) error { return write(prefix+param, lo, x) })
	}
	if err != nil {
		return fault.As(fault.State, err)
	}
	return nil
}

// readBox reads flat elements [lo,lo+len(dst)) of a tensor of the optimizer
// state, which need not be whole rows.
func readBox(c *ckpt.Checkpoint, name string, t model.Tensor, lo int, dst []float32) error {
	row := t.Len() / t.Shape[0]
	first, last := lo/row, (lo+len(dst)+row-1)/row
	offset, shape := make([]int, len(t.Shape)), append([]int(nil), t.Shape...)
	offset[0], shape[0] = first, last-first
	if lo%row == 0 && len(dst)%row == 0 {
		return c.Box(name, offset, shape, dst)
	}
	whole := make([]float32, (last-first)*row)
	if err := c.Box(name, offset, shape, whole); err != nil {
		return err
	}
	copy(dst, whole[lo-first*row:])
	return nil
}

// OpenState opens the checkpoint in a folder, for its optimizer state. The caller
// closes it.
func OpenState(dir string) (*ckpt.Checkpoint, State, error) {
	var s State
	c, err := ckpt.Open(blob.Local(dir), ".")
	if err != nil {
		return nil, s, err
	}
	if err := json.Unmarshal(c.State, &s); err != nil {
		_ = c.Close()
		return nil, s, fault.Statef("train: %s: training/state.json: %w", dir, err)
	}
	s.Types = s.orF32()
	return c, s, nil
}
