// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"pleach/internal/fault"
)

// settings are what all runs share, beside the learning rate. They are kept in
// the folder, and another experiment in it is refused.
type settings struct {
	Preset     string `json:"preset"`
	Vocabulary int    `json:"vocabulary"`
	Sequence   int    `json:"sequence"`
	Batch      int    `json:"batch"`
	Steps      int    `json:"steps"`
	Floor      string `json:"floor"`
}

// warmup is the share of the steps in which the rate climbs. What is measured
// over the course of a run begins at its end.
const warmup = 0.05

// tokens is how many a run sees.
func (s settings) tokens() int { return s.Sequence * s.Batch * s.Steps }

// mode is a way to hold numbers, as the tables have it.
type mode string

// The modes. Again is f32 with a learning rate that differs in its seventh
// digit: how far two runs drift apart that differ in nothing but rounding.
const (
	plainF32 mode = "f32"
	again    mode = "f32-again"
	mixed    mode = "mixed"
	sr       mode = "bf16-sr"
	srMoment mode = "bf16-sr-moments"
	plain16  mode = "bf16"
)

func modes() []mode { return []mode{plainF32, again, mixed, sr, srMoment, plain16} }

// label is how people read it.
func (m mode) label() string {
	switch m {
	case again:
		return "f32, again"
	case srMoment:
		return "bf16-sr, moments bf16"
	}
	return string(m)
}

// precision is the word of the recipe, and the type of the moments.
func (m mode) precision() (word, moments string) {
	switch m {
	case again:
		return "f32", "f32"
	case srMoment:
		return "bf16-sr", "bf16"
	}
	return string(m), "f32"
}

func parseModes(s string) ([]mode, error) {
	return list(s, func(w string) (mode, error) {
		if !slices.Contains(modes(), mode(w)) {
			return "", fault.Configf("want one of %v", modes())
		}
		return mode(w), nil
	})
}

// experiment is everything that is compared.
type experiment struct {
	set       settings
	modes     []mode
	seeds     []int
	lr        float64
	betas     []float64 // the first is that of the modes
	betaModes []mode
	betaRates []float64 // peaks of the learning rate at which they are compared
}

// spec is one run.
type spec struct {
	Mode  mode
	Beta2 float64
	LR    float64
	Seed  int
}

// name is that of its recipe and folder.
func (s spec) name() string {
	return fmt.Sprintf("%s_beta2-%g_lr-%g_seed-%d", s.Mode, s.Beta2, s.LR, s.Seed)
}

// specs are all runs, each once. All of a seed come before those of the next, so
// that what is done after a third of the time is a whole experiment of one seed.
func (e experiment) specs() []spec {
	var all []spec
	add := func(s spec) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for _, seed := range e.seeds {
		for _, m := range e.modes {
			add(spec{m, e.betas[0], e.lr, seed})
		}
		for _, lr := range e.betaRates {
			for _, m := range e.betaModes {
				for _, b := range e.betas {
					add(spec{m, b, lr, seed})
				}
			}
		}
	}
	return all
}

// recipe is what pleach train is given.
func (s spec) recipe(set settings) string {
	lr := s.LR
	if s.Mode == again {
		lr *= 1 + 1e-6
	}
	word, moments := s.Mode.precision()
	lines := []string{
		"# A run of the experiment of docs/converging.md.",
		"model:",
		"  preset: " + set.Preset,
		"  vocabulary: tokenizer",
		fmt.Sprintf("seed: %d", s.Seed),
		"data:",
		fmt.Sprintf("  sequence: %d", set.Sequence),
		"  sources:",
		"    - {path: text/general.jsonl, id: id}",
		"    - {path: text/domain.jsonl, id: id}",
		"train:",
		fmt.Sprintf("  until: %d steps", set.Steps),
		fmt.Sprintf("  batch: %d sequences", set.Batch),
		"  precision: " + word,
		fmt.Sprintf("  optimizer: {adamw: {lr: %.9g, betas: [0.9, %g], decay: 0.1, state: %s}}", lr, s.Beta2, moments),
		fmt.Sprintf("  schedule: {cosine: {warmup: %g %%, floor: %s}}", 100*warmup, set.Floor),
		"  clip: 1.0",
		"checkpoint: {every: 2min, keep: 1}",
		"evaluate:",
		"  at_start: false",
		"  perplexity:",
		"    general: text/general-heldout.jsonl",
		"    domain: text/domain-heldout.jsonl",
		"out: " + s.name(),
	}
	return strings.Join(lines, "\n") + "\n"
}
