// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"pleach/internal/fault"
)

// Recipe is a run, written down. [Load] and [Parse] make one in which every key
// has its value: from the command line, the recipe or the defaults. What only a
// model directory or the machine can say is left zero, and said in the
// documentation of the field; the caller fills it with [Recipe.Set].
type Recipe struct {
	File string // the recipe file, absolute, for messages
	Name string // its name without folder and extension

	Model      Model
	Seed       uint64
	Data       Data
	Train      Train
	Parallel   Parallel
	Checkpoint Checkpoint
	Evaluate   Evaluate
	Engine     Engine
	Price      Price
	Out        string // the run directory, absolute

	lora  struct{} // stands for a key that is not built
	shown string   // the file as the user called it
	place map[string]place
	lines []string
}

func (r *Recipe) fields() []field {
	return []field{
		{key: "model", to: &r.Model, need: true, doc: "A Hugging Face directory, as a " +
			"plain path or as `{path, state}`; or `{preset, vocabulary, …}` or `{config, " +
			"vocabulary}` to start from scratch."},
		{key: "seed", def: "0", to: &r.Seed, doc: "Everything random is a function of it: " +
			"initial weights, order of documents, sampling."},
		{key: "data", to: &r.Data, need: true, doc: "What is read, and how it becomes rows."},
		{key: "train", to: &r.Train, need: true, doc: "How long, how much at once, and by " +
			"which rule the weights move."},
		{key: "parallel", to: &r.Parallel, doc: "How ranks share the work. The product of " +
			"tensor, pipeline and data is the number of ranks."},
		{
			key: "lora", to: &r.lora, plan: "training small added matrices instead of the weights",
			doc: "`{rank, alpha, targets, dropout}`.",
		},
		{key: "checkpoint", to: &r.Checkpoint, doc: "When state is saved and what is kept. " +
			"The last step of a run is always saved."},
		{key: "evaluate", to: &r.Evaluate, doc: "Held-out texts to measure while training."},
		{key: "engine", def: "cpu", to: &r.Engine, doc: "What computes."},
		{key: "price", to: &r.Price, doc: "What an hour of this machine costs, so that a run " +
			"can be told in money."},
		{
			key: "out", auto: "`runs/` and the name of the recipe", to: pathTo{&r.Out},
			doc: "The run directory.",
		},
	}
}

// Load reads a recipe file and applies overrides, arguments of the form
// "train.clip=0.5", to it. The error matches [fault.Config] and holds every
// mistake, as [Errors]. The environment is not read.
func Load(path string, overrides []string) (*Recipe, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Configf("config: reading the recipe: %w", err)
	}
	return Parse(path, text, overrides)
}

// Parse is [Load] for a text at hand. Relative paths in it, and in the
// overrides, start at the folder of file, which need not exist.
func Parse(file string, text []byte, overrides []string) (*Recipe, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, fault.Configf("config: %s: %w", file, err)
	}
	base := filepath.Base(abs)
	r := &Recipe{File: abs, Name: strings.TrimSuffix(base, filepath.Ext(base))}
	d := newReader(r, file, text)
	root := d.document(text)
	if root == nil {
		return nil, joined(d.errs)
	}
	for _, arg := range overrides {
		d.override(root, arg)
	}
	d.mapping("", root, r.fields())
	if d.visited < maxNodes {
		d.rules()
	}
	r.shown, r.place, r.lines = file, d.place, d.lines
	if err := joined(d.errs); err != nil {
		return nil, err
	}
	return r, nil
}

// Errorf makes an error about the value of a key, at the place where it was
// written, for what other rooms find out about it: a preset that is not known,
// a path that does not exist.
func (r *Recipe) Errorf(key, format string, args ...any) error {
	e := &Error{File: r.shown, Key: key, Msg: fmt.Errorf(format, args...).Error()}
	p := r.place[key]
	e.Line, e.Arg = p.line, p.arg
	e.excerpt = excerpt(r.lines, p.line, p.col)
	return fault.As(fault.Config, e)
}
