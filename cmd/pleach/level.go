// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"pleach/config"
	"pleach/engine/cpu"
	"pleach/internal/fault"
	"pleach/kernel"
	"pleach/optim"
)

// levelVariable names the kernels that this process computes with: whatever verb
// it runs, and whatever a recipe says. It is for comparing levels and for machines
// on which one of them is not to be trusted, so it wins; run.yaml shows that it
// did.
const levelVariable = "PLEACH_CPU"

// auto is the word for the fastest level of the processor.
const auto = "auto"

// forcedLevel is the level that the environment names, 0 if it leaves the choice.
func forcedLevel() (kernel.Level, error) {
	name := os.Getenv(levelVariable)
	if name == "" || name == auto {
		return 0, nil
	}
	l, err := kernel.ParseLevel(name)
	if err != nil {
		return 0, fault.As(fault.Config, fmt.Errorf("%s: %w", levelVariable, err))
	}
	return l, nil
}

// options are those of an engine in this process, without zeros: so many threads,
// 0 for the default, and the level that is forced, else the best.
func options(threads int) (cpu.Options, error) {
	l, err := forcedLevel()
	if l == 0 {
		l = kernel.Best()
	}
	return cpu.Options{Level: l, Threads: threadsOf(threads)}, err
}

// setOptions settles what the engine of a recipe is told. The recipe learns the
// level, since the bits of the run hang on it.
func (p *prepared) setOptions() error {
	const key = "engine.cpu.level"
	r := p.recipe
	asked, origin := r.Engine.CPU.Level, levelVariable
	l, err := forcedLevel()
	if err != nil {
		return err
	}
	switch {
	case l != 0:
	case asked == auto:
		l, origin = kernel.Best(), "the best of this processor"
	default:
		if l, err = kernel.ParseLevel(asked); err != nil {
			return r.Errorf(key, "%v", err)
		}
	}
	p.options = cpu.Options{Level: l, Threads: threadsOf(r.Engine.CPU.Threads)}
	if asked != l.String() {
		if err := r.Set(key, l.String(), origin); err != nil {
			return err
		}
	}
	return p.setPrecision()
}

// setPrecision chooses what the recipe leaves open: that of the run which is there
// already, else what this processor is fast in.
func (p *prepared) setPrecision() error {
	r := p.recipe
	if r.Train.Precision != "" {
		return nil
	}
	if text, err := os.ReadFile(filepath.Join(r.Out, "run.yaml")); err == nil {
		if old, err := config.Parse(r.Out, text, nil); err == nil && old.Train.Precision != "" {
			return r.SetPrecision(old.Train.Precision, "that of the run")
		}
	}
	usual := usualPrecision(p.options.Level)
	if usual == optim.F32 {
		return r.SetPrecision(usual.String(), "this processor is not faster in bf16")
	}
	return r.SetPrecision(usual.String(), "this processor is faster in bf16")
}

// usualPrecision is that of a training which says none.
func usualPrecision(l kernel.Level) optim.Precision {
	if l.HalfIsFaster() {
		return optim.Mixed
	}
	return optim.F32
}

// threadsOf is the number of threads for a number that was asked for, 0 for the
// default.
func threadsOf(n int) int {
	if n > 0 {
		return n
	}
	return defaultThreads()
}
